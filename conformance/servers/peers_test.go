package servers_test

import (
	"strings"
	"testing"
)

// edit is a change that shows when it was made twice.
func edit(path string) map[string]any {
	return map[string]any{"path": path, "edits": []any{map[string]any{"oldText": "hi", "newText": "hi hi"}}}
}

func TestPeers_FilesystemEditsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.peer("files", "server-filesystem", w.work)
	path := w.write("greeting", "hi\n")
	w.answer = follow(turns{"edit it": {tool("mcp__files__edit_file", edit(path))}})
	a := w.start("")
	session := w.open(a)
	w.prompt(a, session, "edit it")
	if got := w.read("greeting"); got != "hi hi\n" {
		t.Errorf("the file says %q", got)
	}
	if got := transcript(a, session); !strings.Contains(got, "files: edit_file") || !strings.Contains(got, `"completed"`) {
		t.Errorf("the editor saw %s", got)
	}
}
