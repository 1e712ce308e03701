package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"holdfast/internal/config"
	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/mcp/toolbox"
	"holdfast/session"
)

// projects answers what the directory of a session brings along and what of it counts. A project's file counts while the user's trust
// covers it exactly as it is.
type projects struct {
	home   string
	st     session.Store
	engine func() *session.Engine
	user   config.File // as this process found it

	mu    sync.Mutex
	shown map[session.SessionID]string // the digest of what was last shown in a session
	texts map[string]string            // of instruction files, by the directories of a session
	git   map[string]string            // what the last look found of git, by directory
}

func newProjects(home string, st session.Store, engine func() *session.Engine) *projects {
	user, _ := userFile(home) // what is wrong with it is told by the toolbox
	return &projects{home: home, st: st, engine: engine, user: user, shown: map[session.SessionID]string{}, texts: map[string]string{}, git: map[string]string{}}
}

// standing is a project with what the user has said about it.
type standing struct {
	config.Project
	trust session.Trust // zero when it was never trusted
}

func (s standing) trusted() bool { return s.Err == nil && s.trust.Covers(s.Digest) }

// state is one word for listings.
func (s standing) state() string {
	switch {
	case !s.Exists():
		return "none"
	case s.Err != nil:
		return "unusable"
	case s.trusted():
		return "trusted"
	case s.trust.Dir != "" && s.trust.Ended.IsZero():
		return "changed"
	case s.trust.Dir != "":
		return "revoked"
	}
	return "untrusted"
}

// look reads the project of a directory. st is nil without a store: then nothing was ever trusted.
func look(ctx context.Context, st session.Store, cwd string) (s standing, err error) {
	if s.Project, err = config.FindProject(cwd); err != nil || !s.Exists() {
		return s, err
	}
	if s.Err = usable(s.File, s.Err); st == nil {
		return s, nil
	}
	err = st.Read(ctx, func(tx session.Tx) (err error) { s.trust, err = tx.Trust(s.Dir); return err })
	if session.IsNotFound(err) {
		s.trust, err = session.Trust{}, nil
	}
	return s, err
}

// effective is the configuration that counts in a directory.
func (p *projects) effective(ctx context.Context, cwd string) config.Config {
	s, err := look(ctx, p.st, cwd)
	if err != nil || !s.trusted() {
		return p.user.Config
	}
	return config.Merge(p.user, s.File)
}

// servers lists what a session's project adds, and what the user has to be told.
func (p *projects) servers(ctx context.Context, sess session.Session) (out []toolbox.ProjectServer, notices []string, err error) {
	s, err := look(ctx, p.st, sess.Cwd)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil // a directory that is gone says so elsewhere
	}
	if err != nil || !s.Exists() {
		return nil, nil, err
	}
	if !s.trusted() {
		if len(s.lines()) < 2 { // the notice says all there is
			p.show(sess.ID, s)
		}
		return nil, []string{s.notice()}, nil
	}
	for _, name := range config.Collisions(p.user, s.File) {
		notices = append(notices, fmt.Sprintf("The MCP server %q of the project is left out: your own configuration has one of that name, which is used.", name))
	}
	more, said := s.adds(p.user)
	for _, sv := range more {
		out = append(out, toolbox.ProjectServer{Server: sv, Dir: s.Dir})
	}
	notices = append(notices, said...)
	return out, notices, nil
}

// adds lists the servers that a project has and the user has not.
func (s standing) adds(user config.File) (out []toolbox.Server, notices []string) {
	var c config.Config
	c.MCP.Servers = map[string]config.Server{}
	for name, sv := range s.File.Config.MCP.Servers {
		if _, taken := user.Config.MCP.Servers[name]; taken {
			continue
		}
		kept, withheld := withholding(sv)
		if c.MCP.Servers[name] = kept; withheld != "" && !sv.Disabled {
			notices = append(notices, fmt.Sprintf("The MCP server %q of the project asks for %s, which it does not get: it is for the model's provider.", name, withheld))
		}
	}
	slices.Sort(notices)
	return configured(c), notices
}

// withholding takes the model providers' keys from what a project's server is handed.
func withholding(s config.Server) (config.Server, string) {
	var withheld []string
	s.EnvFrom = slices.DeleteFunc(slices.Clone(s.EnvFrom), func(name string) bool {
		if provider.SecretEnv(name) {
			withheld = append(withheld, name)
		}
		return provider.SecretEnv(name)
	})
	return s, strings.Join(withheld, ", ")
}

// notice is the one line that a session is opened with while the project does not count.
func (s standing) notice() string {
	if s.Err != nil {
		return strings.TrimSuffix(s.Err.Error(), ".") + "."
	}
	why := "which you have not trusted; nothing of it is used"
	if s.state() == "changed" {
		why = "which has changed since you trusted it; nothing of it is used"
	}
	return fmt.Sprintf("The project has a configuration of its own, %s, %s. It %s. Type /trust to look at it and decide, or run: holdfast trust %s",
		s.File.Path, why, s.briefly(), shellWord(s.Dir))
}

// briefly is what a project would do, on one line.
func (s standing) briefly() string {
	lines := s.lines()
	switch {
	case len(lines) == 0:
		return "sets nothing"
	case len(lines) == 1 && strings.HasPrefix(lines[0], "starts "):
		return line(lines[0], 200)
	case len(lines) == 1:
		return "sets " + line(lines[0], 200)
	}
	return fmt.Sprintf("sets %d things, the first: %s", len(lines), line(lines[0], 160))
}

// lines is all that a project would do.
func (s standing) lines() []string { return s.File.Describe(toolbox.Masked) }

// text is what a person reads before deciding.
func (s standing) text() string {
	if !s.Exists() {
		return fmt.Sprintf("%s has no configuration of its own (%s); there is nothing to trust.", s.Dir, config.ProjectFile)
	}
	if s.Err != nil {
		return s.Err.Error() + "."
	}
	out := s.File.Path + " (" + s.Digest[:12] + ") is " + s.state() + ". It"
	lines := s.lines()
	if len(lines) == 0 {
		return out + " sets nothing."
	}
	for _, l := range lines {
		out += "\n- " + line(l, 400)
	}
	if len(s.Programs) > 0 {
		names := make([]string, len(s.Programs))
		for i, n := range s.Programs {
			names[i] = fmt.Sprintf("%q", n)
		}
		out += "\nThese files of the project are part of it: " + strings.Join(names, ", ") + ". When one of them or the configuration changes, you are asked again."
	}
	return out
}

func (p *projects) show(id session.SessionID, s standing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown[id] = s.Digest
}

func (p *projects) wasShown(id session.SessionID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown[id]
}

// Trust answers /trust: it shows the project, trusts what was shown, or takes the trust back.
func (p *projects) Trust(ctx context.Context, sess session.Session, words []string) (string, error) {
	s, err := look(ctx, p.st, sess.Cwd)
	if err != nil {
		return "", err
	}
	switch {
	case len(words) == 0:
	case len(words) == 1 && words[0] == "yes" && s.Err == nil && s.Exists():
		if p.wasShown(sess.ID) != s.Digest {
			p.show(sess.ID, s)
			return "It is not what was shown before, so nothing was trusted. Now: " + s.text() + "\n/trust yes trusts this.", nil
		}
		if _, err := p.engine().TrustProject(ctx, s.asTrust("editor")); err != nil {
			return "", err
		}
		return "Trusted as it is now: " + s.File.Path + ". /trust no takes it back.", nil
	case len(words) == 1 && words[0] == "no":
		if s.trust.Dir == "" || !s.trust.Ended.IsZero() {
			return "Nothing is trusted here, and nothing of the project's configuration is used.", nil
		}
		if _, err := p.engine().RevokeTrust(ctx, s.Dir); err != nil {
			return "", err
		}
		return "No longer trusted: " + s.Dir + ". Nothing of its configuration is used from the next request on.", nil
	}
	p.show(sess.ID, s)
	text := s.text()
	switch {
	case s.trusted():
		text += "\n/trust no takes the trust back."
	case s.Err == nil && s.Exists():
		text += "\n/trust yes trusts this, /trust no does not; until then nothing of it is used."
	}
	return text, nil
}

func (s standing) asTrust(door string) session.Trust {
	return session.Trust{Dir: s.Dir, Digest: s.Digest, Shown: s.text(), Door: door}
}

// shellWord is a path as a person can paste it.
func shellWord(path string) string {
	if strings.IndexFunc(path, func(r rune) bool {
		return r > '~' || r <= ' ' || strings.ContainsRune("\"'`\\$;&|<>()*?[]{}!#~", r)
	}) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(line(path, whole), "'", `'\''`) + "'"
}

// here is the project of the directory that a command runs in.
func here(ctx context.Context, db *store.DB) (standing, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return standing{}, err
	}
	if db == nil {
		return look(ctx, nil, cwd)
	}
	return look(ctx, store.Store{DB: db}, cwd)
}
