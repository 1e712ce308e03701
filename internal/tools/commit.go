package tools

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"holdfast/internal/fault"
	"holdfast/session"
)

// tempMark is in the name of every temporary file, so that leftovers can be found.
const tempMark = ".holdfast-tmp-"

// tempName names the temporary file of one change: recovery finds the leftovers of its own call and of no other.
func tempName(change session.FileChange, random string) string {
	return tempMark + versionOf(digestOf([]byte(change.Path+"\x00"+change.Before+"\x00"+change.After+change.Exec))) + "-" + random
}

// step is one change of a plan on its way to the disk.
type step struct {
	session.FileChange
	place  place
	from   *step       // the step that deletes what this one moves
	dir    folder      // open from staging on
	old    fs.FileInfo // nil without an old file
	beside string      // name of the new content beside the file, "" when there is none
	kept   string      // name of the old content beside the file once the step was taken, "" when there is none
	made   made
	note   string
}

// commit makes all changes of a plan, or none. Everything is beside its file, and every file was looked at once more, before the first one
// is changed; from then on it goes through, and what was done is taken back when a file turns out to be changed by somebody else.
func (o Options) commit(ctx context.Context, env session.ToolEnv, pl session.Plan) (session.Output, error) {
	steps, err := o.steps(env, pl)
	if err != nil {
		return session.Output{}, err
	}
	defer func() {
		for _, s := range steps {
			s.close()
		}
	}()
	for _, s := range steps {
		if err == nil {
			err = s.unwritable(s.stage())
		}
	}
	if err == nil {
		fault.Point("tools.temp_written")
		err = unchanged(ctx, steps)
	}
	if err != nil {
		discard(steps)
		if cause := context.Cause(ctx); cause != nil && o.letsGo(cause) {
			return session.Output{}, cause
		}
		return session.Output{}, err
	}
	for i, s := range steps {
		if err := s.take(); err != nil {
			return takeBack(env, pl, steps, i, s.unwritable(err))
		}
		fault.Point("tools.renamed")
	}
	for _, s := range steps {
		s.forget()
	}
	return done(env, pl, steps), nil
}

// steps finds the places of a plan, which must still be the places that were approved.
func (o Options) steps(env session.ToolEnv, pl session.Plan) ([]*step, error) {
	if len(pl.Files) == 0 {
		return nil, fmt.Errorf("a plan without a change: %w", errors.ErrUnsupported)
	}
	var out []*step
	for _, change := range pl.Files {
		p, err := o.locateWrite(env, change.Path)
		switch {
		case err != nil:
			return nil, err
		case p.abs != change.Path:
			return nil, failf("%s leads to %s since a link was put in its way. Nothing was written; look at it again.", shown(env, change.Path), shown(env, p.abs))
		case pl.Place.Worse(p.kind) != pl.Place:
			return nil, failf("%s is not where it was when the call was planned. Nothing was written; try again.", shown(env, p.abs))
		}
		out = append(out, &step{FileChange: change, place: p})
	}
	for i, s := range out {
		if s.From != "" && i+1 < len(out) && out[i+1].Path == s.From {
			s.from = out[i+1]
		}
	}
	return out, nil
}

// stage opens the folder of the file and puts the new content beside it.
func (s *step) stage() (err error) {
	if s.Before == absent {
		if s.made, err = s.place.makeParents(); err != nil {
			return err
		}
	}
	if s.dir, err = s.place.parent(); err != nil {
		return err
	}
	if s.old, err = s.dir.Lstat(s.place.base()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch {
	case s.old != nil && !s.old.Mode().IsRegular():
		return failf("%s is not a regular file.", s.place.rel)
	case s.After == absent, s.from != nil && s.After == s.from.Before && s.Exec == "":
		return nil // nothing is written
	}
	return s.write()
}

// write puts the new content beside the file, with what the old one has: owner, permissions, extended attributes.
func (s *step) write() error {
	like, from := s.dir, s.place.base()
	old := s.old
	if s.from != nil {
		dir, err := s.from.place.parent()
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }()
		like, from = dir, s.from.place.base()
		if old, err = dir.Lstat(from); err != nil {
			return err
		}
	}
	s.beside = tempName(s.FileChange, rand.Text())
	mode := fs.FileMode(0o666)
	if old != nil {
		mode = 0o600
	} else if s.Exec == "yes" {
		mode = 0o777
	}
	f, err := s.dir.OpenFile(s.beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		s.beside = ""
		return err
	}
	if _, err = f.Write(s.New()); err == nil && old != nil {
		keepOwner(f, old)
		s.note += like.keepAttributes(from, f)
		err = f.Chmod(executable(old.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky), s.Exec)) // whatever the umask
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// executable is a mode as a change wants it: who may read the file may run it, or nobody may.
func executable(m fs.FileMode, exec string) fs.FileMode {
	switch {
	case exec == "yes" && m&0o100 == 0:
		return m | m&0o444>>2
	case exec == "no":
		return m &^ 0o111
	}
	return m
}

// execOf is what PathState and FileChange call it; where permissions are none of git's, it is not known.
func execOf(info fs.FileInfo) string {
	switch {
	case info == nil || foldsModes:
		return ""
	case info.Mode()&0o100 != 0:
		return "yes"
	}
	return "no"
}

// unchanged is the look at every file before the first one is changed.
func unchanged(ctx context.Context, steps []*step) error {
	for _, s := range steps {
		now, err := s.place.digest()
		if err != nil {
			return err
		}
		if now != s.Before {
			return s.meanwhile(now)
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return failf("Stopped before %s was written (%v). Nothing was changed.", steps[0].place.rel, cause)
	}
	return nil
}

func (s *step) meanwhile(now string) error {
	switch {
	case s.Before == absent:
		return failf("%s was created by somebody else meanwhile. Nothing was written; read it first.", s.place.rel)
	case now == absent:
		return failf("%s was moved or deleted by somebody else meanwhile. Nothing was written.", s.place.rel)
	}
	return failf("%s was changed by somebody else meanwhile. Nothing was written; read it again.", s.place.rel)
}

// unwritable is an error for the model.
func (s *step) unwritable(err error) error {
	var te *session.ToolError
	if err == nil || errors.As(err, &te) {
		return err
	}
	return failf("%s cannot be written: %v. Nothing was changed.", s.place.rel, plainError(err))
}

// take changes the one file. An error means that it is as it was.
func (s *step) take() error {
	var err error
	switch {
	case s.After == absent:
		err = s.remove()
	case s.Before == absent:
		err = s.create()
	default:
		err = s.swap()
	}
	if err != nil {
		return err
	}
	if err := s.dir.sync(); err != nil {
		s.note += fmt.Sprintf(" Its folder could not be synced (%v): a power cut may undo it.", plainError(err))
	}
	return nil
}

// create puts a new file in place. It never replaces one that appeared meanwhile.
func (s *step) create() error {
	name := s.place.base()
	var err error
	if s.beside == "" { // it only moves: it stays the same file, with all that belongs to it
		if err = s.from.dir.linkTo(s.from.place.base(), s.dir, name); err == nil {
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			return s.meanwhile("")
		}
		if err := s.write(); err != nil { // another file system, or one without links
			return err
		}
	}
	err = s.dir.Link(s.beside, name)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, errors.ErrUnsupported) { // no hard links here
		if _, err = s.dir.Lstat(name); err == nil {
			err = fs.ErrExist
		} else if errors.Is(err, fs.ErrNotExist) {
			err = s.dir.Rename(s.beside, name)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return s.meanwhile("")
	}
	if err == nil {
		_ = s.dir.Remove(s.beside) // still there beside a new file
		s.beside = ""
	}
	return err
}

// swap puts the new content in place and keeps the old beside it. Where the system can exchange two files, what was displaced is looked at
// afterwards: even a file that was saved in the last moment is noticed, and put back.
func (s *step) swap() error {
	name := s.place.base()
	if n := namesOf(s.old); n > 1 {
		s.note += fmt.Sprintf(" It had %d names (hard links); the others keep the old content.", n)
	}
	if exchangeHook != nil {
		exchangeHook(s.Path)
	}
	err := s.dir.exchange(s.beside, name)
	if err == nil {
		displaced := s.dir.digest(s.beside)
		if displaced == s.Before {
			s.kept, s.beside = s.beside, ""
			return nil
		}
		if err := s.dir.exchange(s.beside, name); err != nil {
			return err
		}
		if s.dir.digest(s.beside) != s.After { // saved once more between the two exchanges: both stay
			s.note, s.beside = "", ""
		}
		return s.meanwhile(displaced)
	}
	if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOSYS) {
		return err
	}
	if now := s.dir.digest(name); now != s.Before {
		return s.meanwhile(now)
	}
	kept := tempName(s.FileChange, "old-"+rand.Text())
	if s.dir.Link(name, kept) == nil {
		s.kept = kept
	}
	if err := s.dir.Rename(s.beside, name); err != nil {
		s.forget()
		return err
	}
	s.beside = ""
	return nil
}

// exchangeHook is called right before a file is put in place; a test is the user who saves it then.
var exchangeHook func(path string)

// remove takes a file out of the way, and only then looks at what it was: a file that was saved in the last moment is put back.
func (s *step) remove() error {
	name, aside := s.place.base(), tempName(s.FileChange, "old-"+rand.Text())
	if exchangeHook != nil {
		exchangeHook(s.Path)
	}
	if err := s.dir.Rename(name, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return s.meanwhile(absent)
		}
		return err
	}
	s.kept = aside
	if now := s.dir.digest(aside); now != s.Before {
		s.restore()
		return s.meanwhile(now)
	}
	return nil
}

// restore gives a deleted file its name again, unless there is another one by now.
func (s *step) restore() bool {
	err := s.dir.Link(s.kept, s.place.base())
	if err != nil && !errors.Is(err, fs.ErrExist) {
		if _, e := s.dir.Lstat(s.place.base()); errors.Is(e, fs.ErrNotExist) {
			err = s.dir.Rename(s.kept, s.place.base())
		}
	}
	if err == nil {
		s.forget()
	}
	return err == nil
}

// digest is the digest of a file in a folder; what cannot be read has none.
func (d folder) digest(name string) string {
	b, _, err := d.content(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent
	case err != nil:
		return ""
	}
	return digestOf(b)
}

// forget removes the old content that was kept beside the file.
func (s *step) forget() {
	if s.kept != "" {
		_ = s.dir.Remove(s.kept) // a leftover at most, which recovery knows
		s.kept = ""
	}
}

func (s *step) close() {
	if s.dir.Root != nil {
		_ = s.dir.Close()
	}
}

// discard removes what was put beside the files, and the folders that were made for them.
func discard(steps []*step) {
	for i := len(steps) - 1; i >= 0; i-- {
		if s := steps[i]; s.beside != "" {
			_ = s.dir.Remove(s.beside)
		}
		steps[i].made.undo()
	}
}

// takeBack undoes the first n steps, the last one first, because the next one failed. What cannot be undone is said.
func takeBack(env session.ToolEnv, pl session.Plan, steps []*step, n int, why error) (session.Output, error) {
	for n > 0 && steps[n-1].undo() {
		n--
	}
	discard(steps[n:])
	if n == 0 {
		return session.Output{}, why
	}
	text := fmt.Sprintf("%v But what was done before that could not be undone.%s", why, each(env, steps, n))
	for _, s := range steps[:n] {
		s.forget()
	}
	return session.Output{Text: text, IsError: true, Digest: session.AppliedDigest(pl.Files, n)}, nil
}

// undo takes one step back.
func (s *step) undo() bool {
	name := s.place.base()
	switch {
	case s.After == absent:
		return s.kept != "" && s.restore()
	case s.Before == absent:
		info, err := s.dir.Lstat(name)
		if err != nil {
			return errors.Is(err, fs.ErrNotExist)
		}
		same := false
		if s.from != nil {
			was, err := s.from.dir.Lstat(s.from.place.base())
			same = err == nil && os.SameFile(info, was)
		}
		return (same || s.dir.digest(name) == s.After) && s.dir.Remove(name) == nil
	case s.kept == "" || s.dir.digest(name) != s.After:
		return false
	}
	if s.dir.Rename(s.kept, name) != nil {
		return false
	}
	s.kept = ""
	return true
}

// each says of every file whether it was changed.
func each(env session.ToolEnv, steps []*step, n int) string {
	var b strings.Builder
	for i, s := range steps {
		what := "applied"
		if i >= n {
			what = "not applied"
		}
		fmt.Fprintf(&b, "\n%s: %s", shown(env, s.Path), what)
	}
	return b.String()
}

// done is what the model is told.
func done(env session.ToolEnv, pl session.Plan, steps []*step) session.Output {
	out := session.Output{Digest: session.AppliedDigest(pl.Files, len(pl.Files))}
	var lines []string
	for i, s := range steps {
		name := shown(env, s.place.abs)
		switch {
		case s.After == absent && i > 0 && steps[i-1].from == s:
			continue
		case s.After == absent:
			lines = append(lines, fmt.Sprintf("Deleted %s.%s", name, s.note))
		case s.from != nil:
			lines = append(lines, fmt.Sprintf("Moved %s to %s, version %s.%s", shown(env, s.From), name, versionOf(s.After), s.note))
		case s.Before == absent:
			lines = append(lines, fmt.Sprintf("Created %s, version %s.%s", name, versionOf(s.After), s.note))
		default:
			lines = append(lines, fmt.Sprintf("Replaced %s, version %s.%s", name, versionOf(s.After), s.note))
		}
	}
	var said struct{ Notes []string }
	if stored(pl, &said) == nil {
		lines = append(lines, said.Notes...)
	}
	out.Text = clip(strings.Join(lines, "\n"), maxResult, "")
	return out
}
