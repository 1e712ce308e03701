package client

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// part is one content block of any type.
type part struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Data        string `json:"data"`
	MIME        string `json:"mimeType"`
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Annotations struct {
		Audience []string `json:"audience"`
	} `json:"annotations"`
	Resource struct {
		URI  string  `json:"uri"`
		MIME string  `json:"mimeType"`
		Text *string `json:"text"`
		Blob string  `json:"blob"`
	} `json:"resource"`
}

// mostImages are shown of one answer.
const mostImages = 8

// render makes text of a result: for the model, and what is for the user alone. images are what the text only names.
func render(r result) (model, user string, images [][]byte) {
	var texts, users []string
	hasText := false
	for _, raw := range r.Content {
		var p part
		if json.Unmarshal(raw, &p) != nil {
			texts = append(texts, "[a part of the answer that cannot be read was left out]")
			continue
		}
		text, image := p.render()
		if len(p.Annotations.Audience) > 0 && !slices.Contains(p.Annotations.Audience, "assistant") {
			users = append(users, text)
			continue
		}
		switch {
		case image != nil && len(images) < mostImages:
			images = append(images, image)
			text = fmt.Sprintf("[image %d of the answer, %s, %d bytes]", len(images), head(p.MIME, 100), len(image))
		case image != nil:
			text = strings.TrimSuffix(text, "]") + "; it was left out]"
		}
		hasText = hasText || p.Type == "text" && p.Text != ""
		texts = append(texts, text)
	}
	if !hasText && present(r.Structured) {
		var b bytes.Buffer
		if json.Compact(&b, r.Structured) == nil {
			texts = append(texts, strings.ToValidUTF8(b.String(), "\uFFFD"))
		}
	}
	if len(texts) == 0 {
		texts = []string{"[the answer has no content for you]"}
	}
	return strings.Join(texts, "\n"), strings.Join(users, "\n"), images
}

// render is one block as text, and its bytes when it is an image.
func (p part) render() (string, []byte) {
	switch p.Type {
	case "text":
		return p.Text, nil
	case "image", "audio":
		return media(p.Type, p.MIME, p.Data)
	case "resource_link":
		return fmt.Sprintf("[a link to the resource %s (%s)]", head(p.URI, 500), head(p.Name, 200)), nil
	case "resource":
		if p.Resource.Text != nil {
			return fmt.Sprintf("[the resource %s]\n%s", head(p.Resource.URI, 500), *p.Resource.Text), nil
		}
		return fmt.Sprintf("[the resource %s, %s, %d bytes in base64, was left out]", head(p.Resource.URI, 500), head(p.Resource.MIME, 100), len(p.Resource.Blob)), nil
	}
	return fmt.Sprintf("[a part of an unknown type (%q) was left out]", head(p.Type, 40)), nil
}

// media describes an image or a sound. What it claims to be is looked at, so that nobody is told of a picture that is none.
func media(kind, mime, data string) (string, []byte) {
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(b) == 0 {
		return fmt.Sprintf("[the answer holds data that is called %s (%s) and cannot be decoded; it was left out]", kind, head(mime, 100)), nil
	}
	real := http.DetectContentType(b)
	if kind == "image" && !strings.HasPrefix(real, "image/") && mime != "image/svg+xml" || !strings.HasPrefix(mime, kind+"/") {
		return fmt.Sprintf("[the answer holds data that is called %s (%s) and is %s; it was left out]", kind, head(mime, 100), real), nil
	}
	if kind == "image" && mime != "image/svg+xml" {
		return fmt.Sprintf("[image, %s, %d bytes]", head(mime, 100), len(b)), b
	}
	return fmt.Sprintf("[%s, %s, %d bytes; it was left out]", kind, head(mime, 100), len(b)), nil
}
