package tools

import (
	"encoding/json"

	"holdfast/session"
)

type deleteArgs struct {
	Paths []string `json:"paths"`
}

const maxDeleted = 200 // files of one call

type deleteTool struct{ writer }

func (deleteTool) Spec() session.ToolSpec {
	return spec("delete", "Delete files, all or none. The user can take it back. Use a command for folders.",
		`{"type":"object","properties":{"paths":{"type":"array","items":{"type":"string"}}},"required":["paths"],"additionalProperties":false}`)
}
func (deleteTool) Kind() session.Kind { return session.KindDelete }

func (t deleteTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in deleteArgs
	if err := decodeArgs("delete", args, &in, "paths"); err != nil {
		return session.Plan{}, err
	}
	if len(in.Paths) == 0 || len(in.Paths) > maxDeleted {
		return session.Plan{}, failf("Give between 1 and %d paths.", maxDeleted)
	}
	var changes []session.FileChange
	var names []string
	var kind session.Place
	seen, size := map[string]bool{}, 0
	for _, path := range in.Paths {
		s, err := t.o.whole(env, path)
		if err != nil {
			return session.Plan{}, err
		}
		if seen[s.place.abs] {
			continue
		}
		if size += len(s.bytes); size > maxKept {
			return session.Plan{}, failf("The files have more than %d bytes together, which cannot be kept for the user to take back. Delete fewer at once.", maxKept)
		}
		seen[s.place.abs] = true
		kind, names, changes = kind.Worse(s.place.kind), append(names, shown(env, s.place.abs)), append(changes, s.deletion())
	}
	return changing(env, "Delete "+some(names), kind, nil, changes...)
}
