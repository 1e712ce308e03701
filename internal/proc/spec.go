package proc

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Spec is a command to run.
type Spec struct {
	Dir       string // private folder for this command alone, made if it is missing
	Argv      []string
	Cwd       string
	Env       []string      // complete; nothing is added
	Timeout   time.Duration // after which the supervisor ends it; 0 means no deadline
	OutputCap int64         // bytes of output after which the supervisor ends it; 0 means no cap
	// Terminal gives the command a terminal of its own, with the end of input in it. The terminal lives in the supervisor: when that dies,
	// the command gets SIGHUP.
	Terminal bool
	// OwnNetwork puts the command into a user and network namespace of its own, as the wrapper of a confined command asks for.
	OwnNetwork bool
	// Hide are values that the output file must not keep. They go to the supervisor as the environment does, never through a named file.
	Hide []string
}

func (s Spec) check() error {
	if s.Dir == "" || len(s.Argv) == 0 || s.Argv[0] == "" {
		return errors.New("a command needs a folder and a program")
	}
	for _, words := range [][]string{s.Argv, s.Env, {s.Cwd}} {
		for _, w := range words {
			if strings.ContainsRune(w, 0) {
				return errors.New("a command cannot contain a zero byte")
			}
		}
	}
	return nil
}

// record is a Spec as it is stored.
type record struct {
	Argv      []string      `json:"argv"`
	Cwd       string        `json:"cwd"`
	EnvNames  []string      `json:"envNames"` // without the values: they may be secret
	Timeout   time.Duration `json:"timeout"`
	OutputCap int64         `json:"outputCap"`
	Terminal  bool          `json:"terminal,omitempty"`
	OwnNet    bool          `json:"ownNetwork,omitempty"`
	Boot      string        `json:"boot"` // in which it was started
}

func (s Spec) record(boot string) record {
	names := make([]string, len(s.Env))
	for i, kv := range s.Env {
		names[i], _, _ = strings.Cut(kv, "=")
	}
	return record{Argv: s.Argv, Cwd: s.Cwd, EnvNames: names, Timeout: s.Timeout, OutputCap: s.OutputCap, Terminal: s.Terminal, OwnNet: s.OwnNetwork,
		Boot: boot}
}

// lookup is the value of a variable in an environment; the last one counts.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// Result is a receipt.
type Result struct {
	ExitCode    *int      `json:"exitCode"`          // nil when a signal ended it, or it never started
	Signal      string    `json:"signal,omitempty"`  // that ended it
	Stopped     string    `json:"stopped,omitempty"` // "deadline", "output_cap", the cause given to Stop, or ""
	Started     time.Time `json:"started"`
	Ended       time.Time `json:"ended"`
	OutputBytes int64     `json:"outputBytes"`       // when it ended; what is left running may add to it
	Left        int       `json:"left"`              // processes of the command that still ran
	Failure     string    `json:"failure,omitempty"` // why it never started; then nothing ran
}

// Causes that the supervisor itself gives.
const (
	CauseDeadline  = "deadline"
	CauseOutputCap = "output_cap"
	CauseUser      = "user" // of a TERM without a reason
)

// unstarted is the exit code of a command that could not be started, as shells have it.
const unstarted = 127

func (r Result) String() string {
	code := "none"
	if r.ExitCode != nil {
		code = fmt.Sprint(*r.ExitCode)
	}
	return fmt.Sprintf("exit code %s, signal %q, stopped %q, %d bytes, %d left, failure %q", code, r.Signal, r.Stopped, r.OutputBytes, r.Left, r.Failure)
}
