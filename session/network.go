package session

import (
	"path"
	"slices"
	"strings"
)

// online are programs that do nothing without the network.
var online = []string{"curl", "wget", "ssh", "scp", "sftp", "ftp", "lftp", "nc", "ncat", "netcat", "telnet", "ping", "ping6", "dig", "nslookup", "host", "whois",
	"traceroute", "gh", "hub", "glab", "aws", "gcloud", "az", "kubectl", "helm", "terraform", "ansible", "ansible-playbook", "npx", "bunx", "pnpx", "apt", "apt-get",
	"dnf", "yum", "brew", "apk", "pacman", "snap", "flatpak", "aria2c", "http", "https", "youtube-dl", "yt-dlp", "rclone", "ssh-copy-id", "mosh"}

// onlineWhen are programs that need it for some of what they do: the first words behind their options.
var onlineWhen = map[string][]string{
	"git":      {"push", "fetch", "pull", "clone", "ls-remote", "submodule", "remote update", "remote show", "send-email", "archive --remote"},
	"go":       {"get", "mod download", "mod tidy"},
	"npm":      {"install", "i", "ci", "add", "update", "up", "upgrade", "publish", "unpublish", "audit", "outdated", "view", "info", "search", "login", "exec", "x", "init", "create"},
	"pnpm":     {"install", "i", "add", "update", "up", "publish", "audit", "outdated", "dlx", "create", "fetch"},
	"yarn":     {"install", "add", "up", "upgrade", "publish", "audit", "outdated", "dlx", "create"},
	"bun":      {"install", "i", "add", "update", "publish", "create", "x"},
	"cargo":    {"add", "fetch", "update", "install", "publish", "search", "login", "yank", "owner"},
	"rustup":   {"update", "install", "toolchain install", "component add", "target add", "self update"},
	"pip":      {"install", "download", "search", "index"},
	"uv":       {"add", "sync", "lock", "pip install", "pip sync", "tool install", "python install", "publish"},
	"poetry":   {"install", "add", "update", "lock", "publish"},
	"gem":      {"install", "update", "fetch", "push", "search"},
	"bundle":   {"install", "update", "add", "outdated"},
	"composer": {"install", "update", "require", "create-project"},
	"svn":      {"checkout", "co", "update", "up", "commit", "ci"},
	"hg":       {"pull", "push", "clone", "incoming", "outgoing"},
	"rsync":    nil,
}

// needsNetwork tells whether a command does nothing without the network.
func needsNetwork(words []CommandWord) bool {
	if len(words) == 0 || !words[0].Static {
		return false
	}
	program := path.Base(words[0].Text)
	if slices.Contains(online, program) {
		return true
	}
	if strings.TrimRight(program, "0123456789.") == "pip" {
		program = "pip"
	}
	var plain []string // without options
	for _, w := range words[1:] {
		if program == "rsync" && strings.Contains(w.Text, ":") {
			return true
		}
		if !strings.HasPrefix(w.Text, "-") || len(plain) > 0 {
			plain = append(plain, w.Text)
		}
	}
	if program == "go" && len(plain) > 1 && (plain[0] == "install" || plain[0] == "run") && strings.Contains(strings.Join(plain, " "), "@") {
		return true
	}
	if (program == "yarn" || program == "pnpm") && len(plain) == 0 {
		return program == "yarn"
	}
	if strings.TrimRight(program, "0123456789.") == "python" && len(words) > 3 && words[1].Text == "-m" && words[2].Text == "pip" {
		return needsNetwork(words[2:])
	}
	line := strings.Join(plain, " ") + " "
	return slices.ContainsFunc(onlineWhen[program], func(start string) bool { return strings.HasPrefix(line, start+" ") })
}
