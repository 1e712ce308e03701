package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"holdfast/internal/picture"
	"holdfast/session"
)

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Raw    bool   `json:"raw,omitempty"`
	From   string `json:"from,omitempty"`
}

const defaultLines = 1000

// Where a text comes from.
const (
	fromEditor = "editor"
	fromDisk   = "disk"
)

type readTool struct{ o Options }

func (readTool) Spec() session.ToolSpec {
	return spec("read", "Read a file. Text comes with line numbers; the last line of the result, in brackets, names the lines shown and the file's version, which the write tool wants back. "+
		"Use offset and limit for a part of a long file. PNG, JPEG, GIF and WebP images are shown as images, notebooks (.ipynb) cell by cell unless raw is set; of other binary files the kind and size are told. "+
		"Control characters and bytes that are no UTF-8 are shown as \\x1b. When the file is open in the user's editor, its unsaved text is shown, and the last line says so; from \"disk\" reads the file itself.",
		`{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer","description":"first line, from 1"},`+
			`"limit":{"type":"integer","description":"number of lines, 1000 unless told"},"raw":{"type":"boolean","description":"show the text of a notebook as it is in the file"},`+
			`"from":{"type":"string","enum":["editor","disk"],"description":"editor unless told"}},"required":["path"],"additionalProperties":false}`)
}
func (readTool) Class() session.Class { return session.ReadOnly }
func (readTool) Kind() session.Kind   { return session.KindRead }
func (readTool) Version() string      { return "2" }

func (t readTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in readArgs
	if err := decodeArgs("read", args, &in, "path"); err != nil {
		return session.Plan{}, err
	}
	if in.Offset < 0 || in.Limit < 0 {
		return session.Plan{}, failf("offset and limit count lines from 1; they cannot be negative.")
	}
	if in.From != "" && in.From != fromEditor && in.From != fromDisk {
		return session.Plan{}, failf("from is editor or disk, not %q.", in.From)
	}
	p, err := t.o.reach(env, in.Path)
	if err != nil {
		return session.Plan{}, err
	}
	pl, err := readingPlan(p, in, "Read "+titled(shown(env, p.abs)))
	pl.Line = in.Offset
	return pl, err
}

func (t readTool) Run(ctx context.Context, env session.ToolEnv, pl session.Plan, _ func(session.Output)) (session.Output, error) {
	var in readArgs
	if err := stored(pl, &in); err != nil {
		return session.Output{}, err
	}
	p, err := t.o.again(env, in.Path, pl)
	if err != nil {
		return session.Output{}, err
	}
	f, info, err := p.openFile()
	if errors.Is(err, fs.ErrNotExist) {
		if out, ok := t.o.unsavedFile(ctx, env, p, in); ok {
			return out, nil
		}
		return session.Output{}, failf("%s does not exist. Use list or glob to find the right path.", visibleName(in.Path))
	}
	if err != nil {
		return session.Output{}, failf("%s cannot be read: %v.", visibleName(in.Path), p.whyNot(err))
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 8192)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return session.Output{}, failf("%s cannot be read: %v.", visibleName(in.Path), plainError(err))
	}
	head = head[:n]
	r := &reading{o: t.o, in: in, info: info, all: io.MultiReader(bytes.NewReader(head), f)}
	switch {
	case picture.Kind(head) != "":
		return r.image(ctx)
	case bytes.IndexByte(head, 0) >= 0 && utf16Order(head) == nil:
		return r.binary(ctx, head)
	case strings.EqualFold(filepath.Ext(p.abs), ".ipynb") && !in.Raw && info.Size() <= maxNotebook:
		if out, err := r.notebook(ctx); err != nil || out.Text != "" {
			return out, err
		}
	}
	if in.From != fromDisk && info.Size() <= maxBuffer {
		r.editor, r.asked = editorText(ctx, env, p)
	}
	r.silent = !r.asked && (in.From == fromEditor || in.From == "" && env.Buffer != nil)
	return r.text(ctx, head)
}

// whyNot says in words what is in the place of a file.
func (p place) whyNot(err error) error {
	if errors.Is(err, syscall.EISDIR) {
		return errors.New("it is a folder; use list")
	}
	if !errors.Is(err, errNotRegular) && !errors.Is(err, syscall.ENXIO) {
		return plainError(err)
	}
	what := "no regular file"
	if info, e := os.Lstat(p.abs); e == nil {
		switch m := info.Mode(); {
		case m&fs.ModeNamedPipe != 0:
			what = "a pipe"
		case m&fs.ModeSocket != 0:
			what = "a socket"
		case m&fs.ModeDevice != 0:
			what = "a device"
		}
	}
	return fmt.Errorf("it is %s, which is not read here", what)
}

// reading is one file that is read.
type reading struct {
	o    Options
	in   readArgs
	info fs.FileInfo
	all  io.Reader // from its first byte

	asked  bool   // the editor was asked for it
	silent bool   // the editor's text was wanted, and it did not give it
	editor string // its text there
}

// image shows an image, shrunk to what models take.
func (r *reading) image(ctx context.Context) (session.Output, error) {
	if r.info.Size() > picture.MaxInput {
		return session.Output{Text: fmt.Sprintf("[image, %d bytes: too large to be shown]", r.info.Size())}, nil
	}
	b, err := io.ReadAll(io.LimitReader(untilDone(ctx, r.all), picture.MaxInput+1))
	if err != nil {
		return session.Output{}, r.failed(ctx, err)
	}
	digest := digestOf(b)
	fit, shrunk, err := picture.Fit(b)
	if err != nil {
		return session.Output{Text: fmt.Sprintf("[%d bytes, version %s: %v]", len(b), versionOf(digest), err), Digest: digest}, nil
	}
	img := session.NewImage(fit.MIME, fit.Width, fit.Height, fit.Data)
	text := fmt.Sprintf("%s\n[image file of %d bytes, version %s", img, len(b), versionOf(digest))
	if shrunk {
		text += "; shown smaller than it is"
	}
	return session.Output{Text: text + "]", Digest: digest, Images: []session.Image{img}}, nil
}

// binary tells what a file is that is not shown.
func (r *reading) binary(ctx context.Context, head []byte) (session.Output, error) {
	out := session.Output{}
	version := ""
	if r.info.Size() <= maxFile {
		b, err := io.ReadAll(io.LimitReader(untilDone(ctx, r.all), maxFile+1))
		if err != nil {
			return out, r.failed(ctx, err)
		}
		out.Digest = digestOf(b)
		version = ", version " + versionOf(out.Digest)
	}
	out.Text = fmt.Sprintf("[binary file, %s%d bytes%s; not shown]", binaryKind(head), r.info.Size(), version)
	return out, nil
}

func (r *reading) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return failf("%s cannot be read: %v.", visibleName(r.in.Path), plainError(err))
}

// untilDone is a reader that ends with its context.
func untilDone(ctx context.Context, r io.Reader) io.Reader { return &bounded{ctx, r} }

type bounded struct {
	ctx context.Context
	r   io.Reader
}

func (e *bounded) Read(b []byte) (int, error) {
	if e.ctx.Err() != nil {
		return 0, context.Cause(e.ctx)
	}
	return e.r.Read(b)
}
