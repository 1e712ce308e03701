package doors_test

// state is what is certain about a goal, and about the one that replaced it.
type state struct {
	status    string
	revision  int64
	version   int64
	waived    bool
	reviewing bool   // a review is about to accept it
	byCancel  bool   // paused by a cancel, which a pause outweighs
	next      string // status of the goal that replaced it, "" without one
}

func (s state) over() bool { return s.status == "achieved" || s.status == "cancelled" }

// What becomes of a request.
const (
	done    = "done"          // stored, and the control version is one higher
	same    = "same"          // nothing to change, and no error
	refused = "not_allowed"   // with a sentence
	stale   = "stale_version" // somebody came first, and this one had looked before
)

// ops are what races. Everything but the last two is somebody's request.
var ops = []string{"pause", "resume", "end", "verify", "revise", "replace", "waive", "retry", "cancel", "confirm", "budget", "again", "completion", "restart"}

// after is the oracle: what a request makes of a goal, and what it is answered. looked: it named the control version from before both.
func (s state) after(op string, seen int64, looked bool) (state, string) {
	switch op {
	case "restart", "again":
		return s, same
	case "cancel":
		switch {
		case s.next == "active":
			s.next = "paused"
			return s, done
		case s.status != "active":
			return s, same
		}
		s.status, s.reviewing, s.byCancel = "paused", false, true
	case "replace":
		if s.next != "" {
			return s, same // with the same key
		}
		if s.over() {
			s.next = "active"
			return s, done
		}
		s.status, s.reviewing, s.next = "cancelled", false, "active"
	case "completion":
		if s.status != "active" || !s.reviewing {
			return s, same
		}
		s.status, s.reviewing = "achieved", false
	default:
		return s.controlled(op, seen, looked)
	}
	s.version++
	return s, done
}

// controlled is after for the actions of update_goal.
func (s state) controlled(op string, seen int64, looked bool) (state, string) {
	if looked && s.version != seen {
		return s, stale
	}
	allowed := map[string]bool{"pause": s.status == "active" || s.status == "paused", "resume": s.status == "paused" || s.status == "blocked",
		"verify": s.status == "active", "retry": s.status == "blocked" || s.status == "active" && s.reviewing, "end": true, "revise": true, "waive": true,
		"confirm": true, "budget": true}
	switch {
	case s.over() || !allowed[op]:
		return s, refused
	case op == "pause" && s.status == "paused" && !s.byCancel, op == "verify" && s.reviewing:
		return s, same
	}
	s.version++
	switch op {
	case "pause":
		s.status, s.reviewing, s.byCancel = "paused", false, false
	case "end":
		s.status, s.reviewing = "cancelled", false
	case "resume", "retry":
		s.status, s.reviewing = "active", false
	case "revise":
		s.revision, s.reviewing, s.byCancel, s.waived = s.revision+1, false, false, false
		if s.status == "blocked" {
			s.status = "active"
		}
	case "waive":
		s.waived, s.byCancel = true, false
	case "confirm", "budget":
		s.byCancel = false
	}
	return s, done
}
