package tools

import (
	"strings"
	"testing"
)

func TestStored_KeepsNoSecret(t *testing.T) {
	hidden := []string{"GITHUB_TOKEN=abc", "MY_KEY=v", "DB_PASSWORD=v", "MYSQL_PWD=v", "NPM_AUTH=v", "SESSION_COOKIE=v", "AWS_CREDENTIAL_X=v", "GH_PAT=v", "SENTRY_DSN=v",
		"DATABASE_URL=postgres://u:pw@h/db", "HEADER=Authorization: Bearer xyz", "X=sk-proj-12345678", "X=ghp_abcdef", "X=AKIAABCDEFGH", "X=eyJhbGciOi.J9",
		"X=-----BEGIN PRIVATE KEY-----", "X=tr0ub4dor-and-more", "X=9f86d081884c7d659a2feaa0c55ad015"}
	for _, kv := range hidden {
		v := Stored([]string{kv}, []byte("key")).Vars[0]
		if v.Hash == "" || v.Value != "" {
			t.Errorf("%s is stored as it is", kv)
		}
	}
	if v := Stored([]string{"PASSED=on"}, []byte("key"), "PASSED").Vars[0]; v.Hash == "" {
		t.Error("a variable that the user passes on by name is stored as it is")
	}
	shown := []string{"PATH=/usr/bin:/opt/keys/bin", "HOME=/home/a", "PWD=/work", "LANG=C.UTF-8", "GIT_AUTHOR_NAME=Ann", "SSH_AUTH_SOCK=/run/user/1/agent",
		"JAVA_HOME=/usr/lib/jvm/java-21-openjdk-amd64", "EDITOR=vi", "EMPTY_TOKEN=", "LS_COLORS=di=01;34:ln=01;36", "PKG_CONFIG_PATH=/usr/lib"}
	for _, kv := range shown {
		v := Stored([]string{kv}, []byte("key")).Vars[0]
		if v.Name+"="+v.Value != kv || v.Hash != "" {
			t.Errorf("%s is stored as %+v", kv, v)
		}
	}
}

func TestStored_IsKeyedAndOrderless(t *testing.T) {
	a := Stored([]string{"A_TOKEN=x", "PATH=/bin"}, []byte("one"))
	if b := Stored([]string{"PATH=/bin", "A_TOKEN=x"}, []byte("one")); a.Digest != b.Digest {
		t.Error("the order makes a difference")
	}
	if b := Stored([]string{"PATH=/bin", "A_TOKEN=x"}, []byte("two")); a.Digest == b.Digest {
		t.Error("the hash does not depend on the store's key")
	}
	if b := Stored([]string{"PATH=/bin", "A_TOKEN=y"}, []byte("one")); a.Digest == b.Digest {
		t.Error("another secret is the same environment")
	}
	if v := Stored([]string{"BIN=a\xffb"}, []byte("one")).Vars[0]; v.Hash == "" || strings.Contains(v.Value, "a") {
		t.Errorf("what is no text is stored as %+v", v)
	}
}
