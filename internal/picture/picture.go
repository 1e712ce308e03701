// Package picture makes images fit for a model: it looks at the size in the header before anything is decoded, and shrinks what is larger
// than model endpoints take. It imports nothing of this repository.
//
// Invariants:
//
//	I1: nothing is decoded before its header has said that it is small enough to be.
//	I2: what Fit returns is one of the four formats that every endpoint with images takes, at most MaxEdge wide and high and at most
//	    MaxBytes long. An image that is so already stays as it is, byte for byte.
package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // decoders of the formats that endpoints take
	"image/jpeg"
	"image/png"
	"net/http"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"
)

// Limits of the endpoints, the narrowest of them.
const (
	MaxEdge  = 2_000      // pixels of a side
	MaxBytes = 3_750_000  // 5 MB as base64
	MaxInput = 32 << 20   // bytes of an image that is looked at
	maxDots  = 50_000_000 // pixels that are decoded: 200 MB of memory
	maxSide  = 1 << 16    // pixels of a side that are believed
	quality  = 85         // of a JPEG that is written
)

// Image is an image and what it is.
type Image struct {
	MIME          string
	Width, Height int
	Data          []byte
}

// ErrNone: it is no image of a format that models take.
var ErrNone = errors.New("not an image that a model can be shown (PNG, JPEG, GIF or WebP)")

// Kind is the format of an image, by its first bytes, or "".
func Kind(head []byte) string {
	switch t := http.DetectContentType(head); t {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return t
	}
	return ""
}

// Fit returns an image as a model can be shown it, and whether it had to be shrunk.
func Fit(data []byte) (Image, bool, error) {
	mime := Kind(data)
	if mime == "" {
		return Image{}, false, ErrNone
	}
	if len(data) > MaxInput {
		return Image{}, false, fmt.Errorf("the image has %d bytes, more than %d", len(data), MaxInput)
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return Image{}, false, fmt.Errorf("the image is damaged: %w", err)
	}
	if c.Width <= 0 || c.Height <= 0 || c.Width > maxSide || c.Height > maxSide || c.Width*c.Height > maxDots {
		return Image{}, false, fmt.Errorf("the image is %d by %d pixels, too large to be shown", c.Width, c.Height)
	}
	full, _, err := image.Decode(bytes.NewReader(data)) // an endpoint refuses a whole conversation for a damaged one
	if err != nil {
		return Image{}, false, fmt.Errorf("the image is damaged: %w", err)
	}
	if c.Width <= MaxEdge && c.Height <= MaxEdge && len(data) <= MaxBytes {
		return Image{MIME: mime, Width: c.Width, Height: c.Height, Data: data}, false, nil
	}
	out, err := shrink(full, mime != "image/jpeg")
	return out, true, err
}

// shrink scales an image until it fits. Line art stays exact where that fits.
func shrink(full image.Image, exact bool) (Image, error) {
	for edge := MaxEdge; edge >= 100; edge = edge * 3 / 4 {
		small := scale(full, edge)
		size := small.Bounds().Size()
		var b bytes.Buffer
		if exact {
			if err := png.Encode(&b, small); err != nil {
				return Image{}, fmt.Errorf("write the smaller image: %w", err)
			}
			if b.Len() <= MaxBytes {
				return Image{"image/png", size.X, size.Y, b.Bytes()}, nil
			}
			b.Reset()
		}
		if err := jpeg.Encode(&b, flat(small), &jpeg.Options{Quality: quality}); err != nil {
			return Image{}, fmt.Errorf("write the smaller image: %w", err)
		}
		if b.Len() <= MaxBytes {
			return Image{"image/jpeg", size.X, size.Y, b.Bytes()}, nil
		}
	}
	return Image{}, errors.New("the image cannot be made small enough to be shown")
}

func scale(full image.Image, edge int) *image.RGBA {
	w, h := full.Bounds().Dx(), full.Bounds().Dy()
	if long := max(w, h); long > edge {
		w, h = max(1, w*edge/long), max(1, h*edge/long)
	}
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.ApproxBiLinear.Scale(out, out.Bounds(), full, full.Bounds(), draw.Src, nil)
	return out
}

// flat puts an image on white: a JPEG has no transparency.
func flat(m *image.RGBA) image.Image {
	out := image.NewRGBA(m.Bounds())
	draw.Draw(out, out.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(out, out.Bounds(), m, m.Bounds().Min, draw.Over)
	return out
}
