package soak_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// patience is how long the world may take to come to rest.
const patience = 3 * time.Minute

// open launches every window and gives it its sessions.
func (w *world) open() {
	for range w.plan.windows {
		win := &window{w: w}
		w.windows = append(w.windows, win)
		l := win.start()
		l.a.Initialize()
		for range w.plan.sessions {
			s := &session{dir: w.newSessionDir(len(w.sessions)), home: win}
			s.id = l.a.NewSession(s.dir)
			if len(w.sessions)%2 == 0 {
				l.a.Must("session/set_mode", map[string]any{"sessionId": s.id, "modeId": "edit"}, nil)
			}
			l.opened[s] = true
			win.sessions, w.sessions = append(win.sessions, s), append(w.sessions, s)
		}
	}
}

// chaos lets one act follow the other, for its time, and for longer on a busy machine where too little has happened by then.
func (w *world) chaos() {
	acts := []struct {
		weight int
		do     func(*window)
	}{{55, w.ask}, {8, w.cancel}, {5, w.kill}, {5, w.suspend}, {2, w.quit}, {2, w.stop}, {5, w.aim}, {3, w.pause}, {4, w.borrow}, {11, func(*window) {}}}
	total := 0
	for _, a := range acts {
		total += a.weight
	}
	tick := time.NewTicker(w.plan.every)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < w.plan.chaos || time.Since(began) < 4*w.plan.chaos && w.quiet(); <-tick.C {
		w.due(time.Now())
		win := w.windows[w.rng.IntN(len(w.windows))]
		n := w.rng.IntN(total)
		for _, a := range acts {
			if n -= a.weight; n < 0 {
				if win.live != nil {
					a.do(win)
				}
				break
			}
		}
	}
}

// quiet tells whether too little has happened for the run to count.
func (w *world) quiet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts["kills"] < w.plan.kills || w.counts["pauses"] < w.plan.pauses || w.acknowledged() < w.plan.prompts
}

// acknowledged counts the prompts that were answered. The caller holds mu, or is alone.
func (w *world) acknowledged() (n int) {
	for _, p := range w.prompts {
		if p.answered != 0 && p.failed == nil {
			n++
		}
	}
	return n
}

// due continues and launches what it is time for.
func (w *world) due(at time.Time) {
	for _, win := range w.windows {
		if l := win.live; l != nil && !l.stopped.IsZero() && at.After(l.stopped) {
			l.a.Signal(syscall.SIGCONT)
			l.stopped = time.Time{}
		}
		if l := win.live; l != nil && !l.doomed.IsZero() && at.After(l.doomed) {
			w.gone(win)
			l.a.Kill()
			w.did("kills")
		}
		if win.live == nil && at.After(win.again) {
			l := win.start(w.weakness()...)
			l.hello()
			for range 1 + w.rng.IntN(3) {
				l.with(win.sessions[w.rng.IntN(len(win.sessions))], func() {})
			}
		}
	}
}

// weakness lets the commands of some agents lose their supervisors, so that outcomes are unknown.
func (w *world) weakness() []string {
	points := []string{"claimed", "starting", "started", "running", "exited", "receipt"}
	if n := w.rng.IntN(4 * len(points)); n < len(points) {
		w.did("agents whose supervisors die")
		return []string{"HOLDFAST_SUPERVISOR_CRASH=supervisor." + points[n]}
	}
	return nil
}

func (w *world) token(suffix string) string {
	w.next++
	return fmt.Sprintf("tok-%d-%s", w.next, suffix)
}

// any is a session of the window in which not much waits. The first ones are asked more often, so that prompts come to wait for others.
func (w *world) any(win *window) *session {
	s := win.sessions[min(w.rng.IntN(len(win.sessions)), w.rng.IntN(len(win.sessions)), w.rng.IntN(len(win.sessions)))]
	if win.live.unanswered(s) > 2 {
		return nil
	}
	return s
}

func (w *world) ask(win *window) {
	s := w.any(win)
	if s == nil {
		return
	}
	w.say(win, s, []string{"append", "append", "edit", "write", "say"}[w.rng.IntN(5)])
}

func (w *world) say(win *window, s *session, kind string) {
	p := &prompt{token: w.token("x"), session: s}
	p.text = "please " + kind + " " + p.token
	l := win.live
	l.with(s, func() { l.prompt(p) })
}

func (w *world) cancel(win *window) {
	if busy := win.busy(); len(busy) > 0 {
		win.live.cancel(busy[w.rng.IntN(len(busy))])
		w.did("cancels")
	}
}

func (w *world) gone(win *window) {
	w.mu.Lock()
	w.deaths[win.live.a.PID()] = now()
	w.mu.Unlock()
	win.live, win.again = nil, time.Now().Add(time.Duration(w.rng.IntN(1500))*time.Millisecond)
}

// kill kills the window's agent soon, in the middle of something.
func (w *world) kill(win *window) {
	if win.live.doomed.IsZero() {
		w.ask(win)
		w.ask(win)
		win.live.doomed = time.Now().Add(time.Duration(w.rng.IntN(400)) * time.Millisecond)
	}
}

// quit closes the window in order. A suspended one cannot.
func (w *world) quit(win *window) {
	l := win.live
	if !l.stopped.IsZero() || !l.doomed.IsZero() {
		return
	}
	w.deaths[l.a.PID()] = now() // one that is held up leaves the rest to whoever finds it dead
	w.gone(win)
	w.clis.Go(func() {
		err := l.a.CloseInput()
		if err != nil {
			w.t.Errorf("an agent whose input ended: %v: %s", err, l.a.Stderr())
		}
		w.did("quits")
	})
}

func (w *world) suspend(win *window) {
	if win.live.stopped.IsZero() {
		win.live.a.Signal(syscall.SIGSTOP)
		long := 3000
		if w.rng.IntN(8) == 0 {
			long = 9000
		}
		win.live.stopped = time.Now().Add(time.Duration(50+w.rng.IntN(long)) * time.Millisecond)
		w.did("pauses")
	}
}

// borrow opens a session of another window here as well.
func (w *world) borrow(win *window) {
	s := w.sessions[w.rng.IntN(len(w.sessions))]
	for _, has := range win.sessions {
		if has == s {
			return
		}
	}
	win.sessions = append(win.sessions, s)
	win.live.with(s, func() {})
	w.did("sessions open in two windows")
}

// aim sets a goal.
func (w *world) aim(win *window) {
	if s := w.any(win); s != nil {
		token, l := w.token("goal"), win.live
		l.with(s, func() { l.setGoal(s, token) })
	}
}

// pause pauses a goal from the command line, for good.
func (w *world) pause(*window) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.rng.Perm(len(w.goals)) {
		if g := w.goals[i]; !g.stopped {
			w.clis.Go(func() {
				if w.cli("goals", "pause", g.id) {
					w.mu.Lock()
					defer w.mu.Unlock()
					g.stopped = true
				}
			})
			return
		}
	}
}

// stop stops a session from the command line.
func (w *world) stop(win *window) {
	s := win.sessions[w.rng.IntN(len(win.sessions))]
	if busy := win.busy(); len(busy) > 0 {
		s = busy[w.rng.IntN(len(busy))]
	}
	w.clis.Go(func() {
		if w.cli("stop", s.id) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.stops = append(w.stops, &stop{s})
		}
	})
}

// cli runs a command to its end and tells whether it succeeded.
func (w *world) cli(args ...string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, w.bin, args...)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH")}, w.env()...)
	c.Dir = w.dir
	var b bytes.Buffer
	c.Stdout, c.Stderr = &b, &b
	began := now()
	err := c.Start()
	if err == nil {
		w.mu.Lock()
		w.deaths[c.Process.Pid] = began // it ends by itself, and leaves its row to others while somebody suspended has the gate
		w.mu.Unlock()
		err = c.Wait()
	}
	out := b.Bytes()
	if err != nil {
		w.did(fmt.Sprintf("holdfast %s failed: %.80q", args[0], out))
	} else {
		w.did("holdfast " + args[0])
	}
	return err == nil
}

// rest continues and launches everything, opens every session, and waits until nothing moves.
func (w *world) rest() {
	for range 2 { // the doomed die, and are followed
		w.due(time.Now().Add(time.Hour))
	}
	for _, win := range w.windows {
		for _, s := range win.sessions {
			win.live.with(s, func() {})
		}
	}
	w.clis.Wait()
	if why := w.within(patience, w.moves); why != "" {
		w.t.Fatalf("it did not come to rest: %s", why)
	}
}

// within waits until a check says nothing any more, and returns what it said last.
func (w *world) within(limit time.Duration, look func() string) (why string) {
	for end := time.Now().Add(limit); ; <-time.After(200 * time.Millisecond) {
		if why = look(); why == "" || time.Now().After(end) {
			return why
		}
	}
}

// moves says what still moves: a session that is not open, a prompt without an answer, or work in the store.
func (w *world) moves() string {
	for _, win := range w.windows {
		for _, s := range win.sessions {
			switch {
			case !win.live.opens(s):
				win.live.again(s)
				return "session " + s.id + " is not open"
			case win.live.unanswered(s) > 0:
				return fmt.Sprintf("session %s has %d prompts without an answer", s.id, win.live.unanswered(s))
			}
		}
	}
	rows := w.query(`SELECT session, id, kind, desired, phase, reason_code FROM runs WHERE phase = 'working' AND desired IN ('run', 'paused')
		OR phase <> 'ended' AND (desired = 'cancelled' OR desired = 'run' AND (phase = 'queued' OR reason_code = 'model_retry')) LIMIT 3`)
	if len(rows) > 0 {
		return fmt.Sprint(rows)
	}
	return ""
}

// leave closes every window in order.
func (w *world) leave() {
	for _, win := range w.windows {
		w.mu.Lock()
		w.deaths[win.live.a.PID()] = now()
		w.mu.Unlock()
		if err := win.live.a.CloseInput(); err != nil {
			w.t.Errorf("an agent whose input ended: %v: %s", err, win.live.a.Stderr())
		}
	}
}
