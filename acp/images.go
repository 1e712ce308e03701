package acp

import (
	"encoding/base64"
	"fmt"
	"strings"

	v1 "holdfast/acp/v1"
	"holdfast/internal/picture"
	"holdfast/session"
)

const (
	maxImages     = 20       // of one prompt
	maxImageBytes = 20 << 20 // of all of them, as they are kept
)

// takeImages reads the images of a prompt. In the blocks, which are stored, their digests stand in the place of their bytes.
func takeImages(blocks []v1.ContentBlock) ([]session.Image, error) {
	var out []session.Image
	size := 0
	for i, b := range blocks {
		if b.Image == nil {
			continue
		}
		bad := func(format string, args ...any) error {
			return &invalid{fmt.Sprintf("prompt[%d]", i), fmt.Sprintf(format, args...)}
		}
		if len(out) == maxImages {
			return nil, bad("a prompt holds at most %d images", maxImages)
		}
		if base64.StdEncoding.DecodedLen(len(b.Image.Data)) > picture.MaxInput+3 {
			return nil, bad("the image is larger than %d bytes", picture.MaxInput)
		}
		data, err := base64.StdEncoding.DecodeString(b.Image.Data)
		if err != nil || len(data) == 0 {
			return nil, bad("the image's data is not base64")
		}
		fit, _, err := picture.Fit(data)
		if err != nil {
			return nil, bad("%v", err)
		}
		if size += len(fit.Data); size > maxImageBytes {
			return nil, bad("the images of a prompt hold at most %d bytes together", maxImageBytes)
		}
		img := session.NewImage(fit.MIME, fit.Width, fit.Height, fit.Data)
		kept := *b.Image
		kept.Data, kept.MimeType = img.Digest, img.MIME
		blocks[i].Image = &kept
		out = append(out, img)
	}
	return out, nil
}

// withImages puts the bytes of an entry's images back into the blocks that name them. A block whose image is gone becomes a line of text.
func withImages(blocks []v1.ContentBlock, images []session.Image) {
	for i, b := range blocks {
		if b.Image == nil || !strings.HasPrefix(b.Image.Data, "sha256:") {
			continue
		}
		blocks[i] = textBlock("[An image was here.]")
		for _, img := range images {
			if img.Digest == b.Image.Data {
				blocks[i] = imageContent(img)
				break
			}
		}
	}
}

// imageContent shows an image, or says what it is when its bytes are not at hand.
func imageContent(img session.Image) v1.ContentBlock {
	if img.Data == nil {
		return textBlock(img.String())
	}
	return v1.ContentBlock{Image: &v1.ImageContent{Data: base64.StdEncoding.EncodeToString(img.Data), MimeType: img.MIME}}
}
