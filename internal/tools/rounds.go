package tools

import (
	"context"
	"os"
	"slices"
)

const (
	firstRound = 1_000   // files that are searched before anybody is asked: a common text is found there often enough
	nextRound  = 20_000  // files of a round with ripgrep
	maxAsked   = 500_000 // bytes of the names that it is handed
)

// round is a part of the folders of a search.
type round struct {
	from, to int
	without  map[string]map[string]bool // by folder: files in which nothing matches, as far as they are known
}

// rounds searches all folders. What is common is found in the first files; for what is rare, ripgrep says which of the others need no look.
func (s *search) rounds(ctx context.Context, root *os.Root) {
	enough := s.frontier()
	var helper *ripgrep
	for at := 0; at < len(s.hits) && ctx.Err() == nil; {
		r := s.round(at, helper != nil)
		if helper != nil && !s.ask(ctx, helper, &r) {
			helper = nil
		}
		if s.some(ctx, root, r, enough) {
			return
		}
		if at == 0 && s.files(r.to, len(s.hits)) >= firstRound {
			helper = s.o.ripgrepFor(ctx, s.env, s.match)
		}
		at = r.to
	}
}

// files counts the files of some folders.
func (s *search) files(from, to int) (n int) {
	for _, f := range s.walked.folders[from:to] {
		n += len(f.names)
	}
	return n
}

// round is the folders from one on.
func (s *search) round(from int, asked bool) round {
	most := firstRound
	switch {
	case asked:
		most = nextRound
	case from > 0:
		return round{from: from, to: len(s.hits)}
	}
	to, size := from, 0
	for n := 0; to < len(s.hits) && n < most && size < maxAsked; to++ {
		n += len(s.walked.folders[to].names)
		size += len(s.walked.folders[to].dir)
	}
	return round{from: from, to: to}
}

// ask finds out which files of a round need no look. It is false when that is not worth doing again.
func (s *search) ask(ctx context.Context, helper *ripgrep, r *round) bool {
	match, secret := matcher(s.args.Glob), newSecretNames()
	var dirs []string
	asked := 0
	for _, f := range s.walked.folders[r.from:r.to] {
		secret.enter(s.below(f.dir))
		// Files that may hold secrets are nobody's to look into, and those that the pattern of names leaves out would be looked into for nothing.
		if !slices.ContainsFunc(f.names, func(base string) bool { return secret.holds(base) || !match(f.dir, base) }) {
			dirs, asked = append(dirs, f.dir), asked+len(f.names)
		}
	}
	if asked < firstRound {
		return true
	}
	found, err := helper.without(ctx, s.place.abs, dirs)
	if err != nil {
		s.o.debug("a search goes on without %s: %v", helper.program, err)
		return false
	}
	r.without = found
	n := 0
	for _, names := range found {
		n += len(names)
	}
	return n >= asked/2
}
