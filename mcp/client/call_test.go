//go:build linux

package client

import (
	"testing"
)

func TestCall_Answered(t *testing.T) {
	w := start(t, nil)
	o := w.act(map[string]any{"do": "ok", "text": "grüße"})
	w.wantText(o, KindOK, "grüße")
	if o.Era != "legacy" || o.Protocol != "2025-11-25" || o.RPCID == "" || o.Written == 0 || w.sent() != 1 {
		t.Errorf("outcome %+v, sent %d", o, w.sent())
	}
}

func TestCall_ExitInMidCall(t *testing.T) {
	w := start(t, nil)
	w.wantUnknown(w.act(map[string]any{"do": "exit", "n": 7}), "exited (status 7) before it answered")
	w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
	if w.sent() != 2 || w.State().Generation != 2 {
		t.Errorf("sent %d, state %+v", w.sent(), w.State())
	}
}
