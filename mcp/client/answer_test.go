package client

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReadAnswer(t *testing.T) {
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n0000"))
	words := base64.StdEncoding.EncodeToString([]byte("just words"))
	for name, c := range map[string]struct{ result, kind, text, user string }{
		"text":                {`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, KindOK, "a\nb", ""},
		"complete":            {`{"resultType":"complete","content":[{"type":"text","text":"a"}]}`, KindOK, "a", ""},
		"an error":            {`{"isError":true,"content":[{"type":"text","text":"no"}]}`, KindToolError, "no", ""},
		"structured alone":    {`{"structuredContent": {"b": [1, 2.50]}}`, KindOK, `{"b":[1,2.50]}`, ""},
		"structured and text": {`{"content":[{"type":"text","text":"a"}],"structuredContent":{"b":1}}`, KindOK, "a", ""},
		"nothing":             {`{"content":[]}`, KindOK, "[the answer has no content for you]", ""},
		"an unknown type":     {`{"content":[{"type":"hologram","x":1},{"type":"text","text":"a"}]}`, KindOK, "[a part of an unknown type (\"hologram\") was left out]\na", ""},
		"a part of no form":   {`{"content":[7,{"type":"text","text":"a"}]}`, KindOK, "[a part of the answer that cannot be read was left out]\na", ""},
		"an image":            {`{"content":[{"type":"image","mimeType":"image/png","data":"` + png + `"}]}`, KindOK, "[image 1 of the answer, image/png, 12 bytes]", ""},
		"words as an image":   {`{"content":[{"type":"image","mimeType":"image/png","data":"` + words + `"}]}`, KindOK, "[the answer holds data that is called image (image/png) and is text/plain; charset=utf-8; it was left out]", ""},
		"not base64":          {`{"content":[{"type":"image","mimeType":"image/png","data":"!!"}]}`, KindOK, "[the answer holds data that is called image (image/png) and cannot be decoded; it was left out]", ""},
		"an image of no type": {`{"content":[{"type":"image","data":"` + png + `"}]}`, KindOK, "[the answer holds data that is called image () and is image/png; it was left out]", ""},
		"a link":              {`{"content":[{"type":"resource_link","uri":"file:///a","name":"A"}]}`, KindOK, "[a link to the resource file:///a (A)]", ""},
		"a resource":          {`{"content":[{"type":"resource","resource":{"uri":"u","text":"inside"}}]}`, KindOK, "[the resource u]\ninside", ""},
		"a blob":              {`{"content":[{"type":"resource","resource":{"uri":"u","mimeType":"m","blob":"AAAA"}}]}`, KindOK, "[the resource u, m, 4 bytes in base64, was left out]", ""},
		"for the user alone":  {`{"content":[{"type":"text","text":"secret","annotations":{"audience":["user"]}},{"type":"text","text":"a","annotations":{"audience":["user","assistant"]}}]}`, KindOK, "a", "secret"},
		"input required":      {`{"resultType":"input_required","inputRequests":{}}`, KindInputRequired, "wants input", ""},
		"a task":              {`{"task":{"taskId":"t"}}`, KindTask, "a handle instead", ""},
		"a task of the new":   {`{"resultType":"task","taskId":"t"}`, KindTask, "a handle instead", ""},
		"a type of no sense":  {`{"resultType":"maybe","content":[]}`, KindMalformed, `("maybe")`, ""},
		"text as a result":    {`"done"`, KindMalformed, `cannot be read: "done"`, ""},
		"content as text":     {`{"content":"done"}`, KindMalformed, `cannot be read: {"content":"done"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := readAnswer([]byte(`{"jsonrpc":"2.0","id":1,"result":`+c.result+`}`), 10000)
			if a.Kind != c.kind || !strings.Contains(a.Text, c.text) || a.User != c.user || a.IsError != (c.kind != KindOK) {
				t.Errorf("%s %q, user %q, error %v; want %s %q", a.Kind, a.Text, a.User, a.IsError, c.kind, c.text)
			}
		})
	}
	for line, want := range map[string]string{
		`{"id":1,"error":{"code":-32602,"message":"no such file"}}`: "an error (-32602): no such file",
		`{"id":1,"error":"broken"}`:                                 `an error: "broken"`,
		`{"id":1}`:                                                  "neither a result nor an error",
		`{"id":1,"result":{},"error":{}}`:                           "neither a result nor an error",
		`{"id":1,"result":null}`:                                    "neither a result nor an error",
		`{"id":1,"error":null,"result":{"content":[{"type":"text","text":"fine"}]}}`: "fine",
	} {
		if a := readAnswer([]byte(line), 1000); !strings.Contains(a.Text, want) {
			t.Errorf("%s: %s %q", line, a.Kind, a.Text)
		}
	}
}

func TestMiddle_NeverCutsACharacter(t *testing.T) {
	s := strings.Repeat("é漢😀", 1000)
	for limit := 1; limit < 60; limit++ {
		got, _ := middle(s, limit)
		if !utf8.ValidString(got) || len(got) > limit+80 || !strings.Contains(got, "left out here") {
			t.Fatalf("at %d: %q", limit, got)
		}
	}
	if got, cut := middle("short", 5); got != "short" || cut != 0 {
		t.Error("a short text was changed")
	}
}
