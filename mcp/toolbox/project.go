package toolbox

import (
	"fmt"
	"slices"

	"holdfast/session"
)

// ProjectServer is a server that a project defines. It runs in the project's directory.
type ProjectServer struct {
	Server
	Dir string
}

// adopt brings the servers of a session's project to what counts right now: trust is given, taken back, and ends with a change of a file.
// It is asked before each request of a conversation and each call; without a project it costs a look at the directory.
func (b *Box) adopt(s session.Session, bu *bundle) {
	if b.Project == nil {
		return
	}
	want, notices, err := b.Project(b.ctx, s) // the request that opened the session may be answered, and its context over
	if err != nil {
		if b.ctx.Err() == nil {
			b.Log.Error().Err(err).Str("session_id", string(s.ID)).Msg("looking at a project failed")
		}
		return
	}
	b.mu.Lock()
	if b.closed || b.sessions[s.ID] != bu {
		b.mu.Unlock()
		return
	}
	keys := make([]string, len(want))
	for i, sv := range want {
		keys[i] = "project\x00" + sv.Dir + "\x00" + sv.Name + "\x00" + sv.digest(b.Key)
	}
	var kept []*held
	for _, h := range bu.servers {
		if h.key != "" && !slices.Contains(keys, h.key) {
			b.letGo(h)
			continue
		}
		kept = append(kept, h)
	}
	for i, sv := range want {
		switch at := slices.IndexFunc(kept, func(h *held) bool { return h.name == sv.Name }); {
		case at >= 0 && kept[at].key == keys[i]:
		case at >= 0:
			notices = append(notices, fmt.Sprintf("The MCP server %q of the project is left out: this session has one of that name already, which is used.", sv.Name))
		default:
			kept, bu.waited = append(kept, b.project(sv, keys[i])), false
		}
	}
	bu.servers = kept
	b.mu.Unlock()
	for _, n := range notices {
		b.tell(s.ID, "%s", n)
	}
}

// project is a server of a project, shared by the sessions in it. b.mu is held.
func (b *Box) project(sv ProjectServer, key string) *held {
	h := b.shared[key]
	if h == nil {
		h = &held{name: sv.Name, digest: sv.digest(b.Key), config: true, key: key}
		b.arm(h, sv.Server, sv.Dir, func() {})
		b.shared[key] = h
	}
	h.uses++
	return h
}

// Masked hides what may be a secret in the arguments of a server.
func Masked(args []string) []string { return masked(args) }
