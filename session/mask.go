package session

import (
	"cmp"
	"encoding/json"

	"holdfast/internal/secret"
)

// Hide masks both contents. Where that changes one, its name is kept beside it, so that the change is still told apart from any other; to put
// the file back its content is taken from elsewhere, never from a masked text.
func (f *FileChange) Hide(text func(string) string) {
	if t := f.Encoding.hide(f.NewText, text); t != f.NewText {
		f.NewBlob, f.NewText = cmp.Or(f.NewBlob, BlobID(f.New())), t
	}
	if f.OldText == nil {
		return
	}
	if t := f.Encoding.hide(*f.OldText, text); t != *f.OldText {
		f.OldBlob, f.OldText = cmp.Or(f.OldBlob, BlobID(f.Old())), &t
	}
}

// hide masks a text that stands for bytes and leaves one that stands for bytes.
func (e TextEncoding) hide(s string, text func(string) string) string {
	if e != EncodingBinary {
		return text(s)
	}
	b := e.Encode(s)
	if t := text(string(b)); t != string(b) {
		return e.decode([]byte(t))
	}
	return s
}

// carriesMask refuses a call that would carry a mask into a file, a command or another program: there it would be text like any other, and
// the secret it stands for would be gone.
func (c *call) carriesMask() error {
	if _, inStore := c.tool.(StateTool); inStore || c.tool.Class() == ReadOnly {
		return nil
	}
	var text string
	var decoded any
	if err := json.Unmarshal([]byte(c.item.Body.Tool.Args), &decoded); err == nil {
		b, err := json.Marshal(decoded) // one spelling, whatever was escaped
		text = string(b)
		if err != nil {
			return err
		}
	}
	if !secret.Masked(text) && !secret.Masked(c.item.Body.Tool.Args) {
		return nil
	}
	return &ToolError{Message: "Nothing was done: the arguments hold \"" + secret.Mask + "\", which stands for a secret that you are not shown and is never written. " +
		"Leave the mask out. To change the rest of such a line, give only the text before or after the secret as what to replace; it is enough " +
		"that it occurs once. To replace or remove the whole line, name it by its number in a command, for example sed -i '12d' FILE. " +
		"A program that needs the secret finds it in its environment or reads the file itself."}
}

// maskedNote is what is said of a message that held a secret.
const maskedNote = "[A secret in this message was hidden: it was neither stored nor sent to the model. Put it into a file or an environment variable " +
	"and name that instead.]"

// Hidden is a prompt without the secrets that it holds; a line says so. A hidden one is returned as it is.
func (e *Engine) Hidden(in PromptInput) PromptInput {
	out := secret.Hide(e.Mask, in)
	if out.Text == in.Text {
		return out
	}
	out.Text += "\n\n" + maskedNote
	return out
}
