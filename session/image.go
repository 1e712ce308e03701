package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Image is a picture in a prompt or a result. Its bytes are kept once, under their digest, apart from the records that name it, and no
// encoding of an Image holds them: neither JSON nor what a log or an error prints.
type Image struct {
	Digest string    `json:"digest"` // sha256:<hex> of the bytes
	MIME   string    `json:"mime"`
	Width  int       `json:"width"`
	Height int       `json:"height"`
	Size   int       `json:"size"` // bytes
	Data   ImageData `json:"-"`    // nil where it was not fetched
}

// ImageData is the bytes of an image. It prints as their number.
type ImageData []byte

func (d ImageData) String() string   { return fmt.Sprintf("[%d bytes of an image]", len(d)) }
func (d ImageData) GoString() string { return d.String() }

// NewImage names an image by its bytes.
func NewImage(mime string, width, height int, data []byte) Image {
	sum := sha256.Sum256(data)
	return Image{Digest: "sha256:" + hex.EncodeToString(sum[:]), MIME: mime, Width: width, Height: height, Size: len(data), Data: data}
}

// String is what stands in a text in the place of an image.
func (i Image) String() string {
	return fmt.Sprintf("[image: %s, %dx%d pixels, %d bytes]", strings.TrimPrefix(i.MIME, "image/"), i.Width, i.Height, i.Size)
}

// images are the pictures of an entry: of the user's message or of a call's result.
func (b ItemBody) images() []Image {
	if b.Tool != nil && b.Tool.Output != nil {
		return b.Tool.Output.Images
	}
	return b.Images
}

// NewImages are the pictures of an entry whose bytes it brings with it.
func (b ItemBody) NewImages() (out []Image) {
	for _, i := range b.images() {
		if i.Data != nil {
			out = append(out, i)
		}
	}
	return out
}

// fetched returns images with their bytes, in a list of its own. One that cannot be read any more stays without.
func fetched(tx Tx, images []Image) ([]Image, error) {
	if len(images) == 0 {
		return images, nil
	}
	out := append([]Image(nil), images...)
	for i := range out {
		if out[i].Data != nil {
			continue
		}
		text, err := tx.Content(out[i].Digest)
		var broken *RecordError
		if errors.As(err, &broken) || IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[i].Data = ImageData(text)
	}
	return out, nil
}

// fetchImages puts the bytes of its pictures into an entry.
func fetchImages(tx Tx, it *Item) (err error) {
	if it.Body.Images, err = fetched(tx, it.Body.Images); err != nil {
		return err
	}
	if t := it.Body.Tool; t != nil && t.Output != nil && len(t.Output.Images) > 0 {
		call, out := *t, *t.Output
		if out.Images, err = fetched(tx, out.Images); err != nil {
			return err
		}
		call.Output, it.Body.Tool = &out, &call
	}
	return nil
}

// imageSize is how many bytes the pictures of an entry have.
func imageSize(it Item) (n int) {
	for _, i := range it.Body.images() {
		n += i.Size
	}
	return n
}

// forMessage is what of an entry's pictures goes to a model: those whose bytes are there, and a line for the others.
func forMessage(text string, images []Image) (string, []Image) {
	var shown []Image
	for _, i := range images {
		if i.Data != nil {
			shown = append(shown, i)
		}
	}
	if n := len(images) - len(shown); n > 0 {
		text += fmt.Sprintf("\n[%d image(s) of this message are older than what is sent again. A file can be read again to see one.]", n)
	}
	return text, shown
}
