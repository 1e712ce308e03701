package editors_test

import (
	"fmt"
	"time"
)

// check is the name of what a story looks at.
type check string

const (
	noHang        check = "everything is answered in time"
	onlyProtocol  check = "stdout carries the protocol only"
	oneAnswer     check = "each request has one answer"
	signsIn       check = "signing in succeeds at once"
	lenient       check = "an empty list is read as an empty object"
	answerFirst   check = "the answer that opens a session comes before its updates"
	commandsLater check = "commands are announced after the answer to session/new"
	commandsKnown check = "commands are announced"
	answerLast    check = "nothing of a turn follows its answer"
	onlyOpened    check = "nothing is said about a session that was not opened here"
	onlyAnnounced check = "no request without the client's capability"
	onlyKnown     check = "no request or notification outside the protocol"
	noErrors      check = "no error for what is no fault"
	promptWorks   check = "a prompt with a tool ends well"
	hasHome       check = "a command has a home"
	cancelEnds    check = "a cancelled prompt ends as cancelled"
	goalByMethod  check = "a goal is controlled by methods"
	goalByCommand check = "a goal is controlled by commands"
	goalGivenBack check = "a prompt that steers gives the goal back"
	goesOn        check = "the goal goes on after the agent was killed"
	quietGap      check = "it is quiet for a moment after session/load"
	stopsAsking   check = "a stop takes an open question back, answered or not"
	fallsBack     check = "the editor opens a new session where the thread is gone"
	unknownThread check = "an unknown thread is refused with the code that clients know"
	askedAgain    check = "a question that nobody answered is asked again with the next prompt"
	onceOnly      check = "what was allowed runs once"
	nothingLost   check = "what was shown and what was accepted is in the next load"
	sameAgain     check = "each load shows the same"
	droppedKept   check = "what the editor dropped is in the next load"
	endTurnOnly   check = "a turn that nobody stopped ends as end_turn"
	stderrShown   check = "no error pops up because of stderr"
	stderrEmpty   check = "stderr is empty"
	endsClean     check = "the agent ends when the editor ends it"
)

// failure is a check that failed.
type failure struct {
	check check
	what  string
}

func (s *story) fail(name check, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, failure{name, fmt.Sprintf(format, args...)})
}

// storyEnd is thrown by halt.
type storyEnd struct{}

// halt fails a check and ends the story, which cannot go on.
func (s *story) halt(name check, format string, args ...any) {
	s.fail(name, format, args...)
	panic(storyEnd{})
}

func (s *story) require(ok bool, name check, format string, args ...any) {
	if !ok {
		s.halt(name, format, args...)
	}
}

// settleMoment is the silence that acpx waits for after a prompt, within the other five.
const settleMoment = time.Second

// quietWithin waits for a moment without any message after the first n; false when d passes without one.
func (c *client) quietWithin(n int, moment, d time.Duration) bool {
	news := make(chan struct{}, 1)
	c.mu.Lock()
	if c.news = news; c.taken > n {
		news <- struct{}{}
	}
	c.mu.Unlock()
	end, quiet := time.NewTimer(d), time.NewTimer(moment)
	for {
		select {
		case <-news:
			if d <= moment {
				return false // the first moment was the last chance
			}
			quiet.Reset(moment)
		case <-quiet.C:
			return true
		case <-end.C:
			return d <= moment
		}
	}
}
