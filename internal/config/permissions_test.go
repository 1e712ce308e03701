package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoad_PermissionsAndSandbox(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	load := func(text string) (Config, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load(path)
	}
	rule := func(text string) string { return "[[permissions.rules]]\n" + text + "\n" }
	good := rule("verdict = 'deny'\nprefix = 'git push'") + rule("verdict = 'allow'\nserver = 's'\ntool = 't'\nin = '/p'") +
		"[sandbox]\ncommands = 'always'\nwritable = ['/cache', '~/.cache/go-build']\nnetwork = true\n"
	c, err := load(good)
	if err != nil || len(c.Permissions.Rules) != 2 || c.Permissions.Rules[1].In != "/p" || c.Sandbox.Commands != "always" || !c.Sandbox.Network || len(c.Sandbox.Writable) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	for text, want := range map[string]string{
		rule("verdict = 'maybe'\nprefix = 'a'"):                  "want allow, ask or deny",
		rule("prefix = 'a'"):                                     "line 1: permissions.rules[0] has no verdict",
		rule("verdict = 'deny'"):                                 "does not say what it covers",
		rule("verdict = 'deny'\nprefix = 'a'\npath = 'b'"):       "does not say what it covers",
		rule("verdict = 'allow'\ntool = 'shell'"):                "whatever it does",
		rule("verdict = 'deny'\nprefix = 'a'\nin = 'p'"):         "from ~/ on",
		rule("verdict = 'deny'\nprefx = 'a'"):                    "prefx is not a setting",
		"[sandbox]\ncommands = 'sometimes'\n":                    "always, unasked or off",
		"[sandbox]\nwritable = ['cache']\n":                      "from ~/ on",
		"[permissions]\npark_minutes = -1\n":                     "is below 0",
		rule("verdict = 'deny'\ntool = 'shell'") + rule("x = 1"): "is not a setting",
	} {
		var e *Error
		if _, err := load(text); !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
