package editors_test

import "time"

// profile is one editor as the agent sees it. Each member is a habit; what the editors really do stands beside the values.
type profile struct {
	name string

	// What initialize says.
	info         map[string]any // clientInfo; nil sends none
	capabilities any            // clientCapabilities, as this client encodes them
	fs, terminal bool           // which requests capabilities allow
	elicitation  bool

	// How it calls.
	emptyParams  string         // how a call without parameters is sent
	newMeta      map[string]any // _meta of session/new
	authenticate bool           // it signs in whenever authMethods is not empty, with the first of them
	authExtra    map[string]any // members that the protocol does not have
	cancelExtra  map[string]any
	setMode      bool // it sets its configured mode right behind session/new, while our first updates are on their way
	closes       bool // it closes threads that nobody looks at, and keeps the process
	cancelAnswer bool // when its user stops the turn, it answers the open questions as cancelled
	settles      bool // after each answer to a prompt it waits for a second without an update, for five at most
	steers       bool // a message during a turn is a cancel, the wait for its answer, and a prompt
	goalMethods  bool // it can send methods of our own

	// How it opens a thread again.
	reopen   reopening
	fallback []int         // errors that make it open a new session instead; nil for any
	quiet    time.Duration // after session/load it waits for so long a silence
	patience time.Duration // and fails when it does not come in this time

	// How it takes what comes.
	hangsOnEarlyCommands bool // commands that are announced before the answer to session/new make it hang
	errorEndsPrompt      bool // any error while a prompt is open ends that prompt in its window
	onlyEndTurn          bool // every other stop reason but a cancel of its own is a failure
	stray                stray
	unopened             ask     // a question while no prompt is open
	unknown              unknown // a request that it does not know
	showsStderr          bool    // each byte on stderr becomes an error in the user's window

	// How it launches and ends the agent.
	pathOnly bool // the environment is PATH and what the user configured
	end      ending
}

type (
	reopening int
	stray     int
	ask       int
	unknown   int
	ending    int
)

const (
	load reopening = iota
	resume
)

const (
	rendered   stray = iota // updates without an open prompt are shown
	dropsStray              // they are thrown away, but for commands, options, title and usage
)

const (
	shown     ask = iota // the user sees the question and allows it
	ignored              // it gets no answer, ever
	cancelled            // it is answered as cancelled
	policy               // a rule answers it
)

const (
	refusedRequest    unknown = iota // -32601
	unansweredRequest                // no answer, ever
)

const (
	kill     ending = iota // SIGKILL
	termKill               // SIGTERM and SIGKILL at once
	term                   // SIGTERM
	ladder                 // end of input; after 100 ms SIGTERM; after another 1.5 s SIGKILL
)

var profiles = []profile{
	{
		// One process serves many threads. Its Stop button is not there while no prompt of its own is open.
		name: "zed",
		info: map[string]any{"name": "zed", "title": "Zed", "version": "0.210.0"},
		capabilities: object{"fs": object{"readTextFile": true, "writeTextFile": true}, "terminal": true, "auth": object{"terminal": true},
			"elicitation": object{"form": object{}, "url": object{}}, "session": object{"configOptions": object{"boolean": object{}}},
			"_meta": object{"terminal_output": true, "terminal-auth": true}},
		fs: true, terminal: true, elicitation: true,
		emptyParams:  "{}",
		setMode:      true, // the mode from its settings is applied as soon as the session has an id
		closes:       true,
		cancelAnswer: true,
		steers:       true, // typing while the agent works stops the turn first
		reopen:       load,
		stray:        rendered,
		unopened:     shown,
		end:          kill, // the child is dropped
	},
	{
		name:         "jetbrains",
		info:         map[string]any{"name": "IntelliJ IDEA", "version": "2026.2"},
		capabilities: object{"fs": object{"readTextFile": true, "writeTextFile": true}, "terminal": false, "_meta": object{"jetbrains.air": object{"goal": true}}},
		fs:           true,
		emptyParams:  "{}",
		cancelAnswer: true,
		goalMethods:  true, // it negotiates extras under its own _meta
		reopen:       load,
		// A user's window stayed at "starting" when the commands came before the session was there.
		hangsOnEarlyCommands: true,
		stray:                rendered, // by a callback of its own, beside the one of the prompt
		unopened:             shown,
		end:                  term,
	},
	{
		name:            "codecompanion",
		info:            map[string]any{"name": "CodeCompanion.nvim", "version": "18.0.0"},
		capabilities:    object{"fs": object{"readTextFile": true, "writeTextFile": true}, "terminal": false},
		fs:              true,
		emptyParams:     "{}",
		authenticate:    true, // with the configured or the first method, needed or not
		reopen:          load,
		errorEndsPrompt: true, // whatever request the error answers
		onlyEndTurn:     true,
		stray:           dropsStray,
		unopened:        ignored, // nothing handles the request then
		unknown:         unansweredRequest,
		end:             term, // when the editor exits
	},
	{
		name:         "agentic.nvim",
		info:         map[string]any{"name": "Agentic.nvim", "version": "1.0.0"},
		capabilities: object{"terminal": false, "session": object{"configOptions": object{"boolean": object{}}}, "fs": array{}, "_meta": array{}},
		emptyParams:  "[]", // an empty Lua table is encoded as a list
		setMode:      true,
		reopen:       load,
		stray:        rendered,
		unopened:     cancelled, // when no window subscribes to the session
		unknown:      unansweredRequest,
		pathOnly:     true,
		end:          termKill,
	},
	{
		name:         "avante", // sends no clientInfo
		capabilities: object{"fs": object{"readTextFile": true, "writeTextFile": true}},
		fs:           true,
		emptyParams:  "[]", // as above
		reopen:       load,
		stray:        rendered,
		unopened:     shown,
		unknown:      unansweredRequest, // and a message pops up
		pathOnly:     true,
		end:          termKill,
	},
	{
		name:         "agent-shell",
		info:         map[string]any{"name": "agent-shell", "version": "0.14.2"},
		capabilities: object{"fs": object{"readTextFile": true, "writeTextFile": true}, "terminal": false, "elicitation": object{"form": object{}}},
		fs:           true, elicitation: true,
		emptyParams:  "{}",
		newMeta:      map[string]any{"systemPrompt": map[string]any{"append": "Answer briefly."}}, // when the user configured one
		authenticate: true,
		authExtra:    map[string]any{"authMethod": map[string]any{"id": "environment"}},
		cancelAnswer: true,
		cancelExtra:  map[string]any{"reason": "User cancelled"},
		goalMethods:  true,   // its library sends any method from the user's own code
		reopen:       resume, // where it is listed, else load
		stray:        rendered,
		unopened:     shown,
		unknown:      unansweredRequest, // an "unhandled" box
		showsStderr:  true,
		end:          kill, // the process is deleted: no end of input and no SIGTERM come first
	},
	{
		name:         "acpx",
		info:         map[string]any{"name": "acpx", "version": "0.19.1"},
		capabilities: object{"fs": object{"readTextFile": true, "writeTextFile": true}, "terminal": true},
		fs:           true, terminal: true,
		emptyParams:  "{}",
		cancelAnswer: true,
		settles:      true,
		goalMethods:  true,
		reopen:       resume, // where it is listed, else load
		fallback:     []int{-32002, -32601, -32602},
		stray:        rendered, // while the process lives
		unopened:     policy,
		end:          ladder,
	},
	{
		// The same client where it has to load. It wants 80 ms without an update before 5 s have passed, or the whole command fails.
		name:         "acpx by load",
		info:         map[string]any{"name": "acpx", "version": "0.19.1"},
		capabilities: object{"fs": object{"readTextFile": true, "writeTextFile": true}, "terminal": true},
		fs:           true, terminal: true,
		emptyParams: "{}",
		reopen:      load,
		quiet:       80 * time.Millisecond,
		patience:    5 * time.Second,
		fallback:    []int{-32002, -32601, -32602},
		unopened:    policy,
		end:         ladder,
	},
}

type (
	object = map[string]any
	array  = []any
)

func profileOf(name string) profile {
	for _, p := range profiles {
		if p.name == name {
			return p
		}
	}
	panic("there is no profile " + name)
}
