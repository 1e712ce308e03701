package bench_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// interruptedSessions is how many sessions a killed process leaves in the middle of a request.
var interruptedSessions = 100

// undecided counts the runs of which the store does not say what is so: neither that they wait, and for what, nor that a process which is
// there works on them.
const undecided = `SELECT count(*) FROM runs r WHERE phase <> 'ended' AND NOT (phase IN ('queued', 'waiting') AND reason_code <> '')
	AND NOT EXISTS (SELECT 1 FROM attempts a JOIN instances i ON i.id = a.instance WHERE a.run = r.id AND a.state = 'running')`

// A launch that finds a thousand interrupted sessions: when initialize is answered, when the store says the truth about every session, and
// how many work by then.
func BenchmarkRecover_ThousandSessions(b *testing.B) {
	for b.Loop() {
		r := newRecovery(b)
		t0 := time.Now()
		r.leave()
		b.Logf("left after %v", time.Since(t0))
		began := time.Now()
		a := r.launch()
		a.Initialize()
		b.ReportMetric(ms(time.Since(began)), "initialize-ms")
		began = time.Now()
		a.Begin("session/list", map[string]any{})
		for n := r.count(undecided); n > 0; n = r.count(undecided) {
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

// leave has a process die in the middle of a request in every session, each with a work tree of its own.
func (r *recovery) leave() {
	r.b.Helper()
	a := r.launch()
	a.Initialize()
	for i := range interruptedSessions {
		cwd := filepath.Join(r.dir, fmt.Sprintf("tree%04d", i))
		if err := os.Mkdir(cwd, 0o755); err != nil {
			r.b.Fatal(err)
		}
		a.Prompt(a.NewSession(cwd), "go on with it")
	}
	harness.Eventually(r.b, "every request is under way", func() bool { return r.working() == interruptedSessions })
	a.Kill()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(r.dir, "home", "holdfast.db")+"?mode=ro")
	if err != nil {
		r.b.Fatal(err)
	}
	r.b.Cleanup(func() { _ = db.Close() })
	r.db = db
}

func (r *recovery) count(query string) (n int) {
	r.b.Helper()
	if err := r.db.QueryRow(query).Scan(&n); err != nil && !strings.Contains(err.Error(), "locked") {
		r.b.Fatal(err)
	} else if err != nil {
		return 1
	}
	return n
}
