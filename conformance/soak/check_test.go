package soak_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "github.com/mattn/go-sqlite3"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// walBound is what a write-ahead log may reach: it is cut when it is found above 64 MB, and a transaction may come before that.
const walBound = 72 << 20

// query reads rows of the store as text.
func (w *world) query(query string, args ...any) (out [][]string) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.home, "holdfast.db")+"?mode=ro&_busy_timeout=5000")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rows, err := db.Query(query, args...)
	if err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		w.t.Fatal(err)
	}
	for rows.Next() {
		row, into := make([]string, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			w.t.Fatalf("%s: %v", query, err)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return out
}

// none fails for each row of a query.
func (w *world) none(what, query string) {
	w.t.Helper()
	for _, row := range w.query(query) {
		w.t.Errorf("%s: %s", what, strings.Join(row, " | "))
	}
}

// check looks at everything from outside, when every process has ended.
func (w *world) check() {
	traces := readTraces(w.t, w.trace)
	w.enough(traces)
	w.tell()
	w.checkRecords()
	w.checkPrompts()
	w.checkCalls()
	w.checkStops()
	w.checkRequests()
	w.checkOwners(traces)
	w.checkShown()
	if err := fakemodel.ResultsPerCall(w.model.Requests()); err != nil {
		w.t.Errorf("the model refused the history: %v", err)
	}
	w.wal.mu.Lock()
	defer w.wal.mu.Unlock()
	w.t.Logf("the write-ahead log reached %d bytes in %d looks", w.wal.largest, w.wal.looks)
	if w.wal.largest > walBound || w.wal.looks == 0 {
		w.t.Errorf("the write-ahead log reached %d bytes, at most %d are allowed; it was looked at %d times", w.wal.largest, walBound, w.wal.looks)
	}
}

// enough fails when too little happened for the rest to mean anything.
func (w *world) enough(traces []*transaction) {
	accepted, takeovers, writes := w.acknowledged(), 0, 0
	for _, x := range traces {
		for _, s := range x.steps {
			switch {
			case x.point == "owner.takeover" && s.Op == "own":
				takeovers++
			case s.Op == "fence":
				writes++
			}
		}
	}
	w.t.Logf("%v; %d prompts sent, %d acknowledged, %d goals, %d takeovers, %d fenced writes in %d transactions, %d model requests", w.counts,
		len(w.prompts), accepted, len(w.goals), takeovers, writes, len(traces), len(w.arrivals))
	for _, n := range []struct {
		what      string
		got, want int
	}{{"kills", w.counts["kills"], w.plan.kills}, {"takeovers", takeovers, w.plan.takeovers}, {"acknowledged prompts", accepted, w.plan.prompts},
		{"suspended agents", w.counts["pauses"], w.plan.pauses}} {
		if n.got < n.want {
			w.t.Errorf("the run does not count: %d %s, at least %d are needed", n.got, n.what, n.want)
		}
	}
}

// tell logs what became of it all.
func (w *world) tell() {
	for what, query := range map[string]string{
		"runs":     `SELECT kind || ' ' || desired || ' ' || phase || ' ' || stop_reason || ' ' || reason_code, count(*) FROM runs GROUP BY 1 ORDER BY 1`,
		"attempts": `SELECT state || ' ' || rule, count(*) FROM attempts GROUP BY 1 ORDER BY 1`,
		"calls":    `SELECT tool || ' ' || state || ' ' || fact || ' ' || settled_by, count(*) FROM effects GROUP BY 1 ORDER BY 1`,
		"requests": `SELECT state, count(*) FROM requests GROUP BY 1 ORDER BY 1`,
		"goals":    `SELECT status || ' ' || reason_code || ' ' || reason, count(*) FROM goals GROUP BY 1 ORDER BY 1`,
	} {
		w.t.Logf("%s: %v", what, w.query(query))
	}
}

// checkRecords looks for what no history may hold.
func (w *world) checkRecords() {
	w.none("the numbers of a session's events have a gap", `SELECT s.id, s.last_seq, count(e.seq), min(e.seq), max(e.seq) FROM sessions s
		LEFT JOIN events e ON e.session = s.id GROUP BY s.id HAVING s.last_seq <> count(e.seq) OR max(e.seq) <> s.last_seq OR min(e.seq) <> 1`)
	w.none("two attempts of a run ran at once", `SELECT a.run, a.number, a.ended_at, b.number, b.started_at FROM attempts a
		JOIN attempts b ON b.run = a.run AND b.number > a.number WHERE a.state = 'running' OR a.ended_at > b.started_at OR a.generation > b.generation`)
	w.none("an attempt runs at the end", `SELECT a.id, a.run FROM attempts a JOIN runs r ON r.id = a.run
		WHERE a.state = 'running' AND r.phase = 'ended'`)
	w.none("a session has an owner when every process has let go", `SELECT id, owner FROM sessions WHERE owner <> ''`)
	w.none("an instance is left", `SELECT id, pid FROM instances`)
	for _, row := range w.query(`PRAGMA integrity_check`) {
		if row[0] != "ok" {
			w.t.Errorf("the store: %s", row[0])
		}
	}
	w.none("a reference leads nowhere", `PRAGMA foreign_key_check`)
}

// stored is a run as it is on record.
type stored struct {
	id, session, desired, phase, stopReason string
	place                                   int // in the session
}

// checkPrompts compares what senders were told with what is on record.
func (w *world) checkPrompts() {
	runs := map[string][]stored{} // by token
	for i, r := range w.query(`SELECT id, session, input, desired, phase, stop_reason FROM runs WHERE kind = 'prompt' ORDER BY session, ord`) {
		found := please.FindStringSubmatch(r[2])
		if found == nil {
			w.t.Errorf("a run that nobody asked for: %v", r)
			continue
		}
		runs[found[2]] = append(runs[found[2]], stored{r[0], r[1], r[3], r[4], r[5], i})
	}
	said := map[string]int{}
	for _, r := range w.query(`SELECT body FROM items WHERE kind = 'user' AND thread = ''`) {
		if found := please.FindStringSubmatch(r[0]); found != nil {
			said[found[2]]++
		}
	}
	for _, p := range w.prompts {
		n := len(runs[p.token])
		acknowledged := p.answered != 0 && p.failed == nil
		switch {
		case n > 1 || n > 0 && runs[p.token][0].session != p.session.id:
			w.t.Errorf("the prompt %s of session %s is on record as %v", p.token, p.session.id, runs[p.token])
		case n == 0 && acknowledged:
			w.t.Errorf("the prompt %s of session %s was answered with %s and is not on record", p.token, p.session.id, p.stopReason)
		case n == 0:
			continue
		}
		r := runs[p.token][0]
		began := w.query(`SELECT count(*) FROM attempts WHERE run = ?`, r.id)[0][0] != "0"
		if said[p.token] > 1 || began && said[p.token] != 1 || !began && r.desired != "cancelled" && r.phase == "ended" {
			w.t.Errorf("the prompt %s is in its history %d times; begun: %v, %+v", p.token, said[p.token], began, r)
		}
		if acknowledged && p.stopReason != r.stopReason {
			w.t.Errorf("the prompt %s was answered with %q, and the record says %+v", p.token, p.stopReason, r)
		}
	}
	w.checkOrder(runs)
}

// checkOrder: what one connection sent first comes first, and what was answered before something else was sent.
func (w *world) checkOrder(runs map[string][]stored) {
	slices.SortFunc(w.prompts, func(a, b *prompt) int { return int(a.sent - b.sent) })
	for i, p := range w.prompts {
		for _, q := range w.prompts[i+1:] {
			first := p.session == q.session && (p.launch == q.launch || p.answered != 0 && p.failed == nil && p.answered < q.sent)
			a, b := runs[p.token], runs[q.token]
			if first && len(a) == 1 && len(b) == 1 && a[0].place > b[0].place {
				w.t.Errorf("the prompt %s was sent before %s and comes after it", p.token, q.token)
			}
		}
	}
}

// checkCalls compares the journal with what is in the files.
func (w *world) checkCalls() {
	w.none("a call has neither a result nor a stated unknown", `SELECT e.id, e.tool, e.state, e.fact, r.desired, r.phase, r.reason_code FROM effects e
		JOIN runs r ON r.id = e.run WHERE NOT (e.state = 'settled' OR e.state = 'dispatched' AND e.fact = 'unknown') AND r.phase = 'ended'`)
	type tally struct{ completed, unknown, notStarted int }
	calls := map[string]*tally{}
	for _, r := range w.query(`SELECT json_extract(i.body, '$.tool.args'), e.fact, coalesce(json_extract(i.body, '$.tool.output.isError'), 0), e.tool
		FROM effects e JOIN items i ON i.id = e.item WHERE e.tool IN ('shell', 'edit', 'write')`) {
		token := anyToken.FindString(r[0])
		if calls[token] == nil {
			calls[token] = &tally{}
		}
		switch {
		case r[1] == "completed" && (r[2] == "0" || r[3] == "shell"):
			calls[token].completed++
		case r[1] == "unknown":
			calls[token].unknown++
		default:
			calls[token].notStarted++
		}
	}
	found := map[string]int{}
	for _, s := range w.sessions {
		files, err := filepath.Glob(filepath.Join(s.dir, "*.txt"))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, token := range anyToken.FindAllString(string(b), -1) {
				found[token]++
			}
		}
	}
	for token, n := range found {
		if n > 1 || calls[token] == nil {
			w.t.Errorf("%s happened %d times; its calls: %+v", token, n, calls[token])
		}
	}
	for token, c := range calls {
		n := found[token]
		if c.completed > 1 || n < c.completed && c.unknown == 0 && !w.cutShort(token) || n > c.completed+c.unknown {
			w.t.Errorf("%s is %d times in the files; its calls: %+v", token, n, *c)
		}
	}
}

// cutShort tells whether the command of a token has a result that says it was ended before it was done.
func (w *world) cutShort(token string) bool {
	return w.query(`SELECT count(*) FROM effects e JOIN items i ON i.id = e.item WHERE e.tool = 'shell' AND coalesce(e.exit_code, -1) <> 0
		AND instr(i.body, ?) > 0`, token)[0][0] != "0"
}

// checkStops: nothing of what was stopped goes on.
func (w *world) checkStops() {
	w.none("a cancelled run has not come to its end", `SELECT id, session, phase FROM runs WHERE desired = 'cancelled' AND phase <> 'ended'`)
	// The stop of a prompt is the first one stored after the prompt.
	const stopped = `SELECT r.id, r.session, min(c.at) AS at FROM runs r JOIN commands c ON c.session = r.session AND c.kind IN ('cancel', 'stop')
		WHERE r.kind = 'prompt' AND r.desired = 'cancelled' AND c.at >= r.created_at GROUP BY r.id`
	w.none("a prompt that was stopped was put to the model afterwards", `SELECT s.id, s.session, s.at, q.started_at FROM (`+stopped+`) s
		JOIN requests q ON q.run = s.id WHERE q.started_at > s.at`)
	w.none("a prompt that was stopped began afterwards", `SELECT s.id, s.session, s.at, a.started_at FROM (`+stopped+`) s
		JOIN attempts a ON a.run = s.id WHERE a.started_at > s.at`)
	w.none("a call was started after its prompt was stopped", `SELECT s.id, s.session, s.at, e.dispatched_at FROM (`+stopped+`) s
		JOIN effects e ON e.run = s.id WHERE e.dispatched_at > s.at`)
	w.none("a run is cancelled and nobody stopped it", `SELECT id, session FROM runs r WHERE kind = 'prompt' AND desired = 'cancelled'
		AND NOT EXISTS (SELECT 1 FROM commands c WHERE c.session = r.session AND c.kind IN ('cancel', 'stop') AND c.at >= r.created_at)`)
	for _, s := range w.stops {
		if n := w.query(`SELECT count(*) FROM commands WHERE session = ? AND kind = 'stop'`, s.session.id)[0][0]; n == "0" {
			w.t.Errorf("the stop of session %s was acknowledged and is not on record", s.session.id)
		}
	}
	for _, g := range w.goals {
		rows := w.query(`SELECT status, updated_at FROM goals WHERE id = ?`, g.id)
		if len(rows) != 1 {
			w.t.Errorf("the goal %s was acknowledged and is on record %d times", g.id, len(rows))
			continue
		}
		if g.stopped && rows[0][0] != "paused" {
			w.t.Errorf("the goal %s was paused for good and is %s", g.id, rows[0][0])
		}
		if !g.stopped {
			continue
		}
		for _, late := range w.query(`SELECT q.id, q.started_at, c.at FROM requests q JOIN (SELECT max(at) AS at FROM commands WHERE ref = ?1) c
			WHERE q.goal = ?1 AND q.started_at > c.at`, g.id) {
			w.t.Errorf("the goal %s was paused and the model was asked afterwards: %v", g.id, late)
		}
	}
}

// checkRequests: what reached the endpoint is on record first, once, and what is on record as settled did reach it.
func (w *world) checkRequests() {
	rows, settled := map[string]int{}, map[string]int{}
	for _, r := range w.query(`SELECT coalesce(g.objective, r.input), q.state, r.phase FROM requests q JOIN runs r ON r.id = q.run
		LEFT JOIN goals g ON g.id = q.goal`) {
		token := anyToken.FindString(r[0])
		rows[token]++
		switch {
		case r[1] == "settled":
			settled[token]++
		case r[1] == "started" && r[2] == "ended":
			w.t.Errorf("a request of %s is open although its run has ended", token)
		}
	}
	arrivals := map[string]int{}
	for _, a := range w.arrivals {
		arrivals[a.token]++
	}
	for token, n := range arrivals {
		if n > rows[token] || n < settled[token] {
			w.t.Errorf("%s reached the endpoint %d times; %d requests are on record, %d of them settled", token, n, rows[token], settled[token])
		}
	}
	for token, n := range settled {
		if arrivals[token] == 0 {
			w.t.Errorf("%s has %d settled requests and never reached the endpoint", token, n)
		}
	}
}

// checkOwners: the history of ownership is that of one writer at a time, and nobody was robbed.
func (w *world) checkOwners(traces []*transaction) {
	sessions, bad := linearizable(traces)
	if sessions < len(w.sessions) {
		w.t.Errorf("the traces are about %d sessions of %d", sessions, len(w.sessions))
	}
	for _, b := range bad {
		w.t.Errorf("more than one writer: %s", b)
	}
	pids, owner := map[string]int{}, map[string]string{}
	for _, x := range traces {
		for _, s := range x.steps {
			switch s.Op {
			case "join":
				pids[s.Instance] = x.pid
			case "own", "create":
				owner[fmt.Sprint(s.Session, s.Generation)] += s.Instance
			}
		}
	}
	for _, x := range traces {
		fenced := map[string]bool{}
		for _, s := range x.steps {
			fenced[s.Session] = fenced[s.Session] || s.Op == "fence"
		}
		for _, s := range x.steps {
			switch {
			case s.Op == "leave" && pids[s.Instance] != x.pid && (w.deaths[pids[s.Instance]] == 0 || w.deaths[pids[s.Instance]] > x.end):
				w.t.Errorf("process %d buried process %d, which nobody had ended", x.pid, pids[s.Instance])
			case s.Op == "touch" && executes(x.point) && !fenced[s.Session]:
				w.t.Errorf("a write of an executor did not name its generation: %s of session %s", x.point, s.Session)
			}
		}
	}
	for _, r := range w.query(`SELECT r.session, a.generation, a.instance, a.id FROM attempts a JOIN runs r ON r.id = a.run`) {
		if got := owner[r[0]+r[1]]; !strings.Contains(got, r[2]) {
			w.t.Errorf("attempt %s ran under generation %s of session %s, which belonged to %q and not to %s", r[3], r[1], r[0], got, r[2])
		}
	}
}

// executes tells whether a commit is one that only an owner makes.
func executes(point string) bool {
	group, _, _ := strings.Cut(point, ".")
	return slices.Contains([]string{"run", "turn", "request", "response", "text", "model", "effect", "recovery"}, group) && point != "effect.settled_by_person" &&
		point != "effect.looked_up"
}

// checkShown opens sessions in a fresh agent: its user sees each prompt that was begun once, in order.
func (w *world) checkShown() {
	a := harness.Start(w.t, harness.Options{Binary: w.bin, Env: w.env(), Dir: w.dir})
	a.Initialize()
	for i, s := range w.sessions {
		if i%max(1, len(w.sessions)/40) != 0 {
			continue
		}
		a.Must("session/load", map[string]any{"sessionId": s.id, "cwd": s.dir, "mcpServers": []any{}}, nil)
		var shown, want []string
		for _, raw := range a.Updates(s.id) {
			var u struct {
				SessionUpdate string
				Content       struct{ Text string }
			}
			if json.Unmarshal(raw, &u) == nil && u.SessionUpdate == "user_message_chunk" {
				if found := please.FindStringSubmatch(u.Content.Text); found != nil {
					shown = append(shown, found[2])
				}
			}
		}
		for _, r := range w.query(`SELECT body FROM items WHERE kind = 'user' AND thread = '' AND session = ? ORDER BY seq`, s.id) {
			if found := please.FindStringSubmatch(r[0]); found != nil {
				want = append(want, found[2])
			}
		}
		if !slices.Equal(shown, want) {
			w.t.Errorf("session %s shows %v, and holds %v", s.id, shown, want)
		}
	}
	if err := a.CloseInput(); err != nil {
		w.t.Error(err)
	}
}
