package tools

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"holdfast/internal/fault"
	"holdfast/session"
)

// tempMark is in the name of every temporary file, so that leftovers can be found.
const tempMark = ".holdfast-tmp-"

// tempName names the temporary file of one change: recovery finds the leftovers of its own call and of no other.
func tempName(change session.FileChange, random string) string {
	return tempMark + versionOf(digestOf([]byte(change.Path+"\x00"+change.Before+"\x00"+change.After))) + "-" + random
}

// replace makes the one change of a plan.
func (o Options) replace(ctx context.Context, env session.ToolEnv, pl session.Plan) (session.Output, error) {
	change, p, err := o.planned(env, pl)
	if err != nil {
		return session.Output{}, err
	}
	note, err := p.swap(ctx, change)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && o.letsGo(cause) {
			return session.Output{}, cause
		}
		return session.Output{}, err
	}
	what := "Replaced"
	if change.Before == absent {
		what = "Created"
	}
	return session.Output{Text: fmt.Sprintf("%s %s, version %s.%s", what, shown(env, p.abs), versionOf(change.After), note), Digest: change.After}, nil
}

// planned finds the one change of a plan and its place, which must still be the place that was approved.
func (o Options) planned(env session.ToolEnv, pl session.Plan) (session.FileChange, place, error) {
	if len(pl.Files) != 1 {
		return session.FileChange{}, place{}, fmt.Errorf("a plan with %d changes: %w", len(pl.Files), errors.ErrUnsupported)
	}
	change := pl.Files[0]
	p, err := o.locateWrite(env, change.Path)
	if err == nil && p.abs != change.Path {
		err = failf("%s leads to %s since a link was put in its way. Nothing was written; look at it again.", shown(env, change.Path), shown(env, p.abs))
	}
	return change, p, err
}

// swap puts new content in place by rename. The old content is looked at once more right before it. An error means that nothing was
// changed; what went wrong after the rename is a note.
func (p place) swap(ctx context.Context, change session.FileChange) (note string, err error) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return "", p.unwritable(err)
	}
	defer func() { _ = root.Close() }()
	old, err := p.prepare(root)
	if err != nil {
		return "", p.unwritable(err)
	}
	tmp := filepath.Join(filepath.Dir(p.rel), tempName(change, rand.Text()))
	err = writeTemp(root, tmp, change.NewText, old)
	if err == nil {
		fault.Point("tools.temp_written")
		err = p.unchanged(ctx, change)
	}
	if err == nil {
		err = p.publish(root, tmp, change.Before == absent)
	}
	if err != nil {
		_ = root.Remove(tmp) // a leftover at most
		return "", p.unwritable(err)
	}
	fault.Point("tools.renamed")
	_ = root.Remove(tmp) // still there beside a new file
	if n := namesOf(old); n > 1 {
		note = fmt.Sprintf(" It had %d names (hard links); the others keep the old content.", n)
	}
	if err := syncFolder(root, p.rel); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		note += fmt.Sprintf(" Its folder could not be synced (%v): a power cut may undo it.", plainError(err))
	}
	return note, nil
}

// unwritable is an error for the model.
func (p place) unwritable(err error) error {
	var te *session.ToolError
	if errors.As(err, &te) {
		return err
	}
	return failf("%s cannot be written: %v. Nothing was changed.", p.rel, plainError(err))
}

// unchanged is the last look before the rename.
func (p place) unchanged(ctx context.Context, change session.FileChange) error {
	now, err := p.digest()
	if err != nil {
		return err
	}
	if now != change.Before {
		return failf("%s was changed by somebody else meanwhile. Nothing was written; read it again.", p.rel)
	}
	if cause := context.Cause(ctx); cause != nil {
		return failf("Stopped before %s was written (%v). Nothing was changed.", p.rel, cause)
	}
	return nil
}

// prepare makes the folders of a new file, or returns what is known of the old one.
func (p place) prepare(root *os.Root) (fs.FileInfo, error) {
	info, err := root.Stat(p.rel)
	if err == nil {
		if !info.Mode().IsRegular() {
			return nil, failf("%s is not a regular file.", p.rel)
		}
		return info, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if dir := filepath.Dir(p.rel); dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return nil, failf("The folder of %s cannot be made: %v.", p.rel, plainError(err))
		}
	}
	return nil, nil
}

// writeTemp writes a temporary file with the owner and the permissions of the old one, or those of any new file.
func writeTemp(root *os.Root, name, text string, old fs.FileInfo) error {
	mode := fs.FileMode(0o666)
	if old != nil {
		mode = 0o600
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil && old != nil {
		keepOwner(f, old)
		err = f.Chmod(old.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)) // whatever the umask
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// publish puts the temporary file in place. A new file never replaces one that appeared meanwhile.
func (p place) publish(root *os.Root, tmp string, fresh bool) error {
	if !fresh {
		return root.Rename(tmp, p.rel)
	}
	err := root.Link(tmp, p.rel)
	switch {
	case errors.Is(err, fs.ErrExist):
		return failf("%s was created by somebody else meanwhile. Nothing was written; read it first.", p.rel)
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOTSUP):
		return root.Rename(tmp, p.rel) // no hard links here
	}
	return err
}

func syncFolder(root *os.Root, rel string) error {
	d, err := root.Open(filepath.Dir(rel))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// probe tells from digests whether a write happened, and removes what a killed process left beside it.
func (o Options) probe(env session.ToolEnv, pl session.Plan) (session.Finding, error) {
	change, p, err := o.planned(env, pl)
	if err != nil {
		return unseen(err), nil
	}
	p.sweep(change)
	now, err := p.digest()
	f := session.Finding{Fact: session.FactUnknown, By: session.SettledByProbe, Lookup: session.LookupNothing, Evidence: now}
	switch {
	case err != nil:
		return unseen(err), nil
	case now == change.After:
		text := fmt.Sprintf("Written, version %s (proven by its digest after a restart).", versionOf(change.After))
		f.Fact, f.Output = session.FactCompleted, &session.Output{Text: text, Digest: change.After}
	case now == change.Before:
		f.Fact, f.Note = session.FactNotStarted, "The file is as it was before the call."
	case now == absent:
		f.Note = "The file is not there any more: something else has moved or deleted it since the call was planned."
	default:
		f.Note = fmt.Sprintf("The file is neither as before nor as intended: something else has written it (version %s now).", versionOf(now))
	}
	return f, nil
}

// unseen is what a file that cannot be looked at says.
func unseen(err error) session.Finding {
	return session.Finding{Fact: session.FactUnknown, By: session.SettledByProbe, Lookup: session.LookupFile,
		Note: "The file cannot be looked at: " + strings.TrimSuffix(err.Error(), ".") + "."}
}

// sweep removes the temporary files of one change. Those of other calls stay: their process may live.
func (p place) sweep(change session.FileChange) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	dir, err := root.Open(filepath.Dir(p.rel))
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1) // what cannot be listed stays
	for _, name := range names {
		if strings.HasPrefix(name, tempName(change, "")) {
			_ = root.Remove(filepath.Join(filepath.Dir(p.rel), name))
		}
	}
}
