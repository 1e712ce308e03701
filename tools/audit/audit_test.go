package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	now := time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC)
	hit := finding{ID: "GO-1", Module: "example.org/m"}
	tests := map[string]struct {
		found  []finding
		except []exception
		ok     bool
	}{
		"nothing":            {nil, nil, true},
		"no exception":       {[]finding{hit}, nil, false},
		"excepted":           {[]finding{hit}, []exception{{"GO-1", "2027-01-02", "why"}}, true},
		"exception ended":    {[]finding{hit}, []exception{{"GO-1", "2027-01-01", "why"}}, false},
		"of another finding": {[]finding{hit}, []exception{{"GO-2", "2027-12-31", "why"}}, false},
		"needless exception": {nil, []exception{{"GO-1", "2027-12-31", "why"}}, false},
		"standard library":   {[]finding{{ID: "GO-3", Module: "stdlib", Standard: true, Fixed: "v1.99.0"}}, nil, true},
		"standard, no fix":   {[]finding{{ID: "GO-3", Module: "stdlib", Standard: true}}, nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if ok := judge(io.Discard, tt.found, tt.except, now); ok != tt.ok {
				t.Errorf("judge = %v, want %v", ok, tt.ok)
			}
		})
	}
}

func TestParse_DeepestFindingCounts(t *testing.T) {
	in := `{"config":{}}
{"finding":{"osv":"GO-1","fixed_version":"v2.0.0","trace":[{"module":"example.org/m"}]}}
{"finding":{"osv":"GO-1","fixed_version":"v2.0.0","trace":[{"module":"example.org/m","function":"F"},{"module":"holdfast"}]}}`
	got, err := parse(strings.NewReader(in))
	if err != nil || len(got) != 1 || !got[0].Reached || got[0].Fixed != "v2.0.0" || got[0].Standard {
		t.Errorf("parse = %+v, %v", got, err)
	}
	if _, err := parse(strings.NewReader(`{"finding":`)); err == nil {
		t.Error("a scan that was cut off was taken for whole")
	}
}

func TestExceptions_NeedReasonAndDate(t *testing.T) {
	for _, text := range []string{`[{"id":"GO-1","until":"2027-01-01"}]`, `[{"id":"GO-1","reason":"why"}]`, `{`} {
		path := filepath.Join(t.TempDir(), "e.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadExceptions(path); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
	if _, err := loadExceptions("exceptions.json"); err != nil {
		t.Error(err)
	}
}

func TestLicence_UnknownTextIsNamed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("You may use this on Tuesdays only."), 0o600); err != nil {
		t.Fatal(err)
	}
	ids, err := licenceOf(dir)
	if err != nil || len(ids) != 1 || !strings.Contains(ids[0], "unknown text") {
		t.Errorf("licenceOf = %q, %v", ids, err)
	}
	if ids, err := licenceOf(t.TempDir()); err != nil || len(ids) != 0 {
		t.Errorf("a module without a licence = %q, %v", ids, err)
	}
}
