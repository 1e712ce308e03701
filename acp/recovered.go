package acp

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	v1 "holdfast/acp/v1"
	"holdfast/session"
)

// The first session that a client opens on a connection shows one line about work that was recovered in sessions it has not opened. It is
// about this moment and this process, not about the session it stands in: it is sent and not stored, so no replay repeats it when it is no
// longer true, and no model reads it.

// How often is looked whether recovery has decided, and how long at most: then what is known is told.
const (
	recoveryEvery = 50 * time.Millisecond
	recoveryLooks = 200
)

// shownRecovered is how many sessions the line names.
const shownRecovered = 3

// announce begins to look for recovered work, in the follower of the first session that was opened. When that one is closed before the line
// was due, the next one has it.
func (f *follower) announce() {
	a := f.a
	a.mu.Lock()
	mine := !a.announced && a.announcer != f && (a.announcer == nil || a.announcer.ctx.Err() != nil)
	if mine {
		a.announcer = f
	}
	a.mu.Unlock()
	if mine {
		f.lookRecovered(recoveryLooks)
	}
}

func (f *follower) lookRecovered(looks int) {
	if looks > 0 && (f.b.Engine.Recovering() || f.isQuiet()) {
		f.after(recoveryEvery, func() { f.lookRecovered(looks - 1) })
		return
	}
	all, err := f.b.Engine.Recovered(f.ctx, f.id)
	if err != nil {
		f.fail(err, "looking for recovered work failed")
		return
	}
	f.a.mu.Lock()
	f.a.announced = true // never a second time, and not about what happens later
	notices := f.a.notices
	f.a.mu.Unlock()
	if len(all) == 0 {
		return
	}
	line := recoveredLine(all)
	if notices {
		f.send(update{Notice: &v1.Notice{Severity: v1.NoticeSeverityInfo, Title: line}})
		return
	}
	f.send(textChunk(session.ItemMarker, session.ItemID(f.b.Engine.NewID()), line+"\n"))
}

// recoveredLine says what was recovered and how to stop it.
func recoveredLine(all []session.Session) string {
	var names []string
	for i, s := range all {
		if i == shownRecovered {
			names = append(names, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s in %s", quoted(s.Title), s.Cwd))
	}
	what := "1 other session"
	if len(all) > 1 {
		what = fmt.Sprintf("%d other sessions", len(all))
	}
	return fmt.Sprintf("Recovered: work in %s was taken up again by itself: %s. /stop all stops all work for good, and so does 'holdfast stop --all' in a terminal; "+
		"'holdfast sessions list' shows it.", what, strings.Join(names, ", "))
}

// quoted is a title, cut to what a line can bear.
func quoted(title string) string {
	title = strings.Join(strings.Fields(title), " ")
	if title == "" {
		return "a session without a title"
	}
	if utf8.RuneCountInString(title) > 40 {
		title = string([]rune(title)[:39]) + "…"
	}
	return fmt.Sprintf("“%s”", title)
}
