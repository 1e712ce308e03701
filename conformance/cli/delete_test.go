package cli_test

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/png"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// trace is what a deleted session must not leave anywhere: words of its prompt, of the model, of a file it wrote, of a command and its output.
const trace = "zebrafish"

// rich plays a session with a large write, a command with long output, and a plan. Only a prompt that names the trace does all that.
func rich(r fakemodel.Request) fakemodel.Reply {
	about := func(m fakemodel.Message) bool { return m.Role == "user" && strings.Contains(m.Content, trace) }
	if !slices.ContainsFunc(r.Messages, about) {
		if len(r.Results()) == 0 {
			return shell("echo kept words > other.txt; cat other.txt")
		}
		return fakemodel.Text("the other session says hello")
	}
	switch len(r.Results()) {
	case 0:
		return fakemodel.Calls(fakemodel.Call{Name: "update_todo", Args: `{"entries":[{"content":"look at the ` + trace + `","status":"in_progress"}]}`})
	case 1:
		return fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"seen.png"}`})
	case 2:
		return fakemodel.Calls(fakemodel.Call{Name: "write", Args: encode(map[string]string{"path": "big.txt", "content": strings.Repeat(trace+" in a file\n", 3000)})})
	case 3:
		return shell("for i in $(seq 2000); do echo " + trace + " $i; done; rm big.txt seen.png")
	case 4:
		return fakemodel.Calls(fakemodel.Call{Name: "ask_user", Args: `{"question":"Which ` + trace + `?","choices":["the red ` + trace + `"]}`})
	}
	return fakemodel.Text("the " + trace + " is done")
}

// traces lists the files below the state directory that hold the words, in objects of private repositories as well.
func (w *world) traces(words string) (in []string) {
	w.t.Helper()
	_ = filepath.WalkDir(w.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if b, err := os.ReadFile(path); err == nil && (bytes.Contains(b, []byte(words)) || strings.Contains(path, words)) {
			in = append(in, path)
		}
		return nil
	})
	repos, _ := filepath.Glob(filepath.Join(w.home, "trees", "*.git"))
	for _, repo := range repos {
		cmd := exec.Command("git", "--git-dir="+repo, "cat-file", "--batch-all-objects", "--batch", "--unordered")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		if out, err := cmd.Output(); err != nil || bytes.Contains(out, []byte(words)) {
			in = append(in, repo+" (an object)")
		}
	}
	return in
}

// both is in an image that two sessions were shown.
const both = "seahorse"

// picture is a PNG file with words in it, which stays as it is on its way.
func picture(t *testing.T, width int, words string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 10))); err != nil {
		t.Fatal(err)
	}
	text := append([]byte("tEXtComment\x00"), words...)
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(text)-4))
	chunk = binary.BigEndian.AppendUint32(append(chunk, text...), crc32.ChecksumIEEE(text))
	const head = 8 + 25 // the signature and the header
	return slices.Concat(b.Bytes()[:head], chunk, b.Bytes()[head:])
}

func said(text string) any { return map[string]any{"type": "text", "text": text} }

func shown(png []byte) any {
	return map[string]any{"type": "image", "mimeType": "image/png", "data": base64.StdEncoding.EncodeToString(png)}
}

// worked lets an editor with a variable of its own have one prompt worked on in a new session, and leave.
func (w *world) worked(variable string, prompt ...any) (id string) {
	w.t.Helper()
	a := harness.Start(w.t, harness.Options{Binary: w.binary(), Env: append(slices.Clone(w.env), variable), Permission: func(raw json.RawMessage) string {
		if strings.Contains(string(raw), `"choice_1"`) {
			return "choice_1"
		}
		return "allow_once"
	}})
	a.Initialize()
	id = a.NewSession(w.work)
	a.Await(a.Begin("session/prompt", map[string]any{"sessionId": id, "prompt": prompt}))
	if err := a.CloseInput(); err != nil {
		w.t.Fatal(err)
	}
	<-a.Ended()
	return id
}

// lived makes a session that leaves traces of every kind, and another one in the same work tree; both clients have gone.
func lived(t *testing.T) (w *world, gone, other string) {
	t.Helper()
	w = newWorld(t, rich)
	if out, err := exec.Command("git", "init", "-q", w.work).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(w.work, "seen.png"), picture(t, 40, trace+" that read shows"), 0o600); err != nil {
		t.Fatal(err)
	}
	shared := shown(picture(t, 60, both))
	gone = w.worked("PALETTE="+trace, said("Look for the "+trace+"."), shown(picture(t, 50, trace+" in a prompt")), shared)
	other = w.worked("PALETTE=grey", said("Say hello."), shared)
	w.want(0, "sessions", "undo", gone) // it puts the image back
	if len(w.traces(trace)) < 3 {
		t.Fatalf("the session left only %v", w.traces(trace))
	}
	for _, words := range []string{trace + " that read shows", trace + " in a prompt", both} {
		if len(w.traces(words)) == 0 {
			t.Fatalf("no image with %q is stored", words)
		}
	}
	return w, gone, other
}

// nowhere fails unless nothing of the deleted session is left, and the other one is whole.
func (w *world) nowhere(gone, other string) {
	w.t.Helper()
	for _, words := range []string{trace, gone} {
		if in := w.traces(words); len(in) > 0 {
			w.t.Errorf("%q is left in %v", words, in)
		}
	}
	if in := w.traces(both); len(in) == 0 {
		w.t.Error("the image that both sessions were shown is gone")
	}
	if r := w.want(0, "sessions", "export", other); !strings.Contains(r.out, "kept words") || !strings.Contains(r.out, "the other session says hello") {
		w.t.Errorf("the other session is\n%s", r.out)
	}
	if r := w.want(0, "sessions", "diff", other); !strings.Contains(r.out, "other.txt") {
		w.t.Errorf("what the other session changed is lost: %s", r.out)
	}
	if r := w.want(0, "doctor", "--deep"); strings.Contains(r.out, "damaged") {
		w.t.Errorf("doctor says\n%s", r.out)
	}
}

// A deleted session leaves no byte of what was said and done in it: not in the store, its log, the folders of calls or the recorded work trees.
func TestDelete_LeavesNoTrace(t *testing.T) {
	t.Parallel()
	w, gone, other := lived(t)
	if r := w.run("sessions", "delete", gone); r.code == 0 || !strings.Contains(r.errs, "--yes") {
		t.Fatalf("without a word it ended with %d: %s", r.code, r.errs)
	}
	d := document[struct {
		SessionID string
		Complete  bool
		Copies    []string
	}](w, "sessions", "delete", gone, "--yes")
	if d.SessionID != gone || !d.Complete || len(d.Copies) != 0 {
		t.Errorf("it says %+v", d)
	}
	w.nowhere(gone, other)
	if r := w.run("sessions", "show", gone); r.code == 0 {
		t.Errorf("it is still shown: %s", r.out)
	}
}

// No table keeps a row of a deleted session, whatever tables there are.
func TestDelete_EveryTable(t *testing.T) {
	t.Parallel()
	w, gone, _ := lived(t)
	had := w.naming(gone)
	for _, table := range []string{"sessions", "items", "events", "runs", "effects", "approvals", "undos", "plans", "contents", "environments"} {
		if had[table] == 0 {
			t.Errorf("no row of %s names it before it is deleted: %v", table, had)
		}
	}
	w.want(0, "sessions", "delete", gone, "--yes")
	if left := w.naming(gone); len(left) > 0 {
		t.Errorf("these rows name it: %v", left)
	}
}

// naming counts the rows of each table that hold an id, or the words of the trace.
func (w *world) naming(id string) map[string]int {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.home, "holdfast.db")+"?mode=ro")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rows, err := db.Query(`SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'`)
	if err != nil {
		w.t.Fatal(err)
	}
	var columns [][2]string
	for rows.Next() {
		var c [2]string
		if err := rows.Scan(&c[0], &c[1]); err != nil {
			w.t.Fatal(err)
		}
		columns = append(columns, c)
	}
	if len(columns) < 100 {
		w.t.Fatalf("only %d columns", len(columns))
	}
	found := map[string]int{}
	for _, c := range columns {
		var n int
		if err := db.QueryRow(`SELECT count(*) FROM "`+c[0]+`" WHERE instr(CAST("`+c[1]+`" AS BLOB), CAST(? AS BLOB)) > 0 OR instr(CAST("`+c[1]+`" AS BLOB), CAST(? AS BLOB)) > 0`,
			id, trace).Scan(&n); err != nil {
			w.t.Fatal(err)
		}
		if n > 0 {
			found[c[0]] += n
		}
	}
	return found
}

// A deletion that dies is not begun, or goes on with the next process: it is never half a session.
func TestDelete_Dies(t *testing.T) {
	t.Parallel()
	_, faulty, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"session.deleted:before", "session.deleted:after", "erasure.files_removed", "session.erased:before", "session.erased:after"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w, gone, other := lived(t)
			cmd := w.command("sessions", "delete", gone, "--yes")
			cmd.Path = faulty
			cmd.Env = append(cmd.Env, "HOLDFAST_CRASH="+at)
			if r := w.finish(cmd, []string{"sessions delete"}); r.code == 0 {
				t.Fatalf("it did not die: %s", r.out)
			}
			whole := at == "session.deleted:before"
			if r := w.run("sessions", "show", gone); (r.code == 0) != whole {
				t.Fatalf("it is shown: %v\n%s%s", r.code == 0, r.out, r.errs)
			}
			if whole {
				w.want(0, "sessions", "export", gone)
				w.want(0, "sessions", "delete", gone, "--yes")
			} else {
				a := w.editor(nil)
				a.Must("session/list", map[string]any{}, nil)
				t.Cleanup(func() {
					if b, err := os.ReadFile(filepath.Join(w.home, "log.jsonl")); t.Failed() && err == nil {
						t.Logf("traces %v; log %s", w.traces(trace), b)
					}
				})
				harness.Eventually(t, "nothing is left of it", func() bool { return len(w.traces(trace)) == 0 && len(w.traces(gone)) == 0 })
				if err := a.CloseInput(); err != nil {
					t.Fatal(err)
				}
				<-a.Ended()
			}
			w.nowhere(gone, other)
		})
	}
}

// What works, waits for an answer, or is open elsewhere is not deleted.
func TestDelete_RefusesWhatIsInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(fakemodel.Request) fakemodel.Reply { return shell(held) })
	a := w.editor(nil)
	id := a.NewSession(w.work)
	if r := w.run("sessions", "delete", id, "--yes"); r.code == 0 || !strings.Contains(r.errs, "close it there first") {
		t.Errorf("open: %d %s", r.code, r.errs)
	}
	a.Prompt(id, "go")
	harness.Eventually(t, "it asks", func() bool { return len(document[[]json.RawMessage](w, "sessions", "approvals")) == 1 })
	a.Kill()
	if r := w.run("sessions", "delete", id, "--yes"); r.code == 0 || !strings.Contains(r.errs, "stop it first: holdfast stop "+id) {
		t.Errorf("asking: %d %s", r.code, r.errs)
	}
	w.want(0, "sessions", "show", id)
	w.want(0, "stop", id)
	w.run("work") // it ends what was stopped
	w.want(0, "sessions", "delete", id, "--yes")
	if in := w.traces(id); len(in) > 0 {
		t.Errorf("left in %v", in)
	}
}
