package tools

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"holdfast/session"
)

// foldCase: names that differ only in case are one file on this system. A test pretends.
var foldCase = runtime.GOOS == "darwin" || runtime.GOOS == "windows"

// sameName compares two names as the system does.
func sameName(a, b string) bool {
	return a == b || foldCase && strings.EqualFold(a, b)
}

// hidden are characters that some systems leave out when they look up a name.
var hidden = strings.NewReplacer("\u200c", "", "\u200d", "", "\u200e", "", "\u200f", "", "\u202a", "", "\u202b", "", "\u202c", "", "\u202d", "", "\u202e", "",
	"\u206a", "", "\u206b", "", "\u206c", "", "\u206d", "", "\u206e", "", "\u206f", "", "\ufeff", "")

// plainName is a name in the one spelling that patterns are held against: some system would take it for the same.
func plainName(name string) string {
	name, _, _ = strings.Cut(hidden.Replace(name), ":") // a stream of the file
	return strings.ToLower(strings.TrimRight(name, ". "))
}

// parts are the names in a path.
func parts(path string) []string {
	names := strings.FieldsFunc(path[len(filepath.VolumeName(path)):], func(r rune) bool { return r == filepath.Separator })
	return slices.DeleteFunc(names, func(s string) bool { return s == "." })
}

// gitInternal tells whether a place is git's own: a .git folder or file and all below, and the insides of a repository under any other name
// (bare, of a submodule, kept apart from its work tree). A workspace that itself lies below a .git folder is no such place.
func gitInternal(p place) bool {
	names := p.abs
	if p.inside {
		names = p.rel
	}
	if slices.ContainsFunc(parts(names), func(s string) bool { n := plainName(s); return n == ".git" || n == "git~1" }) {
		return true
	}
	for dir := p.abs; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if isRepository(dir) {
			return true
		}
	}
	return false
}

// isRepository tells by what git looks for as well.
func isRepository(dir string) bool {
	is := func(name string, folder bool) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.IsDir() == folder
	}
	return is("HEAD", false) && is("refs", true) && (is("objects", true) || is("commondir", false))
}

// obeyed are files that a program runs or obeys by itself, once somebody opens the folder, enters it or uses git there.
var obeyed = regexp.MustCompile(`(^|/)(\.holdfast|\.vscode|\.idea|\.zed|\.husky|\.githooks|\.devcontainer|\.claude|\.cursor)(/|$)` +
	`|(^|/)(\.envrc|\.mcp\.json|\.gitmodules|\.bashrc|\.bash_profile|\.profile|\.zshrc|\.zshenv|\.gitconfig)$`)

// secretFiles are files whose name says that they hold keys or passwords.
var secretFiles = regexp.MustCompile(`(^|/)(\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.password-store)(/|$)` +
	`|(^|/)\.docker/config\.json$|(^|/)gcloud/.*` +
	`|(^|/)(\.env|\.env\.[^/]+|[^/]+\.env)$` +
	`|\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc|gpg)$` +
	`|(^|/)(id_[^./]+|id_(rsa|dsa|ecdsa|ed25519)[^/]*)$` +
	`|(^|/)(credentials|\.credentials|credentials\.(json|ya?ml|toml|ini)|client_secret[^/]*\.json|service[-_]account[^/]*\.json|secrets?\.(json|ya?ml|toml|ini|env))$` +
	`|(^|/)(\.netrc|_netrc|\.npmrc|\.pypirc|\.pgpass|\.my\.cnf|\.git-credentials|\.htpasswd|\.vault-token|terraform\.tfstate|[^/]+\.tfvars)$`)

// open names only look like secrets.
var openName = regexp.MustCompile(`(^|/)\.env\.(example|sample|template|dist|defaults?)$|(^|/)[^/]*(example|sample)\.env$|\.pub$|(^|/)[^/]*\.pub\.(asc|gpg|pem)$`)

// plainPath is a path in the one spelling that patterns are held against.
func plainPath(path string) string {
	names := parts(path)
	for i := range names {
		names[i] = plainName(names[i])
	}
	return strings.Join(names, "/")
}

// secretFile tells whether a path is named like something that holds secrets.
func secretFile(path string) bool {
	p := plainPath(path)
	return secretFiles.MatchString(p) && !openName.MatchString(p)
}

// kindOf is where a path lies, for the policy. rel is its name inside its root; what lies outside has none.
func kindOf(abs, rel string, inside bool) session.Place {
	switch {
	case inside && secretFile(rel), !inside && secretFile(abs):
		return session.PlaceSecret
	case !inside:
		return session.PlaceOutside
	case obeyed.MatchString(plainPath(rel)):
		return session.PlaceProtected
	}
	return session.PlaceInside
}

// marks say in a title why a call is asked about.
var marks = map[session.Place]string{session.PlaceOutside: " (outside the workspace)", session.PlaceProtected: " (obeyed by a program)",
	session.PlaceSecret: " (may hold secrets)"}
