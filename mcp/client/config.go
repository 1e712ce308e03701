package client

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"

	"github.com/rs/zerolog"
)

// Config is one stdio server.
type Config struct {
	Name    string // our configuration name; the server key towards the model, whatever the server calls itself
	Command string
	Args    []string
	Env     []string // NAME=value; besides these the child gets only a small part of our environment
	Dir     string
	Secrets []string // values to mask in stderr and in errors
}

// Limits bound everything a server can make us wait for or keep. Zero means the default.
type Limits struct {
	Start      time.Duration // from the launch to a tool list
	FirstStart time.Duration // the same for a package runner that has not been ready yet: it may have to download
	Probe      time.Duration // how long an unanswered probe for the newest protocol holds back the older handshake
	List       time.Duration
	Write      time.Duration // one message into the server's stdin; after that the server is wedged
	Idle       time.Duration // a call without an answer and without progress
	Call       time.Duration // a call, whatever progress it reports
	Grace      time.Duration // for a late answer after a cancel or a timeout
	EOF        time.Duration // from the closed stdin to SIGTERM
	Term       time.Duration // from SIGTERM to SIGKILL
	Line       int           // bytes of one message from the server
	InFlight   int           // calls at the same time
	Pages      int           // of a tool list
	Tools      int           // of a server
	Text       int           // bytes of an answer that are shown to the model
	Starts     int           // within Window, after which the server counts as failed
	Window     time.Duration // also how long a server has to be healthy before its failures are forgotten
	Backoff    time.Duration // before the second start; doubles
	MaxBackoff time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Start = cmp.Or(l.Start, time.Minute)
	l.FirstStart = max(cmp.Or(l.FirstStart, 5*time.Minute), l.Start)
	l.Probe = cmp.Or(l.Probe, 10*time.Second)
	l.List = cmp.Or(l.List, 30*time.Second)
	l.Write = cmp.Or(l.Write, 10*time.Second)
	l.Idle = cmp.Or(l.Idle, 2*time.Minute)
	l.Call = cmp.Or(l.Call, 30*time.Minute)
	l.Grace = cmp.Or(l.Grace, 5*time.Second)
	l.EOF = cmp.Or(l.EOF, 2*time.Second)
	l.Term = cmp.Or(l.Term, 3*time.Second)
	l.Line = cmp.Or(l.Line, 16<<20)
	l.InFlight = cmp.Or(l.InFlight, 8)
	l.Pages = cmp.Or(l.Pages, 50)
	l.Tools = cmp.Or(l.Tools, 500)
	l.Text = cmp.Or(l.Text, 100_000)
	l.Starts = cmp.Or(l.Starts, 5)
	l.Window = cmp.Or(l.Window, 5*time.Minute)
	l.Backoff = cmp.Or(l.Backoff, 500*time.Millisecond)
	l.MaxBackoff = cmp.Or(l.MaxBackoff, 30*time.Second)
	return l
}

// Options are what the surroundings give to a server.
type Options struct {
	Limits   Limits
	Tag      string                        // goes into the child's environment; proves whose a left-over process is
	Children string                        // file that names each child before it can do harm, for Sweep; "" keeps none
	Late     func(ticket string, a Answer) // an answer to a call whose outcome was given as unknown
	Changed  func()                        // the tool list has changed
	Log      zerolog.Logger
	Now      func() time.Time
	Eras     *Eras  // shared memory of which configuration speaks what; nil keeps it for this server alone
	Version  string // ours, as told to the server
}

// Late and Changed are called one after the other from one goroutine of the server. They must not call Close.

// runners are commands that download a program before they run it.
var runners = []string{"npx", "bunx", "uvx", "pipx", "pnpm", "yarn", "npm", "uv", "docker", "podman", "deno"}

// budget is how long a start may take.
func (l Limits) budget(command string, wasReady bool) time.Duration {
	if !wasReady && slices.Contains(runners, filepath.Base(command)) {
		return l.FirstStart
	}
	return l.Start
}
