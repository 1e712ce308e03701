package bench_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// interruptedSessions is how many sessions a killed process leaves in the middle of a request.
const interruptedSessions = 1000

// undecided counts the runs of which the store does not say what is so: neither that they wait, and for what, nor that a process which is
// there works on them.
const undecided = `SELECT count(*) FROM runs r WHERE phase <> 'ended' AND NOT (phase IN ('queued', 'waiting') AND reason_code <> '')
	AND NOT EXISTS (SELECT 1 FROM attempts a JOIN instances i ON i.id = a.instance WHERE a.run = r.id AND a.state = 'running' AND i.pid = ?)`

// A launch that finds a thousand interrupted sessions: when initialize is answered, when the store says the truth about every session, and
// how many work by then.
func BenchmarkRecover_ThousandSessions(b *testing.B) {
	for b.Loop() {
		r := newRecovery(b)
		r.leave()
		began := time.Now()
		a := r.launch()
		a.Initialize()
		b.ReportMetric(ms(time.Since(began)), "initialize-ms")
		began = time.Now()
		a.Begin("session/list", map[string]any{})
		for n := r.undecided(a.PID()); n > 0; n = r.undecided(a.PID()) {
			if time.Since(began) > harness.Limit {
				b.Fatalf("%d sessions are undecided", n)
			}
			<-time.After(5 * time.Millisecond)
		}
		b.ReportMetric(ms(time.Since(began)), "decided-ms")
		harness.Eventually(b, "as many work as may", func() bool { return r.working() == 4 })
		b.ReportMetric(ms(time.Since(began)), "resumed-ms")
		b.ReportMetric(float64(r.working()), "resumed")
		all, own := resident(b, a.PID())
		b.ReportMetric(all, "MB")
		b.ReportMetric(own, "own-MB")
		before := loadOf(b, a.PID())
		<-time.After(5 * time.Second)
		b.ReportMetric(ms(loadOf(b, a.PID()).cpu-before.cpu)/5, "waiting-cpu-ms/s")
		if n := r.working(); n != 4 {
			b.Fatalf("%d work", n)
		}
		a.Kill()
	}
	b.ReportMetric(0, "ns/op")
}

// recovery is a store with interrupted sessions, and a model that answers nothing.
type recovery struct {
	b     *testing.B
	dir   string
	model *fakemodel.Server
	db    *sql.DB

	mu   sync.Mutex
	seen int
}

func newRecovery(b *testing.B) *recovery {
	b.Helper()
	r := &recovery{b: b, dir: b.TempDir()}
	r.model = fakemodel.New(func(fakemodel.Request) fakemodel.Reply {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen++
		return fakemodel.Reply{End: fakemodel.EndStall}
	})
	b.Cleanup(r.model.Close)
	return r
}

// working is how many requests have arrived since the last launch.
func (r *recovery) working() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

func (r *recovery) launch() *harness.Agent {
	r.b.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		r.b.Fatal(err)
	}
	r.mu.Lock()
	r.seen = 0
	r.mu.Unlock()
	return harness.Start(r.b, harness.Options{Binary: plain, Invalid: true,
		Env: append([]string{"HOLDFAST_HOME=" + filepath.Join(r.dir, "home")}, r.model.Env("openai")...)})
}

// leave has a process die in the middle of a request, and makes as many copies of its session as are wanted, each with a work tree of its
// own: what the store holds is the same, and it takes seconds instead of minutes.
func (r *recovery) leave() {
	r.b.Helper()
	a := r.launch()
	a.Initialize()
	cwd := r.tree(0)
	id := a.NewSession(cwd)
	a.Prompt(id, "go on with it")
	harness.Eventually(r.b, "the request is under way", func() bool { return r.working() == 1 })
	a.Kill()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(r.dir, "home", "holdfast.db"))
	r.must(err)
	r.b.Cleanup(func() { _ = db.Close() })
	r.db = db
	tx, err := db.Begin()
	r.must(err)
	for _, table := range []string{"sessions", "runs", "attempts", "items", "events", "commands", "requests"} {
		r.copies(tx, table, cwd)
	}
	r.must(tx.Commit())
	var n int
	r.must(db.QueryRow("SELECT count(*) FROM sessions s JOIN runs r ON r.session = s.id JOIN attempts a ON a.run = r.id").Scan(&n))
	if n != interruptedSessions {
		r.b.Fatalf("%d sessions were made", n)
	}
}

func (r *recovery) must(err error) {
	r.b.Helper()
	if err != nil {
		r.b.Fatal(err)
	}
}

func (r *recovery) tree(i int) string {
	r.b.Helper()
	d := filepath.Join(r.dir, fmt.Sprintf("tree%04d", i))
	r.must(os.Mkdir(d, 0o755))
	return d
}

// ident is an id as every record has one.
var ident = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// copies repeats the rows of a table under other ids. Those of the process stay as they are.
func (r *recovery) copies(tx *sql.Tx, table, cwd string) {
	r.b.Helper()
	rows, err := tx.Query("SELECT * FROM " + table)
	r.must(err)
	names, err := rows.Columns()
	r.must(err)
	var all [][]any
	for rows.Next() {
		row, into := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		r.must(rows.Scan(into...))
		all = append(all, row)
	}
	r.must(rows.Err())
	insert, err := tx.Prepare(fmt.Sprintf("INSERT INTO %s (%s) VALUES (?%s)", table, strings.Join(names, ", "), strings.Repeat(", ?", len(names)-1)))
	r.must(err)
	for i := 1; i < interruptedSessions; i++ {
		other := filepath.Join(r.dir, fmt.Sprintf("tree%04d", i))
		if table == "sessions" {
			r.tree(i)
		}
		for _, row := range all {
			row = slices.Clone(row)
			for c, v := range row {
				text, is := v.(string)
				switch {
				case !is || names[c] == "instance" || names[c] == "owner":
				case names[c] == "identity": // the directory's own number, then what HEAD names
					_, ref, _ := strings.Cut(text, " ")
					st, err := os.Stat(other)
					r.must(err)
					sys := st.Sys().(*syscall.Stat_t)
					row[c] = fmt.Sprintf("%d:%d %s", sys.Dev, sys.Ino, ref)
				case names[c] == "continuation_key":
					row[c] = text + fmt.Sprint(i)
				default:
					text = strings.ReplaceAll(text, cwd, other)
					row[c] = ident.ReplaceAllStringFunc(text, func(id string) string { return id[:len(id)-6] + fmt.Sprintf("%06d", i) })
				}
			}
			_, err := insert.Exec(row...)
			r.must(err)
		}
	}
}

func (r *recovery) undecided(pid int) (n int) {
	r.b.Helper()
	r.must(r.db.QueryRow(undecided, pid).Scan(&n))
	return n
}
