package session

import "testing"

// A rule lets through what lies outside only when it names a directory there; what is secret or protected has no standing answer at all.
func TestPlace_RulesReachOutsideByNameOnly(t *testing.T) {
	edit := func(place Place, path string) Subject {
		return Subject{Cwd: "/home/u/p", Tool: "edit", Version: "2", Edit: true, Paths: []string{path}, Place: place}
	}
	rule := func(dir string) Rule {
		return Rule{Verdict: VerdictAllow, Kind: RuleEdit, Cwd: "/home/u/p", Tool: "edit", Version: "2", Value: dir}
	}
	for name, c := range map[string]struct {
		rule Rule
		call Subject
		want covered
	}{
		"inside":             {rule("/home/u/p"), edit(PlaceInside, "/home/u/p/f"), coversSurely},
		"its directory":      {rule("/home/u/q"), edit(PlaceOutside, "/home/u/q/f"), coversSurely},
		"one above both":     {rule("/home/u"), edit(PlaceOutside, "/home/u/q/f"), coversNot},
		"everything":         {rule("/"), edit(PlaceOutside, "/etc/f"), coversNot},
		"a secret inside":    {rule("/home/u/p"), edit(PlaceSecret, "/home/u/p/.env"), coversNot},
		"protected":          {rule("/home/u/p"), edit(PlaceProtected, "/home/u/p/.envrc"), coversNot},
		"an unknown place":   {rule("/home/u/p"), edit("elsewhere", "/home/u/p/f"), coversNot},
		"another one's rule": {rule("/home/u/r"), edit(PlaceOutside, "/home/u/q/f"), coversNot},
	} {
		if got := c.rule.covers(c.call); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for place, want := range map[Place]bool{PlaceInside: true, PlaceOutside: true, PlaceProtected: false, PlaceSecret: false} {
		if _, ok := Always(edit(place, "/home/u/q/f")); ok != want {
			t.Errorf("a standing answer for %q: %v", place, ok)
		}
	}
}

// An answer about a place counts for that place: a link that leads elsewhere by then is a new question.
func TestPlace_AnswerIsBoundToIt(t *testing.T) {
	read := func(place Place, path string) string {
		return Binding(Effect{Tool: "read", ArgsDigest: "a", Class: ReadOnly, Plan: Plan{Place: place, Paths: []string{path}}}, Session{}, nil)
	}
	if read(PlaceOutside, "/etc/hosts") == read(PlaceOutside, "/etc/shadow") || read(PlaceOutside, "/x/.env") == read(PlaceSecret, "/x/.env") {
		t.Error("two places have one answer")
	}
	exec := func(want string) string {
		return Binding(Effect{Plan: Plan{Files: []FileChange{{Path: "/f", Before: "1", After: "1", Exec: want}}}}, Session{}, nil)
	}
	if exec("yes") == exec("no") {
		t.Error("two modes have one answer")
	}
}
