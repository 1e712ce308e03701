package server

// tools lists every tool. mcp-go sorts them by name.
func tools() []tool {
	return append(goalTools(), append(sessionTools(), journalTools()...)...)
}

var (
	looks   = hints{readOnly: true, idempotent: true}
	decides = hints{destructive: true, idempotent: true, openWorld: true} // final, and refused the second time
	starts  = hints{destructive: true, openWorld: true}                   // an agent works because of it
)

// Pages of every listing.
const (
	pageDefault = 50
	pageMax     = 200
)

// page is what every listing takes.
type page struct {
	Cursor string `json:"cursor,omitempty" jsonschema:"nextCursor of the page before; leave it out to begin"`
	Limit  int    `json:"limit,omitempty" jsonschema:"entries on a page, 1 to 200; 50 by default"`
}

func (p page) limit() (int, error) {
	switch {
	case p.Limit == 0:
		return pageDefault, nil
	case p.Limit < 0 || p.Limit > pageMax:
		return 0, invalid("limit", "%d is not between 1 and %d", p.Limit, pageMax)
	}
	return p.Limit, nil
}
