package session

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// RuleID names a rule.
type RuleID string

// RuleVerdict is what a rule says of the calls it covers.
type RuleVerdict string

const (
	VerdictAllow RuleVerdict = "allow"
	VerdictAsk   RuleVerdict = "ask"
	VerdictDeny  RuleVerdict = "deny"
)

// RuleKind is what a rule covers.
type RuleKind string

const (
	RuleCommand RuleKind = "command" // exactly this command line
	RulePrefix  RuleKind = "prefix"  // commands that begin with these words
	RuleEdit    RuleKind = "edit"    // file edits in this directory and below
	RuleTool    RuleKind = "tool"    // every call of the tool
	RuleGlob    RuleKind = "glob"    // file edits of files that a pattern names
	RuleServer  RuleKind = "server"  // every call of the external server's tools, or of SERVER/TOOL
	RuleHost    RuleKind = "host"    // fetches from hosts that a pattern names
	RuleAny     RuleKind = "any"     // everything but file edits; only for a configuration that cannot be used, and never allowing
)

// Rule is a standing answer of the user. Where it counts, is Session or Cwd; with neither it counts everywhere, and never allows.
type Rule struct {
	ID      RuleID
	Verdict RuleVerdict
	Kind    RuleKind
	Session SessionID
	Cwd     string
	Tool    string // "" any built-in tool
	// Version is the implementation that an allowing rule was given for, "" for any of a built-in tool. Others go by the name alone: an
	// update must not take back a refusal.
	Version string
	Value   string // a command line, a JSON list of words, or an absolute directory
	// Programs is the digest of the files that the command of an allowing rule ran when it was given, "" for whatever they hold.
	Programs  string
	Origin    string     // the configuration file and line that it is written in; such a rule is not stored
	Goal      string     // a grant of this Goal; such a rule is not stored as one
	Approval  ApprovalID // the answer that made it
	CreatedAt time.Time
	RevokedAt time.Time
}

// Subject is what rules are held against: one planned call.
type Subject struct {
	Session  SessionID
	Cwd      string
	Tool     string
	Version  string
	External bool
	Server   string // of an external tool
	Outer    string // the same as SERVER/TOOL, with the tool's own name
	Edit     bool   // a provable file edit
	Command  string
	Host     string   // that the call goes to, with a port that is not the usual one
	Paths    []string // of the files that an edit changes
	Place    Place    // the worst of where they lie
	Writes   []string // of the files that redirections of the command name
	Touches  []string // of those that it names to programs which change them
	Programs string
}

func subjectOf(e Effect, s Session, k Kind) Subject {
	b := Subject{Session: s.ID, Cwd: s.Cwd, Tool: e.Tool, Version: e.Version, External: e.Plan.External != nil, Command: e.Plan.Command, Host: e.Plan.Host,
		Place: e.Plan.Place, Edit: k.Edits() && e.Class == StateProbe && len(e.Plan.Files) > 0, Programs: programsDigest(e.Plan)}
	if e.Plan.External != nil {
		b.Server, b.Outer = e.Plan.External.Server, e.Plan.External.Server+"/"+e.Plan.External.Tool
	}
	for _, f := range e.Plan.Files {
		b.Paths = append(b.Paths, f.Path)
	}
	b.Writes, b.Touches = e.Plan.Writes, e.Plan.Touches
	return b
}

// Rulebook is what configurations say of the calls of a session.
type Rulebook struct {
	User    []Rule
	Project []Rule // counts while Trust does
	Trust   Trust  // in the project, as it was read
}

// rules are those that count now.
func (b Rulebook) rules(tx Tx) ([]Rule, error) {
	if len(b.Project) == 0 {
		return b.User, nil
	}
	switch now, err := tx.Trust(b.Trust.Dir); {
	case IsNotFound(err):
		return b.User, nil
	case err != nil || !now.Covers(b.Trust.Digest):
		return b.User, err
	}
	return slices.Concat(b.User, b.Project), nil
}

// Always is the rule that a standing answer about this call makes: in this directory, and no wider than the question that was shown. Calls
// that a person should decide on one by one have none.
func Always(b Subject) (Rule, bool) {
	r := Rule{Cwd: b.Cwd, Tool: b.Tool, Version: b.Version}
	switch {
	case b.External:
		r.Kind = RuleTool
	case b.Place == PlaceProtected || b.Place == PlaceSecret:
		return r, false
	case b.Edit:
		r.Kind, r.Value = RuleEdit, commonDir(b.Paths)
	case b.Command != "":
		r.Kind, r.Value, r.Programs = RuleCommand, strings.TrimSpace(b.Command), b.Programs
	case b.Host != "":
		r.Kind, r.Value = RuleHost, b.Host
	default:
		return r, false
	}
	given := r
	given.Verdict = VerdictAllow
	return r, given.covers(b) == coversSurely // an answer for ever that would not hold for the same call again is none
}

// commonDir is the deepest directory that all files lie in.
func commonDir(files []string) string {
	dir := filepath.Dir(files[0])
	for _, f := range files[1:] {
		for !within(dir, f) {
			dir = filepath.Dir(dir)
		}
	}
	return dir
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// covered is how surely a rule is about a call.
type covered int

const (
	coversNot covered = iota
	coversMaybe
	coversSurely
)

// covers holds a rule against a call. A rule that allows is read strictly, every other one widely.
func (r Rule) covers(b Subject) covered {
	strict := r.Verdict == VerdictAllow
	if !r.counts(b, strict) || r.Tool != "" && r.Tool != b.Tool || r.Tool == "" && b.External != (r.Kind == RuleServer) && r.Kind != RuleAny ||
		strict && r.Version != "" && r.Version != b.Version || strict && b.External && r.Version == "" && r.Origin == "" && r.Kind != RuleServer {
		return coversNot
	}
	switch r.Kind {
	case RuleTool:
		return surely(r.Tool != "" && (!strict || b.External)) // a built-in tool is allowed by what it does, never as a whole
	case RuleEdit:
		inside := func(p string) bool { return within(r.Value, p) }
		if strict {
			return surely(b.Edit && r.reaches(b) && !slices.ContainsFunc(b.Paths, func(p string) bool { return !inside(p) }))
		}
		return b.changes(inside)
	case RuleGlob:
		named := func(p string) bool { return matches(r.pattern(b.Cwd), p) }
		if strict {
			return surely(b.Edit && r.reaches(b) && !slices.ContainsFunc(b.Paths, func(p string) bool { return !named(p) }))
		}
		return b.changes(named)
	case RuleServer:
		return surely(b.External && (r.Value == b.Server || r.Value == b.Outer))
	case RuleHost:
		return surely(b.Host != "" && namesHost(r.Value, b.Host, strict))
	case RuleAny:
		return surely(!strict && !b.Edit)
	case RuleCommand:
		same := b.Command != "" && strings.TrimSpace(b.Command) == r.Value
		if strict {
			return surely(same && (r.Programs == "" || r.Programs == b.Programs))
		}
		if same {
			return coversSurely
		}
		var words []string
		if c := ReadCommand(r.Value); len(c.Parts) == 1 {
			words = c.Parts[0]
		}
		return coversPart(b.Command, words, true)
	case RulePrefix:
		words := r.words()
		if strict {
			c := ReadCommand(b.Command)
			return surely(c.Simple && readsAlike(b.Command, c) && len(words) > 0 && len(c.Parts[0]) >= len(words) && slices.Equal(c.Parts[0][:len(words)], words) && !carriesMore(b.Command, words))
		}
		return coversPart(b.Command, words, false)
	}
	return coversNot
}

// changes tells how surely a call changes one of some files.
func (b Subject) changes(one func(path string) bool) covered {
	switch {
	case slices.ContainsFunc(b.Paths, one) || slices.ContainsFunc(b.Writes, one):
		return coversSurely
	case slices.ContainsFunc(b.Touches, one):
		return coversMaybe
	}
	return coversNot
}

func surely(yes bool) covered {
	if yes {
		return coversSurely
	}
	return coversNot
}

// counts tells whether a call is in the place that a rule was given for. A refusal for a directory holds below it as well.
func (r Rule) counts(b Subject, strict bool) bool {
	switch {
	case r.Session != "":
		return r.Session == b.Session
	case r.Cwd != "":
		return r.Cwd == b.Cwd || (!strict || r.Origin != "") && within(r.Cwd, b.Cwd)
	}
	return !strict || r.Origin != "" // what a person wrote into a file of theirs counts where they wrote that it does
}

// coversPart looks for a command in each part of a line. exact: a part that goes on behind the words is another command.
func coversPart(line string, words []string, exact bool) covered {
	if line == "" || len(words) == 0 {
		return coversNot
	}
	for _, part := range ReadCommand(line).Parts {
		for _, p := range [][]string{part, Program(part)} {
			if begins(p, words) && (!exact || len(p) == len(words)) {
				return coversSurely
			}
		}
	}
	if mentions(line, words) || mayRun(ReadFacts(line), words) {
		return coversMaybe
	}
	return coversNot
}

func (r Rule) words() []string {
	var words []string
	if json.Unmarshal([]byte(r.Value), &words) != nil {
		return nil // an unreadable rule covers nothing; it is shown as it stands
	}
	return words
}

// PrefixRule covers commands that begin with the words of this one. Only a simple command has words that say what is run.
func PrefixRule(command string) (Rule, bool) {
	c := ReadCommand(command)
	if !c.Simple || !readsAlike(command, c) || carriesMore(command, c.Parts[0]) {
		return Rule{}, false
	}
	b, err := json.Marshal(c.Parts[0])
	return Rule{Kind: RulePrefix, Value: string(b)}, err == nil
}

// Standing is what the rules say of a call, all together.
type Standing string

const (
	StandingNone    Standing = ""
	StandingAllow   Standing = "allow"
	StandingGranted Standing = "granted" // by the Goal that the call is made for
	StandingAsk     Standing = "ask"
	StandingDeny    Standing = "deny"
	StandingDoubt   Standing = "doubt" // what is refused may be meant
)

// Stand holds every rule against a call. A refusal wins over everything, a later question over what allows. What only may be covered by a
// rule that refuses is a question that no other rule answers.
func Stand(rules []Rule, b Subject) (Standing, RuleID) {
	var allow, ask, doubt *Rule
	for i, r := range rules {
		c := r.covers(b)
		switch {
		case c == coversNot:
		case r.Verdict == VerdictDeny && c == coversSurely:
			return StandingDeny, r.ID
		case r.Verdict == VerdictDeny:
			doubt = &rules[i]
		case r.Verdict == VerdictAllow && (allow == nil || r.CreatedAt.After(allow.CreatedAt)):
			allow = &rules[i]
		case r.Verdict != VerdictAllow && (ask == nil || r.CreatedAt.After(ask.CreatedAt)):
			ask = &rules[i]
		}
	}
	switch {
	case doubt != nil:
		return StandingDoubt, doubt.ID
	case ask != nil && (allow == nil || !allow.CreatedAt.After(ask.CreatedAt)):
		return StandingAsk, ask.ID
	case allow == nil:
		return StandingNone, ""
	case allow.Goal != "":
		return StandingGranted, RuleID("")
	}
	return StandingAllow, allow.ID
}

// Text says in words what a rule covers.
func (r Rule) Text() string { return r.text("the command " + oneLine(r.Value)) }

// Offer is Text beside the call that the rule would be made of, which is not said twice.
func (r Rule) Offer() string { return r.text("this command line") }

func (r Rule) text(command string) string {
	what := ""
	switch r.Kind {
	case RuleCommand:
		what = "exactly " + command
		if r.Programs != "" {
			what += ", while the files it runs stay as they are"
		}
	case RulePrefix:
		what = "commands that begin with " + shownLine(strings.Join(r.words(), " "))
	case RuleEdit:
		what = "file edits in " + shownLine(r.Value) + " and below"
		if r.Tool != "" {
			what += " with " + r.Tool
		}
	case RuleGlob:
		what = "file edits of " + r.Value
	case RuleServer:
		what = "every tool of the server " + r.Value
		if server, tool, ok := strings.Cut(r.Value, "/"); ok {
			what = "the tool " + tool + " of the server " + server
		}
	case RuleHost:
		what = "fetches from " + shownLine(r.Value)
		if domain, below := strings.CutPrefix(r.Value, "*."); below {
			what = "fetches from every host below " + shownLine(domain)
		}
	case RuleAny:
		what = "everything but file edits"
	case RuleTool:
		what = "every call of " + r.Tool
		if r.Version != "" {
			what += " as it is defined now"
		}
	}
	switch {
	case r.Goal != "":
		return what
	case r.Origin != "":
		return what + ", by " + r.Origin
	case r.Session != "":
		return what + ", in session " + string(r.Session)
	case r.Cwd != "":
		return what + ", in sessions of " + r.Cwd
	}
	return what + ", everywhere"
}

func oneLine(s string) string { return shownLine(strings.ReplaceAll(s, "\n", " ⏎ ")) }

// programsDigest is over the files that a command runs; "" when it names none.
func programsDigest(p Plan) string {
	if len(p.Programs) == 0 {
		return ""
	}
	var parts []string
	for _, f := range p.Programs {
		parts = append(parts, f.Path, f.Digest)
	}
	return Digest(parts...)
}

// RuleError: a rule that cannot be made. Member is the part of it that is wrong.
type RuleError struct{ Member, Message string }

func (e *RuleError) Error() string { return fmt.Sprintf("%s: %s", e.Member, e.Message) }
