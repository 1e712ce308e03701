package session

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestPlace_EveryFact(t *testing.T) {
	var b strings.Builder
	n := 0
	bools := []bool{false, true}
	for _, state := range []PlaceState{PlaceIdle, PlaceWorking, PlaceAsking, PlaceWaiting} {
		for _, attached := range bools {
			for _, fits := range bools {
				for _, other := range []PlaceOther{OtherNone, OtherDiffers, OtherFits} {
					f := PlaceFacts{state, attached, fits, other}
					p := Assign(f)
					n++
					fmt.Fprintf(&b, "%-8s attached:%-5v fits:%-5v other:%-8s %-10s %s\n", state, attached, fits, other, p.Act, p.Rule)
					if state == PlaceIdle {
						continue
					}
					if p.Act == PlaceKeep && !fits {
						t.Errorf("work is kept where it cannot go on: %+v: %+v", f, p)
					}
					if p.Act == PlaceHandOver && other != OtherFits {
						t.Errorf("work is handed over to where it cannot go on: %+v: %+v", f, p)
					}
					if fits && attached && p.Act != PlaceKeep {
						t.Errorf("it is taken from a window that has it and can go on: %+v: %+v", f, p)
					}
					if fits && (p.Act == PlaceWait || p.Act == PlaceLetGo) {
						t.Errorf("it waits although it can go on: %+v: %+v", f, p)
					}
				}
			}
		}
	}
	const path = "testdata/placement.golden"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != b.String() || n != 48 {
		t.Errorf("%s differs (%d facts); run go test ./session -run Place -update and read the diff\n%s", path, n, b.String())
	}
}

// What fits is the endpoint and the key; the environment comes along.
func TestProfile_Fits(t *testing.T) {
	a := Profile{Provider: "openai", Name: "m", Origin: "https://a.example", API: "chat", Credential: "k1", Env: "e1"}
	other := func(change func(*Profile)) Profile { p := a; change(&p); return p }
	for name, c := range map[string]struct {
		here Profile
		want bool
	}{
		"same":                {a, true},
		"another environment": {other(func(p *Profile) { p.Env = "e2" }), true},
		"another key":         {other(func(p *Profile) { p.Credential = "k2" }), false},
		"another host":        {other(func(p *Profile) { p.Origin = "https://b.example" }), false},
		"another model":       {other(func(p *Profile) { p.Name = "n" }), false},
		"another provider":    {other(func(p *Profile) { p.Provider = "anthropic" }), false},
		"another API":         {other(func(p *Profile) { p.API = "responses" }), false},
		"an API of old":       {other(func(p *Profile) { p.API = "" }), true}, // what was stored before it was kept
		"no model":            {Profile{Env: "e1"}, false},
	} {
		if got := a.Fits(c.here); got != c.want {
			t.Errorf("%s: fits is %v", name, got)
		}
	}
	if none := (Profile{}); none.Fits(Profile{Env: "e1"}) || !none.Fits(a) {
		t.Error("work that has nothing yet goes on with any model, and with none it does not")
	}
	if text := Differs(a, other(func(p *Profile) { p.Credential = "k2" })); !strings.Contains(text, "openai/m at a.example and another key") || strings.Contains(text, "k1") {
		t.Errorf("it says %q", text)
	}
	if text := Differs(a, other(func(p *Profile) { p.API = "responses" })); !strings.Contains(text, "here is openai/m at a.example by responses.") {
		t.Errorf("it says %q", text)
	}
}

// A secret comes only from a process that has the same one.
func TestEnvironment_List(t *testing.T) {
	stored := NewEnvironment([]Variable{{Name: "PATH", Value: "/a"}, {Name: "A_TOKEN", Hash: "h1"}, {Name: "B_TOKEN", Hash: "h2"}, {Name: "C_TOKEN", Hash: "h3"}})
	ours := NewEnvironment([]Variable{{Name: "PATH", Value: "/b"}, {Name: "A_TOKEN", Hash: "h1"}, {Name: "B_TOKEN", Hash: "other"}, {Name: "MORE", Value: "1"}})
	got := stored.list(ours, []string{"PATH=/b", "A_TOKEN=one", "B_TOKEN=two", "MORE=1"})
	if fmt.Sprint(got) != "[A_TOKEN=one PATH=/a]" {
		t.Errorf("the command gets %v", got)
	}
}
