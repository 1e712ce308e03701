package fakemodel

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	_ "image/gif" // what the services take
	_ "image/jpeg"
	_ "image/png"
	"strings"
)

// Images are the images of a request in order, as base64.
func (r Request) Images() []string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, m.Images...)
	}
	return out
}

// checkImage refuses what the service cannot process.
func checkImage(mime, data string) error {
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return refuse("", "image: invalid base64 data")
	}
	if len(data) > 5<<20 {
		return refuse("", "image exceeds 5 MB maximum")
	}
	_, kind, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		return refuse("", "Could not process image")
	}
	if "image/"+kind != mime {
		return refuse("", "Image does not match the provided media type %s", mime)
	}
	return nil
}

// partImages reads the images among the parts of a message. Only the user's hold some.
func partImages(role string, raw json.RawMessage) ([]string, error) {
	var parts []struct {
		Type  string
		Image struct{ URL string } `json:"image_url"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil, nil
	}
	var out []string
	for _, p := range parts {
		if p.Type != "image_url" {
			continue
		}
		if role != "user" {
			return nil, refuse("", "Image URLs are only allowed for messages with role 'user', but this message with role '%s' contains an image URL.", role)
		}
		mime, data, ok := strings.Cut(strings.TrimPrefix(p.Image.URL, "data:"), ";base64,")
		if !ok {
			return nil, refuse("invalid_image_url", "Invalid image URL.")
		}
		if err := checkImage(mime, data); err != nil {
			return nil, err
		}
		out = append(out, data)
	}
	return out, nil
}

// blockImage reads an image block.
func blockImage(b contentBlock) (string, error) {
	if b.Source == nil || b.Source.Type != "base64" {
		return "", refuse("", "image.source: a base64 source is expected")
	}
	return b.Source.Data, checkImage(b.Source.MIME, b.Source.Data)
}
