package session

import "fmt"

// What every door says of the queue. It is worked out from the places as they are: what a run's row says may be older.

// InLine tells whether a run waits for its turn.
func InLine(r Run) bool {
	return r.Phase == PhaseQueued && (r.ReasonCode == CodeSlot || r.ReasonCode == CodeWorktreeBusy)
}

// WhyInLine says what a run that waits for its turn waits for right now, and what moves it.
func WhyInLine(tx Tx, r Run) (Code, string, error) {
	mine, err := tx.Slot(r.Session)
	if IsNotFound(err) {
		return r.ReasonCode, Diagnostics[r.ReasonCode].Sentence, nil // its process is gone, or is only now taking it in
	}
	if err != nil {
		return r.ReasonCode, "", err
	}
	places, err := tx.Holding()
	if err != nil {
		return r.ReasonCode, "", err
	}
	code, by := Waiting(places, mine)
	if code == CodeWorktreeBusy {
		return code, fmt.Sprintf("Session %s works unattended in %s; this goes on when that is done, or at once when an editor opens it.", by, mine.WorkTree), nil
	}
	n := 0
	for _, p := range places {
		if p.State == SlotWorking {
			n++
		}
	}
	what := fmt.Sprintf("%d runs work", n)
	if n == 1 {
		what = "1 run works"
	}
	return code, what + " unattended, which is as many as may; this goes on when one of them ends, or at once when an editor opens it.", nil
}

// SlotView is a place in the queue.
type SlotView struct {
	SessionID SessionID `json:"sessionId"`
	RunID     RunID     `json:"runId"`
	Kind      RunKind   `json:"kind"`
	State     SlotState `json:"state"`    // working, waiting
	PID       int       `json:"pid"`      // the process that has it
	WorkTree  string    `json:"workTree"` // what it may write; "" for nothing
	Code      Code      `json:"reasonCode"`
	Reason    string    `json:"reason"`
}

// ListSlots lists the queue: who works, then who waits in the order in which they go on.
func ListSlots(tx Tx) ([]SlotView, error) {
	places, err := tx.Queue()
	if err != nil {
		return nil, err
	}
	out := []SlotView{}
	add := func(p Slot) error {
		r, err := tx.Run(p.Run)
		if err != nil {
			return err
		}
		row, err := tx.Instance(p.Instance)
		if err != nil {
			return err
		}
		v := SlotView{SessionID: p.Session, RunID: p.Run, Kind: r.Kind, State: p.State, PID: row.PID, WorkTree: p.WorkTree}
		if InLine(r) {
			if v.Code, v.Reason, err = WhyInLine(tx, r); err != nil {
				return err
			}
		}
		out = append(out, v)
		return nil
	}
	for _, p := range places {
		if p.State == SlotWorking {
			if err := add(p); err != nil {
				return nil, err
			}
		}
	}
	waiting := Order(places)
	for _, p := range waiting {
		if err := add(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}
