package keys

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type ring map[string]string

func (r ring) Set(s, u, v string) error { r[s+"/"+u] = v; return nil }
func (r ring) Get(s, u string) (string, error) {
	if v, ok := r[s+"/"+u]; ok {
		return v, nil
	}
	return "", errors.New("not found")
}
func (r ring) Delete(s, u string) error { delete(r, s+"/"+u); return nil }

type broken struct{ ring }

func (broken) Set(string, string, string) error { return errors.New("no secret service") }

const key = "sk-test-0123456789abcdefABCDEF"

func TestKeys_KeyringHoldsTheValue(t *testing.T) {
	home, r := t.TempDir(), ring{}
	s := Open(home, r)
	where, why, err := s.Set("openai", key, "")
	if where != InKeyring || why != nil || err != nil {
		t.Fatalf("Set = %q, %v, %v", where, why, err)
	}
	b, err := os.ReadFile(Path(home))
	if err != nil || strings.Contains(string(b), key) {
		t.Fatalf("the file is %s, %v", b, err)
	}
	if got, where, err := Open(home, r).Get("openai"); got != key || where != InKeyring || err != nil {
		t.Errorf("Get = %q, %q, %v", got, where, err)
	}
	if _, _, err := Open(home, nil).Get("openai"); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("without a keyring: %v", err)
	}
	if ok, err := s.Remove("openai"); !ok || err != nil || len(r) != 0 {
		t.Errorf("Remove = %v, %v; the keyring has %d", ok, err, len(r))
	}
	if got, _, err := s.Get("openai"); got != "" || err != nil {
		t.Errorf("after Remove: %q, %v", got, err)
	}
}

func TestKeys_FileWhereThereIsNoKeyring(t *testing.T) {
	for name, r := range map[string]Keyring{"none": nil, "broken": broken{ring{}}} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			s := Open(home, r)
			where, why, err := s.Set("anthropic", key, "")
			if where != InFile || why == nil || err != nil {
				t.Fatalf("Set = %q, %v, %v", where, why, err)
			}
			st, err := os.Stat(Path(home))
			if err != nil || st.Mode().Perm() != 0o600 {
				t.Fatalf("the file: %v, %v", st.Mode(), err)
			}
			if _, _, err := s.Set("anthropic", key, InKeyring); err == nil {
				t.Error("a keyring that was asked for and cannot be used was silently replaced")
			}
			if got, where, err := s.Get("anthropic"); got != key || where != InFile || err != nil {
				t.Errorf("Get = %q, %q, %v", got, where, err)
			}
			if list, err := s.List(); err != nil || len(list) != 1 || list[0] != (Entry{"anthropic", InFile}) {
				t.Errorf("List = %v, %v", list, err)
			}
		})
	}
}

// I2
func TestKeys_OnlyAPrivateFileIsRead(t *testing.T) {
	home := t.TempDir()
	s := Open(home, nil)
	if _, _, err := s.Set("openai", key, InFile); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(Path(home), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.Get("openai"); got != key || err != nil {
		t.Errorf("Get = %q, %v", got, err)
	}
	if st, err := os.Stat(Path(home)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("it was left open: %v, %v", st.Mode(), err)
	}
	elsewhere := filepath.Join(t.TempDir(), "k")
	if err := errors.Join(os.Rename(Path(home), elsewhere), os.Symlink(elsewhere, Path(home))); err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.Get("openai"); got != "" || err == nil {
		t.Errorf("a link was followed: %q, %v", got, err)
	}
	if err := errors.Join(os.Remove(Path(home)), os.WriteFile(Path(home), []byte(`{"keys": "`+key), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get("openai"); err == nil || strings.Contains(err.Error(), "sk-") {
		t.Errorf("a broken file: %v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, bad := range []string{"", "tiny-1", "with space in it", "with\x00zero-byte", strings.Repeat("x", longest+1)} {
		if err := Check(bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("Check(%.20q) = %v", bad, err)
		}
	}
}
