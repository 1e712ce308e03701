package editors_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// story is one user of one editor, with a store, a work tree and a model.
type story struct {
	t               *testing.T
	p               profile
	tagged          []string      // makes it the build with crash points, with these settings
	limit           time.Duration // how long a question may take
	dir, home, work string
	model           *fakemodel.Server
	never, opened   chan struct{} // gates of the model
	streams         atomic.Bool   // the Goal's model has come to the part after the kill
	goalSteps       chan int      // a token for each step of a Goal
	clients         []*client
	killed          *client  // the connection whose agent was killed
	accepted        []string // prompts whose text belongs to the history

	mu       sync.Mutex
	failures []failure
}

// tell runs the story and returns the checks that failed.
func tell(t *testing.T, p profile, without string) []failure {
	t.Helper()
	return play(t, p, func(s *story) {
		if without != "" {
			s.tagged = []string{"HOLDFAST_WITHOUT=" + without}
			s.limit = 5 * time.Second // it is not expected to come
		}
		s.whole()
	})
}

// play runs a story.
func play(t *testing.T, p profile, run func(*story)) []failure {
	t.Helper()
	dir := t.TempDir()
	s := &story{t: t, p: p, limit: harness.Limit, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"),
		never: make(chan struct{}), opened: make(chan struct{}), goalSteps: make(chan int, 1000)}
	if err := os.Mkdir(s.work, 0o755); err != nil {
		t.Fatal(err)
	}
	s.model = fakemodel.New(s.answer)
	defer s.model.Close()
	func() {
		defer func() {
			if v := recover(); v != nil {
				if _, ok := v.(storyEnd); !ok {
					panic(v)
				}
			}
		}()
		run(s)
	}()
	for _, c := range s.clients {
		c.a.Kill()
		switch text := c.a.Stderr(); {
		case text == "":
		case p.showsStderr:
			s.fail(stderrShown, "%q", text)
		default:
			s.fail(stderrEmpty, "%q", text)
		}
	}
	if err := fakemodel.ResultsPerCall(s.model.Requests()); err != nil {
		s.fail(onceOnly, "the model refused the history: %v", err)
	}
	return s.failures
}

// whole is the whole story.
func (s *story) whole() {
	c := s.launch()
	c.initialize()
	session := c.newSession()
	c.sees(commandsKnown, "available_commands_update", session)

	s.promptWithTool(c, session)
	s.stop(c, session)
	if s.p.goalMethods {
		s.goalMethods(c, session)
	}
	s.goalCommand(c, session)
	c.a.Kill()
	s.killed = c

	s.streams.Store(true)
	c = s.launch()
	c.initialize()
	s.goalStep(goesOn) // by itself; nothing may be said about it yet
	s.reopen(c, session)
	s.outOfTurn(c, session)
	if s.p.closes {
		c.close(session)
		c.newSession() // in the same process
	}
	s.end(c)
	s.compare(session)
}

// accept remembers a prompt that has to be in the history.
func (s *story) accept(text string) string {
	s.accepted = append(s.accepted, text)
	return text
}

func (s *story) promptWithTool(c *client, session string) {
	c.ends(promptWorks, c.prompt(session, s.accept("please run it"), false), "end_turn")
	s.require(strings.HasSuffix(c.a.Text(session), "It ran."), promptWorks, "said %q", c.a.Text(session))
	c.mu.Lock()
	asked := slices.Clone(c.questions)
	c.mu.Unlock()
	s.require(len(asked) == 1 && asked[0], promptWorks, "questions, and whether they came within the turn: %v", asked)
	got := s.file("tool.txt")
	s.require(strings.HasPrefix(got, "home:"), promptWorks, "the command wrote %q", got)
	if got != "home:yes\n" {
		s.fail(hasHome, "%q", got)
	}
}

func (s *story) stop(c *client, session string) {
	id := c.prompt(session, s.accept("please talk"), false)
	c.sees(promptWorks, "agent_message_chunk", "thinking ")
	c.cancel(session)
	c.ends(cancelEnds, id, "cancelled")
	c.hesitate(true)
	id = c.prompt(session, s.accept("please ask me"), false)
	c.asked(stopsAsking, 2)
	c.cancel(session)
	c.ends(stopsAsking, id, "cancelled")
	c.hesitate(false)
	c.ends(promptWorks, c.prompt(session, s.accept("please tell me one"), false), "end_turn")
	s.require(s.file("never.txt") == "", stopsAsking, "a call ran that nobody allowed")
}

// goalMethods is a Goal that begins and ends without a prompt.
func (s *story) goalMethods(c *client, session string) {
	c.must(goalByMethod, "_holdfast/create_goal", object{"sessionId": session, "objective": "Another objective."})
	s.goalStep(goalByMethod)
	s.require(c.goal(session) == "active", goalByMethod, "the goal is %s", c.goal(session))
	c.must(goalByMethod, "_holdfast/update_goal", object{"sessionId": session, "action": "end"})
	s.require(c.goal(session) == "cancelled", goalByMethod, "the ended goal is %s", c.goal(session))
}

// goal is the status of the session's Goal.
func (c *client) goal(session string) string {
	return decode[struct{ Goal struct{ Status string } }](c.s, c.must(noHang, "_holdfast/get_goal", object{"sessionId": session})).Goal.Status
}

// goalCommand sets a Goal by a command, stops it or steers it, and leaves it at work.
func (s *story) goalCommand(c *client, session string) {
	id := c.prompt(session, s.accept("/goal "+objective), false)
	s.goalStep(goalByCommand)
	c.sees(goalByCommand, "agent_message_chunk", "planning ")
	c.cancel(session)
	c.ends(cancelEnds, id, "cancelled")
	if s.p.steers {
		c.ends(goalByCommand, c.prompt(session, s.accept("please tell me two"), true), "end_turn")
		s.require(c.goal(session) == "active", goalGivenBack, "the goal is %s", c.goal(session))
		s.goalStep(goalGivenBack)
		return
	}
	s.require(c.goal(session) == "paused", goalByCommand, "the goal is %s", c.goal(session))
	c.ends(noErrors, c.prompt(session, "/goal Something else.", true), "end_turn") // refused in words: one is unfinished
	c.prompt(session, "/goal resume", true)
	s.goalStep(goalByCommand)
	s.require(c.goal(session) == "active", goalByCommand, "the goal is %s", c.goal(session))
}

// goalStep waits until the Goal's model was asked.
func (s *story) goalStep(name check) {
	select {
	case <-s.goalSteps:
	case <-time.After(harness.Limit):
		s.halt(name, "the model was not asked to go on")
	}
}

// reopen opens a thread that is gone, then the real one.
func (s *story) reopen(c *client, session string) {
	e := c.open("sess_gone")
	s.require(e != nil && e.Code == -32002 && strings.Contains(e.Message+string(e.Data), "Session not found"), unknownThread, "%v", e)
	s.require(s.p.fallback == nil || slices.Contains(s.p.fallback, e.Code), fallsBack, "%v", e)
	c.newSession()
	if e := c.open(session); e != nil {
		s.halt(nothingLost, "the thread cannot be opened again: %v", e)
	}
}

// outOfTurn is the Goal that goes on while no prompt is open, with a question.
func (s *story) outOfTurn(c *client, session string) {
	close(s.opened)
	c.asked(goesOn, 1)
	if s.p.unopened == ignored || s.p.unopened == cancelled {
		id := c.prompt(session, s.accept("please tell me three"), true)
		c.asked(askedAgain, 2)
		c.ends(askedAgain, id, "end_turn")
	}
	harness.Eventually(s.t, "the goal is achieved", func() bool { return c.goal(session) == "achieved" })
	s.require(s.file("step.txt") == "step\n", onceOnly, "the goal's command wrote %q", s.file("step.txt"))
}

// end ends the agent the editor's way.
func (s *story) end(c *client) {
	if err := c.finish(); err != nil {
		s.fail(endsClean, "%v", err)
	}
}

func (s *story) file(name string) string {
	b, err := os.ReadFile(filepath.Join(s.work, name))
	if err != nil {
		return ""
	}
	return string(b)
}
