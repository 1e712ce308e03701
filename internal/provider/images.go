package provider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"

	"holdfast/internal/catalogue"
	"holdfast/session"
)

// textOnly tells whether a model takes no images. wish is what the user says of whichever model is asked: "yes", "no", or "" for what is known
// of it. Where nothing is known it is sent them.
func textOnly(known catalogue.Entry, wish string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(wish)) {
	case "yes":
		return false, nil
	case "no":
		return true, nil
	case "", "auto":
	default:
		return false, fmt.Errorf("HOLDFAST_IMAGES is %q: yes, no or auto is expected", clip(oneLine(wish), 60))
	}
	return known.Images.Known() && !known.Images.Value, nil
}

// textUnseen is what a model that takes no images is told in their place.
const textUnseen = "[This model cannot be shown images. %d image(s) belong here that it does not see.]"

// forModel is a message as the model can take it.
func (e *endpoint) forModel(msg session.Message) session.Message {
	if len(msg.Images) == 0 || !e.config.TextOnly {
		return msg
	}
	if msg.Text != "" {
		msg.Text += "\n"
	}
	msg.Text += fmt.Sprintf(textUnseen, len(msg.Images))
	msg.Images = nil
	return msg
}

// textBelow introduces the images of tool results on a wire whose results hold only text.
const textBelow = "[Images of the result of call %s:]"

// parts is a message of the user with images.
func parts(text string, images []session.Image) []openai.ChatCompletionContentPartUnionParam {
	var out []openai.ChatCompletionContentPartUnionParam
	if !blank(text) {
		out = append(out, openai.TextContentPart(text))
	}
	for _, i := range images {
		out = append(out, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{
			URL: "data:" + i.MIME + ";base64," + base64.StdEncoding.EncodeToString(i.Data)}))
	}
	return out
}

func imageBlock(i session.Image) json.RawMessage {
	type source struct {
		Type string `json:"type"`
		MIME string `json:"media_type"`
		Data string `json:"data"`
	}
	return encodeJSON(struct {
		Type   string `json:"type"`
		Source source `json:"source"`
	}{"image", source{"base64", i.MIME, base64.StdEncoding.EncodeToString(i.Data)}})
}
