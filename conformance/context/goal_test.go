package context_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

const objective = "Write ten files, item-1 to item-10. Never touch the folder keep."

// plan is the list of the ten with so many of them done, as the model writes it.
func plan(done int) string {
	var entries []map[string]string
	for i := 1; i <= 10; i++ {
		status := "pending"
		if i <= done {
			status = "completed"
		}
		entries = append(entries, map[string]string{"content": fmt.Sprint("write item-", i), "status": status})
	}
	b, err := json.Marshal(map[string]any{"entries": entries})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// worker writes item by item, reads a long file in between so that the conversation grows, and rests when the sixth is done and it was
// compacted. It knows what to do from the request alone.
func (w *world) worker(r fakemodel.Request) fakemodel.Reply {
	said := everything(r)
	done := 0
	for done < 10 && strings.Contains(said, fmt.Sprintf("completed: write item-%d\n", done+1)) {
		done++ // from what is pinned
	}
	calls := map[string]bool{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			calls[c.Args] = true
		}
	}
	for i := done + 1; i <= 10; i++ {
		write := fmt.Sprintf(`{"path":"item-%d","content":"item %d\n"}`, i, i)
		if !calls[write] {
			return fakemodel.Calls(fakemodel.Call{Name: "write", Args: write}, fakemodel.Call{Name: "read", Args: fmt.Sprintf(`{"path":"long.txt","offset":%d}`, i)},
				fakemodel.Call{Name: "update_todo", Args: plan(i)})
		}
	}
	return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"blocker","text":"all ten are there"}`})
}

func (w *world) item(i int) string { return filepath.Join(w.work, fmt.Sprint("item-", i)) }

// A goal goes on over compactions: each request has the objective with its limits word by word and the list of what is done from the store, and
// nothing that is done is done again. That holds too when the process is killed before or after a compaction is committed, and while one is
// asked for.
func TestGoal_GoesOnOverCompactions(t *testing.T) {
	for _, point := range []string{"", "compaction.committed:before", "compaction.committed:after", "compaction.committed:before/2", "response.lost:before", "response.lost:after"} {
		t.Run(strings.ReplaceAll(point, "/", " "), func(t *testing.T) {
			w := newWorld(t)
			w.write("long.txt", strings.Repeat("this line of a long file says nothing new at all\n", 400))
			w.set(func() { w.window, w.answer = 110<<10, w.worker })
			a := w.launch(point, nil)
			s := a.NewSession(w.work)
			a.Must("session/set_mode", map[string]any{"sessionId": s, "modeId": "edit"}, nil)
			a.Begin("_holdfast/create_goal", map[string]any{"sessionId": s, "objective": objective,
				"grants": []any{map[string]any{"kind": "edit", "path": w.work}}})
			if point != "" {
				select {
				case <-a.Ended():
				case <-time.After(harness.Limit):
				}
				b, _ := os.ReadFile(filepath.Join(w.dir, "fired"))
				name, _, _ := strings.Cut(point, "/")
				if !strings.HasPrefix(string(b), name+" kill ") {
					t.Fatalf("the crash point did not fire: %q", b)
				}
				a = w.launch("", nil)
				w.load(a, s)
			}
			harness.Eventually(t, "all items are written", func() bool { _, err := os.Stat(w.item(10)); return err == nil })
			a.Must("_holdfast/update_goal", map[string]any{"sessionId": s, "action": "pause"}, nil)
			if w.summaries() < 1 {
				t.Error("nothing was compacted")
			}
			written := map[string]int{}
			seen := map[string]bool{}
			for _, r := range w.model.Requests() {
				if isSummary(r) || len(r.Tools) == 0 {
					continue
				}
				if !strings.Contains(everything(r), objective) && !strings.Contains(r.Messages[0].Content, objective) && !strings.Contains(string(r.Body), objective) {
					t.Errorf("request %d has no objective", r.N)
				}
				if strings.Contains(everything(r), "This conversation was compacted") {
					w.holds("a request after a compaction", everything(r), summary, "The objective, verbatim:\n"+objective, "completed: write item-1\n", ": write item-10\n",
						"Allowed beforehand, and nothing beyond it:", "item-1: changed, now sha256:")
				}
				for _, m := range r.Messages {
					for _, c := range m.ToolCalls {
						if c.Name == "write" && !seen[c.ID] {
							seen[c.ID] = true
							written[c.Args]++
						}
					}
				}
			}
			for args, n := range written {
				if n != 1 {
					t.Errorf("%s was written %d times", args, n)
				}
			}
			if err := fakemodel.ResultsPerCall(slices.DeleteFunc(w.model.Requests(), func(r fakemodel.Request) bool { return r.Refused != "" })); err != nil {
				t.Error(err)
			}
			usage := struct {
				Goal struct {
					Usage struct{ InputTokens, UnknownRequests int64 }
				}
			}{}
			a.Must("_holdfast/get_goal", map[string]any{"sessionId": s}, &usage)
			if usage.Goal.Usage.InputTokens < 10*int64(w.summaries()) {
				t.Errorf("the goal's usage is %+v", usage.Goal.Usage)
			}
		})
	}
}
