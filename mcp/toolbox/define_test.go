package toolbox

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"holdfast/mcp/client"
)

func TestMasked_WhatMayBeASecret(t *testing.T) {
	for name, tc := range map[string]struct{ args, want []string }{
		"plain":             {[]string{"-y", "server", "/home/me/notes"}, []string{"-y", "server", "/home/me/notes"}},
		"flag and value":    {[]string{"--api-key", "abc123", "dir"}, []string{"--api-key", "***", "dir"}},
		"assigned":          {[]string{"--token=abc123", "--depth=3"}, []string{"--token=***", "--depth=3"}},
		"in an address":     {[]string{"postgres://me:pw@host/db", "https://host/path"}, []string{"***", "https://host/path"}},
		"looks like one":    {[]string{"sk-abcdef", "ghp_abcdef"}, []string{"***", "***"}},
		"two flags":         {[]string{"--auth", "--verbose"}, []string{"--auth", "--verbose"}},
		"variable":          {[]string{"-e", "API_KEY=abc123"}, []string{"-e", "API_KEY=***"}},
		"header":            {[]string{"X-Api-Key:abc123"}, []string{"X-Api-Key:***"}},
		"personal token":    {[]string{"--pat", "abc123", "github_pat_11A"}, []string{"--pat", "***", "***"}},
		"path with a colon": {[]string{"/keys:/mnt", "C:\\keys"}, []string{"/keys:/mnt", "C:\\keys"}},
		"header as a word":  {[]string{"--header", "Authorization: Bearer x"}, []string{"--header", "Authorization:***"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := masked(tc.args); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestServer_StoredHoldsNoValue(t *testing.T) {
	s := Server{Name: "n", Command: "c", Args: []string{"--password", "hunter2hunter2"}, Env: []string{"API_TOKEN=tok-0123456789", "DIR=/srv/data"}}
	b, err := json.Marshal(s.stored([]byte("key")))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter2hunter2", "tok-0123456789", "/srv/data"} {
		if strings.Contains(string(b), secret) {
			t.Errorf("%s is stored: %s", secret, b)
		}
	}
	other := s
	other.Env = []string{"API_TOKEN=tok-9876543210", "DIR=/srv/data"}
	if s.digest([]byte("key")) == other.digest([]byte("key")) || s.digest([]byte("key")) == s.digest([]byte("other key")) {
		t.Error("the digest does not depend on the values and the key")
	}
	a := veiled(client.Answer{Raw: json.RawMessage(`{"t":"tok-0123456789 in /srv/data"}`), Text: "tok-0123456789 and hunter2hunter2 in /srv/data"}, s.veil())
	if a.Text != "[secret hidden by holdfast] and [secret hidden by holdfast] in /srv/data" || string(a.Raw) != `{"t":"[secret hidden by holdfast] in /srv/data"}` {
		t.Errorf("the answer is %q, %s", a.Text, a.Raw)
	}
}

// A secret is hidden however an answer writes it.
func TestVeil_EveryForm(t *testing.T) {
	s := Server{Args: []string{"-e", "API_KEY=docker-secret-1", "postgres://me:pass-in-url@host/db", "Authorization: Bearer bearer-secret"},
		Env: []string{`Q_PASSWORD=pa"ss-0002-abc`, `B_SECRET=pa\ss-0003-abc`, "P_KEY=-----BEGIN KEY-----\nMIIabcdefgh\nMIIijklmnop\n-----END KEY-----",
			"U_TOKEN=schl\u00fcssel<&>0004", "DATABASE_URL=mysql://me:pass-in-env@host/db", "DIR=/srv/data"}}
	for name, text := range map[string]string{
		"plain":         `pa"ss-0002-abc pa\ss-0003-abc docker-secret-1 pass-in-url bearer-secret pass-in-env`,
		"in JSON":       `{"a":"pa\"ss-0002-abc","b":"pa\\ss-0003-abc"}`,
		"in JSON twice": `{"text":"{\"a\":\"MIIabcdefgh\\nMIIijklmnop\"}"}`,
		"lines":         "MIIabcdefgh\nMIIijklmnop",
		"escaped":       `schl\u00fcssel<&>0004 schl\u00fcssel\u003c\u0026\u003e0004`,
	} {
		got := s.veil().Text(text)
		for _, secret := range []string{"ss-0002", "ss-0003", "MII", "ssel", "docker-secret", "pass-in", "bearer-secret"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s: %q is left in %q", name, secret, got)
			}
		}
	}
	if got := s.veil().Text("files of /srv/data on host"); got != "files of /srv/data on host" {
		t.Errorf("too much is hidden: %q", got)
	}
}
