package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"holdfast/session"
)

// Limits of what is read and shown.
const (
	maxFile   = 64 << 20 // bytes of a file that are read at all
	maxResult = 30_000   // bytes of a result
	maxLine   = 2_000    // bytes of one line in a result
)

const absent = session.Absent

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// versionOf is the short form of a digest that a model passes around.
func versionOf(digest string) string {
	hex := strings.TrimPrefix(digest, "sha256:")
	return hex[:min(12, len(hex))]
}

// content reads a whole file. A missing one is nil without an error.
func (p place) content() ([]byte, fs.FileInfo, error) {
	dir, err := p.parent()
	if err == nil {
		defer func() { _ = dir.Close() }()
		var b []byte
		var info fs.FileInfo
		if b, info, err = dir.content(p.base()); err == nil {
			return b, info, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	var te *session.ToolError
	if errors.As(err, &te) {
		return nil, nil, failf("%s %s", p.rel, te.Message)
	}
	return nil, nil, failf("%s cannot be read: %v.", p.rel, plainError(err))
}

// content reads a whole file of a folder.
func (d folder) content(name string) ([]byte, fs.FileInfo, error) {
	f, info, err := d.open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > maxFile {
		return nil, nil, failf("has %d bytes; files above %d are not handled here. Use a command.", info.Size(), maxFile)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if b == nil {
		b = []byte{}
	}
	return b, info, err
}

// digest is the digest of the file at a place, or absent.
func (p place) digest() (string, error) {
	b, _, err := p.content()
	if err != nil {
		return "", err
	}
	if b == nil {
		return absent, nil
	}
	return digestOf(b), nil
}

// clip shortens a text at the end of a line, or of a character, and says so.
func clip(s string, limit int, hint string) string {
	if len(s) <= limit {
		return s
	}
	s = s[:limit]
	if i := strings.LastIndexByte(s, '\n'); i > 0 {
		s = s[:i]
	}
	for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) {
		s = s[:len(s)-1]
	}
	return s + "\n[cut here" + hint + "]"
}

// clipLine shortens one line.
func clipLine(s string) string {
	if len(s) <= maxLine {
		return s
	}
	return strings.ToValidUTF8(s[:maxLine], "") + " [line cut]"
}

// replaceable tells why an existing file is not written over (I5), and else its text and encoding.
func replaceable(path string, b []byte, info fs.FileInfo) (string, session.TextEncoding, error) {
	if info == nil {
		return "", session.EncodingUTF8, nil
	}
	text, encoding := session.DecodeText(b)
	switch {
	case info.Mode().Perm()&0o200 == 0:
		return "", "", failf("%s is read-only. Ask the user, or change its permissions with a command first.", path)
	case encoding == session.EncodingBinary:
		return "", "", failf("%s is neither UTF-8 text nor UTF-16 with a byte-order mark; writing it here would change bytes you did not name. Use a command.", path)
	}
	return text, encoding, nil
}
