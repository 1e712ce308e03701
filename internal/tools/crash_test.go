//go:build faultpoints

package tools

import (
	"errors"
	"os"
	"testing"

	"holdfast/session"
)

// A supervisor that dies before it starts the command leaves proof that nothing ran; one that dies later leaves an unknown outcome.
func TestCrash_SupervisorLost(t *testing.T) {
	for point, started := range map[string]bool{"supervisor.claimed": false, "supervisor.running": true} {
		t.Run(point, func(t *testing.T) {
			t.Setenv("HOLDFAST_SUPERVISOR_CRASH", point)
			b := newBench(t)
			_, err := b.call("shell", args{"command": "touch ran"})
			var never *session.NotStartedError
			var lost *session.LostError
			if started && !errors.As(err, &lost) || !started && !errors.As(err, &never) {
				t.Fatalf("it says %T %v", err, err)
			}
			if _, err := os.Stat(b.path("ran")); !started && err == nil {
				t.Error("the command ran")
			}
		})
	}
}
