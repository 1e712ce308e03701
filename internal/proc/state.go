package proc

import (
	"errors"

	"holdfast/internal/ident"
)

// Verdict is what the files prove about a command.
type Verdict string

// The verdicts. They move from NotStarted to Live when a command is claimed, and from Live to one of the others when its lock is free.
const (
	NotStarted   Verdict = "not_started"   // provably nothing ran, and nothing will
	Live         Verdict = "live"          // the supervisor holds the lock
	Done         Verdict = "done"          // there is a receipt
	MaybeStarted Verdict = "maybe_started" // the supervisor was lost around the start
	Orphaned     Verdict = "orphaned"      // the supervisor is lost, the command runs; its exit code will stay unknown. Becomes Lost
	Lost         Verdict = "lost"          // both are gone without a receipt
	Rebooted     Verdict = "rebooted"      // the machine was restarted under it
)

// State is a verdict with what it rests on.
type State struct {
	Verdict    Verdict
	Result     Result        // with Done
	Supervisor ident.Process // once it has said who it is
	Command    ident.Process // once it was started
}

var (
	// ErrNoReceipt: the command will never have a receipt; State says why.
	ErrNoReceipt = errors.New("the command has no receipt")

	// ErrUsed: the folder had a command before.
	ErrUsed = errors.New("the folder already had a command")

	// ErrRunning: the command still runs.
	ErrRunning = errors.New("the command still runs")
)

// lock is what a look at the lock file shows.
type lock string

const (
	unclaimed lock = "unclaimed" // there is none
	held      lock = "held"
	free      lock = "free" // forever, by I4 and I5
)

// judge reads the files. The lock was looked at before: a supervisor writes its receipt before it lets go, and after that nobody writes.
func judge(dir string, l lock) (State, error) {
	var s State
	var err error
	s.Verdict, err = s.judge(dir, l)
	return s, err
}

func (s *State) judge(dir string, l lock) (Verdict, error) {
	if l == held {
		return Live, s.identities(dir)
	}
	if done, err := take(dir, "exit", &s.Result); err != nil {
		return "", err
	} else if done {
		_ = s.identities(dir) // extra; a power cut may have left them empty
		return Done, nil
	}
	if l == unclaimed {
		return NotStarted, nil
	}
	var r record
	if specified, err := take(dir, "spec", &r); err != nil {
		return "", err
	} else if !specified {
		return NotStarted, nil // nothing is launched without one
	}
	boot, err := ident.BootID()
	if err != nil {
		return "", err
	}
	if r.Boot != boot {
		return Rebooted, nil // the identities were never made durable: their absence proves nothing here
	}
	if err := s.identities(dir); err != nil {
		return "", err
	}
	if s.Supervisor.PID == 0 {
		return NotStarted, nil
	}
	if s.Command.PID == 0 {
		return MaybeStarted, nil
	}
	runs, err := s.Command.Running()
	if err != nil {
		return "", err
	}
	if runs {
		return Orphaned, nil
	}
	return Lost, nil
}

// identities reads who supervisor and command are, as far as they are known.
func (s *State) identities(dir string) error {
	if _, err := take(dir, "starting", &s.Supervisor); err != nil {
		return err
	}
	_, err := take(dir, "running", &s.Command)
	return err
}
