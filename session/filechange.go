package session

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Absent is the digest of a file that is not there.
const Absent = "absent"

// FileChange is one intended file write with the digests that prove its outcome. A digest is "sha256:<hex>", or Absent: a file is made
// where Before is Absent and deleted where After is. The files of a plan are changed in their order.
type FileChange struct {
	Path   string `json:"path"`
	Before string `json:"before"`
	After  string `json:"after"`
	// OldText and NewText are shown to the user as a diff, and with Encoding they are the bytes. OldText is nil for a new file.
	OldText  *string      `json:"oldText,omitempty"`
	NewText  string       `json:"newText"`
	Encoding TextEncoding `json:"encoding,omitempty"`
	// Kept: both contents are stored under their digests instead of here.
	Kept bool `json:"kept,omitempty"`
	// OldSize and NewSize are the bytes of both contents where the texts are an excerpt.
	OldSize int `json:"oldSize,omitempty"`
	NewSize int `json:"newSize,omitempty"`
	// FromLine is the line at which an excerpt of a changed file begins, from 1; 0 where the texts are whole.
	FromLine int `json:"fromLine,omitempty"`
	// Exec is "yes" or "no" where the change is meant to make it so, and WasExec what it was, where that is known.
	Exec    string `json:"exec,omitempty"`
	WasExec string `json:"wasExec,omitempty"`
	// OldBlob and NewBlob name the contents where the texts are masked: what is shown is not what the file held.
	OldBlob string `json:"oldBlob,omitempty"`
	NewBlob string `json:"newBlob,omitempty"`
	// From is where the file is moved from; the plan deletes it there right after.
	From string `json:"from,omitempty"`
}

// TextEncoding says how the texts of a change stand for bytes.
type TextEncoding string

const (
	EncodingUTF8    TextEncoding = "" // the text is the bytes
	EncodingUTF16LE TextEncoding = "utf-16le"
	EncodingUTF16BE TextEncoding = "utf-16be"
	EncodingBinary  TextEncoding = "base64" // no text: never shown, only moved, deleted and brought back
)

// Encode is the bytes that a text stands for.
func (e TextEncoding) Encode(text string) []byte {
	switch e {
	case EncodingUTF16LE, EncodingUTF16BE:
		var out []byte
		for _, u := range utf16.Encode([]rune(text)) {
			if e == EncodingUTF16LE {
				out = binary.LittleEndian.AppendUint16(out, u)
			} else {
				out = binary.BigEndian.AppendUint16(out, u)
			}
		}
		return out
	case EncodingBinary:
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			panic("session: a binary content that Decode did not make: " + err.Error())
		}
		return b
	}
	return []byte(text)
}

// decode is the text that stands for bytes, the opposite of Encode.
func (e TextEncoding) decode(b []byte) string {
	switch e {
	case EncodingUTF16LE, EncodingUTF16BE:
		units := make([]uint16, len(b)/2)
		for i := range units {
			if units[i] = binary.LittleEndian.Uint16(b[2*i:]); e == EncodingUTF16BE {
				units[i] = binary.BigEndian.Uint16(b[2*i:])
			}
		}
		return string(utf16.Decode(units))
	case EncodingBinary:
		return base64.StdEncoding.EncodeToString(b)
	}
	return string(b)
}

// DecodeText finds the encoding of a content and its text: UTF-8 with or without a byte-order mark, or UTF-16 with one. The mark stays the
// first character of the text. What would not come back byte for byte is binary, and so is text of any other encoding.
func DecodeText(b []byte) (string, TextEncoding) {
	e := EncodingUTF8
	switch {
	case len(b) >= 2 && b[0] == 0xFF && b[1] == 0xFE:
		e = EncodingUTF16LE
	case len(b) >= 2 && b[0] == 0xFE && b[1] == 0xFF:
		e = EncodingUTF16BE
	}
	text := string(b)
	if e != EncodingUTF8 && len(b)%2 == 0 {
		text = e.decode(b)
	}
	if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) || string(e.Encode(text)) != string(b) {
		return base64.StdEncoding.EncodeToString(b), EncodingBinary
	}
	return text, e
}

// Sizes are the bytes of both contents.
func (f FileChange) Sizes() (before, after int) {
	if f.OldSize > 0 || f.NewSize > 0 {
		return f.OldSize, f.NewSize
	}
	return len(f.Old()), len(f.New())
}

// Old is the content before, nil for a new file.
func (f FileChange) Old() []byte {
	if f.OldText == nil {
		return nil
	}
	return f.Encoding.Encode(*f.OldText)
}

// New is the content after, nil for a deleted file.
func (f FileChange) New() []byte {
	if f.After == Absent {
		return nil
	}
	return f.Encoding.Encode(f.NewText)
}

// AppliedDigest proves that the first n changes of a plan happened and the others did not. For a single one that did it is the digest of
// its content.
func AppliedDigest(files []FileChange, n int) string {
	if len(files) == 1 && n == 1 {
		return files[0].After
	}
	parts := []string{"applied"}
	for _, f := range files[:n] {
		parts = append(parts, f.Path, f.After, f.Exec)
	}
	return Digest(parts...)
}

// applied tells how many of the changes of a settled call happened; ok is false where its result does not say.
func applied(ef Effect) (n int, ok bool) {
	for n := len(ef.Plan.Files); n > 0; n-- {
		if ef.ResultDigest == AppliedDigest(ef.Plan.Files, n) {
			return n, true
		}
	}
	return 0, false
}

// paths is what a change made of its path.
func (f FileChange) paths() PathChange {
	p := PathChange{Path: f.Path, Before: PathState{Kind: PathAbsent}, After: PathState{Kind: PathAbsent}}
	if f.Before != Absent {
		p.Before = PathState{Kind: PathFile, Blob: cmp.Or(f.OldBlob, BlobID(f.Old())), Exec: f.WasExec}
	}
	if f.After != Absent {
		p.After = PathState{Kind: PathFile, Blob: cmp.Or(f.NewBlob, BlobID(f.New())), Exec: f.Exec}
	}
	if f.Exec == "" && f.After != Absent && f.Before != Absent {
		p.After.Exec = f.WasExec
	}
	return p
}
