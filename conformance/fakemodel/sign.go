package fakemodel

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// sign is the signature of a thought. As with the service's newer models it holds for one model and for one history: prefix is a digest
// of everything before the answer, n the number of the thought in it. Anybody can compute it: it protects nothing here.
func sign(model, prefix string, n int, text string) string {
	mac := hmac.New(sha256.New, []byte("fakemodel"))
	fmt.Fprintf(mac, "%q %q %d %q", model, prefix, n, text)
	return "sig+/" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// seal hides a thought and signs it.
func seal(model, prefix string, n int, text string) string {
	return base64.StdEncoding.EncodeToString([]byte(text)) + "." + sign(model, prefix, n, "hidden "+text)
}

// sealed tells whether seal made it.
func sealed(data, model, prefix string, n int) bool {
	hidden, _, ok := strings.Cut(data, ".")
	text, err := base64.StdEncoding.DecodeString(hidden)
	return ok && err == nil && data == seal(model, prefix, n, string(text))
}

// rawJSON is JSON text as a value; what is none is sent as a string.
func rawJSON(text string) any {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}
