package store

import (
	"holdfast/internal/secret"
	"holdfast/session"
)

const insertContent = `INSERT INTO contents (digest, body) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING`

// apart stores the large texts of a plan under their digests, without secrets, and returns the plan as the journal holds it. A digest stays
// that of the content as it was: it decides, and the text is only shown.
func (t *Tx) apart(p session.Plan) (session.Plan, error) {
	p, texts := secret.Hide(t.mask, p).Apart()
	for digest, text := range texts {
		if _, err := t.exec("keep a content", insertContent, digest, []byte(text)); err != nil {
			return p, err
		}
	}
	return p, nil
}

// KeepImages stores the bytes of images.
func (t *Tx) KeepImages(images []session.Image) error {
	for _, i := range images {
		if i.Data == nil {
			continue
		}
		if _, err := t.exec("keep an image", insertContent, i.Digest, []byte(i.Data)); err != nil {
			return err
		}
	}
	return nil
}

const contentOf = `SELECT body FROM contents WHERE digest = ?`

// Content returns what is kept under a digest.
func (t *Tx) Content(digest string) (string, error) {
	return get(t, "load content "+digest, text[string], contentOf, digest)
}
