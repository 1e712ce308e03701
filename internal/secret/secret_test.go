package secret

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	openAI = "sk-proj-Ab3dEf6hIj9kLmN0pQrStUvWxYz1234567890abcd"
	claude = "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe-AbCdEfGhIjKlMnOp_QrStUv-AA"
	github = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	jwtKey = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	pemKey = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAx4Uu3Q9s8kFf0000000000000000000\nAbCdEf0123456789AbCdEf0123456789AbCdEf012345678\n-----END RSA PRIVATE KEY-----"
)

func TestText_Shapes(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"openai", "key=" + openAI + ";", "key=" + Mask + ";"},
		{"anthropic", `"` + claude + `"`, `"` + Mask + `"`},
		{"openrouter", "sk-or-v1-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", Mask},
		{"github", "token " + github + "\n", "token " + Mask + "\n"},
		{"github fine-grained", "github_pat_11ABCDEFG0123456789_abcdefghijklmnopqrstuvwxyz", Mask},
		{"aws id", "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "AWS_ACCESS_KEY_ID=" + Mask},
		{"aws secret", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "aws_secret_access_key = " + Mask},
		{"slack", "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx", Mask},
		{"google", "AIzaSyA1234567890abcdefghijklmnopqrstuv", Mask},
		{"jwt", "cookie: " + jwtKey, "cookie: " + Mask},
		{"header echoed", "Authorization: Bearer abcdefghij0123456789xyz was refused", "Authorization: Bearer " + Mask + " was refused"},
		{"in json", `{"error":"bad key\n` + openAI + `"}`, `{"error":"bad key\n` + Mask + `"}`},
		{"in colour", "\x1b[01;31m" + openAI + "\x1b[m", "\x1b[01;31m" + Mask + "\x1b[m"},
		{"private key", "a\n" + pemKey + "\nb", "a\n" + Mask + "\n" + Mask + "\n" + Mask + "\n" + Mask + "\nb"},
		{"private key cut off", pemKey[:100], Mask + "\n" + Mask + "\n" + Mask},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := (*Masker)(nil).Text(tc.in); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// I5: what people and tools work with every day stays readable.
func TestText_LeavesAlone(t *testing.T) {
	m := New("s3cr3t-Value-of-a-Server")
	for _, in := range []string{
		"da39a3ee5e6b4b0d3255bfef95601890afd80709",
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"01932f5e-7b1a-7c3d-8e4f-0123456789ab",
		`"integrity": "sha512-AKIAIOSFODNN7EXAMPLEzzzz0123456789+/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX=="`,
		"h1:Wt5Q0AKIAIOSFODNN7EXAMPLE/sk0123456789=", "call_0123456789abcdefghijABCDEFGHIJ", "toolu_01A09q90qw90lq917835lq9",
		"req_011CSHoEeqs5C35K2UUqR7Fy", "chatcmpl-9xYz0123456789abcdefghij", ".sk-fading-circle-with-many-dots { }", ".sk-cube-grid-animation-name-first",
		"task-0123456789abcdef0123456789abcdef", "desk-a1b2c3d4e5f6a7b8c9d0e1f2", "ghp_short", "AKIA", "eyJhbGciOiJIUzI1NiJ9", "eyJhIjoxfQ.eyJiIjoyfQ",
		"if bytes.Contains(b, \"-----BEGIN PRIVATE KEY-----\") {", "the bearer of this letter of recommendation has", "bearer authentication-scheme-without-digits",
		"-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEAx4Uu3Q9s8kFf0000000000000000000\n-----END CERTIFICATE-----", "glpat-", "-----", "npm_config_registry_of_a_very_long_name_x",
		"git version 9fceb02d0ae598e95dc970b74767f19372d61af8", "AKIAIOSFODNN7EXAMPLEX", "hf_hub_download_with_a_long_function_name",
	} {
		if got := m.Text(in); got != in {
			t.Errorf("masked %q to %q", in, got)
		}
	}
}

func TestText_KnownValues(t *testing.T) {
	m := New("p4ss/word&\"x\"", "abcdefgh-1", "efgh-1-more-of-it", "two lines\nof a secret", "short")
	for _, in := range []string{
		`raw p4ss/word&"x" end`, `{"v":"p4ss/word\u0026\"x\""}`, `{"v":"p4ss\/word&\"x\""}`, `q=p4ss%2Fword%26%22x%22`, `"{\"v\":\"p4ss/word&\\\"x\\\"\"}"`,
	} {
		if got := m.Text(in); strings.Contains(got, "p4ss") || !strings.Contains(got, Mask) {
			t.Errorf("%q became %q", in, got)
		}
	}
	if got := m.Text("<abcdefgh-1-more-of-it>"); got != "<"+Mask+">" {
		t.Errorf("overlapping values left %q", got)
	}
	if got := m.Text("short"); got != "short" {
		t.Errorf("a short value was masked: %q", got)
	}
	if got := m.Known(openAI); got != openAI {
		t.Errorf("Known masked a shape: %q", got)
	}
	if got := m.Text(m.Text("abcdefgh-1 " + openAI)); got != Mask+" "+Mask {
		t.Errorf("masking twice gave %q (I3)", got)
	}
}

// alphabet are the pieces of which random texts are made: secrets, their parts, and what may stand around them.
var alphabet = []string{openAI, claude, github, jwtKey, pemKey, "abcdefgh-1", "efgh-1-more", "abcdefgh", "sk-", "sk-ant-", "ghp_", "-----BEGIN ", "PRIVATE KEY-----",
	"eyJ", ".", "\n", " ", "Bearer ", "bearer=", "\\n", "\x1b[31m", "AKIA", "AKIAIOSFODNN7EXAMPLE", "é", "\xff", "x", "0", "-", "_", "secret_access_key: ",
	"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "-----END ", "MIIEowIBAAKCAQEAx4Uu3Q9s8kFf"}

func text(t *rapid.T) string {
	var b strings.Builder
	for _, p := range rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 14).Draw(t, "pieces") {
		if rapid.Bool().Draw(t, "whole") {
			b.WriteString(p)
		} else {
			b.WriteString(p[:rapid.IntRange(0, len(p)).Draw(t, "cut")])
		}
	}
	return b.String()
}

// I1: any chunking gives the same as the whole.
func TestStream_AnyChunks(t *testing.T) {
	m := New("abcdefgh-1", "efgh-1-more-of-it", "abcdefgh-1 and sk-")
	rapid.Check(t, func(t *rapid.T) {
		in := text(t)
		want := m.Text(in)
		s := m.Stream()
		var got strings.Builder
		for rest := in; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "n")
			got.WriteString(s.Write(rest[:n]))
			rest = rest[n:]
		}
		got.WriteString(s.Close())
		if got.String() != want {
			t.Fatalf("%q in pieces gave\n%q, whole\n%q", in, got.String(), want)
		}
	})
}

// I4: blanking piece by piece, as an output grows, covers what masking the whole covers, and moves nothing.
func TestBlank_AnyChunks(t *testing.T) {
	m := New("abcdefgh-1", "efgh-1-more-of-it")
	rapid.Check(t, func(t *rapid.T) {
		in := text(t)
		want := []byte(in)
		for _, sp := range m.Spans(in) {
			for i := sp.From; i < sp.To; i++ {
				want[i] = Filler
			}
		}
		got, at := []byte(in), 0
		for end := 0; end < len(got); {
			end += rapid.IntRange(1, min(len(got)-end, 40)).Draw(t, "n")
			from := max(0, at-LookBack)
			piece := got[from:end]
			at = from + m.BlankFrom(piece, at-from, end == len(got))
		}
		if string(got) != string(want) {
			t.Fatalf("%q in pieces gave\n%q, whole\n%q", in, got, want)
		}
	})
}

func TestShown(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1a\x1a\x1a\x1a\x1ab": "a" + Mask + "b", "a\x1ab": "ab", "\x1aabc": Mask + "abc", "abc\x1a": "abc" + Mask, "plain": "plain",
	} {
		if got := Shown(in); got != want {
			t.Errorf("Shown(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestHide(t *testing.T) {
	type state string
	type body struct {
		Text  string
		State state
		Args  string `secret:"known"`
		Raw   json.RawMessage
		List  []string
		In    *body
		Any   any
		Map   map[string]string
		At    time.Time
	}
	m := New("known-value-1", "completed-1")
	in := body{Text: "a known-value-1", State: "completed-1", Args: openAI + " known-value-1", Raw: json.RawMessage(`{"completed-1": [1.50, "known-value-1", {"a":"b"}], "k":"x"}`),
		List: []string{"x", github}, In: &body{Text: openAI}, Any: "known-value-1", Map: map[string]string{"known-value-1": "known-value-1"}, At: time.Unix(1, 0)}
	out := Hide(m, in)
	if out.Text != "a "+Mask || out.State != "completed-1" || out.Args != openAI+" "+Mask || out.List[1] != Mask || out.List[0] != "x" ||
		out.In.Text != Mask || out.Any != Mask || out.Map["known-value-1"] != Mask || !out.At.Equal(in.At) {
		t.Errorf("got %+v", out)
	}
	if want := `{"completed-1": [1.50, "` + Mask + `", {"a":"b"}], "k":"x"}`; string(out.Raw) != want {
		t.Errorf("raw JSON became %s, want %s", out.Raw, want)
	}
	if in.Text != "a known-value-1" || in.List[1] != github || in.In.Text != openAI {
		t.Errorf("the original changed: %+v", in)
	}
}

func TestJSON_EscapedSpelling(t *testing.T) {
	m := New("known-value-1")
	if got := string(m.JSON([]byte(`{"a":"\u006bnown-value-1","b":"\u00e9"}`))); got != `{"a":"`+Mask+`","b":"\u00e9"}` {
		t.Errorf("got %s", got)
	}
	if got := string(m.JSON([]byte(`{"a":"known-value-1"`))); strings.Contains(got, "known-value") {
		t.Errorf("broken JSON kept the value: %s", got)
	}
}

func TestNamed(t *testing.T) {
	for name, want := range map[string]bool{"OPENAI_API_KEY": true, "GITHUB_TOKEN": true, "DB_PASSWORD": true, "MYAPIKEY": true, "NPM_AUTH": true, "TOKEN_2": true,
		"PWD": false, "OLDPWD": false, "PATH": false, "KEYBOARD": false, "AUTHOR": false, "TOKENIZERS_PARALLELISM": false, "HOME": false, "LS_COLORS": false, "MONKEY": false} {
		if Named(name) != want {
			t.Errorf("Named(%q) = %v", name, !want)
		}
	}
}

func TestEnviron(t *testing.T) {
	got := strings.Join(Environ([]string{"API_TOKEN=zq81-kkw9-xx", "SSH_KEY=/home/someone/.ssh/id", "USE_TOKEN=disabled", "CACHE_KEY=20260101",
		"URL=postgres://me:p4ssw0rd!@host/db", "OWN=anything at all"}, func(n string) bool { return n == "OWN" }), "|")
	if want := "zq81-kkw9-xx|p4ssw0rd!|anything at all"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzText(f *testing.F) {
	for _, a := range alphabet {
		f.Add(a, 3)
	}
	m := New("abcdefgh-1", "efgh-1-more-of-it")
	f.Fuzz(func(t *testing.T, in string, n int) {
		want := m.Text(in)
		if m.Has(want) {
			t.Fatalf("%q still holds a known value: %q", in, want)
		}
		s := m.Stream()
		cut := 0
		if len(in) > 0 {
			cut = ((n % len(in)) + len(in)) % len(in)
		}
		if got := s.Write(in[:cut]) + s.Write(in[cut:]) + s.Close(); got != want {
			t.Fatalf("cut at %d: %q, whole %q", cut, got, want)
		}
	})
}

func BenchmarkText(b *testing.B) {
	m := New("abcdefgh-1", openAI+"x", github+"y")
	line := strings.Repeat("2026-01-01 INFO server: request handled in 12ms path=/api/v1/items status=200 id=01932f5e-7b1a\n", 1000)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		m.Text(line)
	}
}

// A pause gives what nothing can be told from, and a value that goes on behind it is masked all the same.
func TestStream_Pause(t *testing.T) {
	m := New("sk-a-value-that-is-known")
	for _, tc := range []struct{ name, before, after, want string }{
		{"a word", "I make plans", " at night", "I make plan|s| at night"},
		{"nothing more", "plans", "", "plan|s|"},
		{"a value", "is", "k-a-value-that-is-known.", "i|s|" + Mask + "."},
		{"much of a value", "sk-a-value", "-that-is-known.", "||" + Mask + "."},
		{"nothing held", "I make plan", " now", "I make plan|| now"},
	} {
		s := m.Stream()
		got := s.Write(tc.before) + "|" + s.Pause() + "|"
		if again := s.Pause(); again != "" {
			t.Errorf("%s: a second pause gives %q again", tc.name, again)
		}
		if got += s.Write(tc.after) + s.Close(); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
