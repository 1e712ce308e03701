package goals

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast/session"
)

// Extraction is how far reading the objective came. It is entered by a creation or a revision to which the user gave no requirements.
type Extraction string

const (
	ExtractionNone    Extraction = ""        // the user gave the requirements
	ExtractionPending Extraction = "pending" // the model is asked before the first turn
	ExtractionDone    Extraction = "done"    // its answer is stored, also an empty one; it is never asked again
	ExtractionFailed  Extraction = "failed"  // it gave nothing usable, and is not asked again
)

// extractionOf is where a Goal with these requirements begins.
func extractionOf(reqs []Requirement) Extraction {
	if len(reqs) > 1 { // more than the objective itself
		return ExtractionNone
	}
	return ExtractionPending
}

// Bounds of what a model may read out of an objective, and of how often it is asked when no answer arrives.
const (
	maxExtracted     = 20
	maxExtractedText = 1000
	maxExtractions   = 3
)

const extractTool = "submit_requirements"

const extractor = "You read what a user wants from a coding agent and name the conditions that can be checked when the agent says that it is done. You do not do " +
	"the work. Name only what the user's words demand: nothing weaker, nothing more, no steps and no advice. A short wish may have no condition but " +
	"itself; the list is empty then. Answer by calling " + extractTool + " once."

var extractSpec = session.ToolSpec{Name: extractTool, Description: "Submit the conditions. kind \"file\": a file exists (path), or matches a regular expression " +
	"(pattern, RE2). \"command\": a command exits with 0 (command); only one that the user named. \"semantic\": a sentence that a reviewer can judge (text).",
	Schema: json.RawMessage(`{"type":"object","properties":{"requirements":{"type":"array","maxItems":20,"items":{"type":"object","properties":{` +
		`"kind":{"type":"string","enum":["command","file","semantic"]},"text":{"type":"string","description":"The condition in words."},` +
		`"command":{"type":"string"},"path":{"type":"string"},"pattern":{"type":"string"}},"required":["kind","text"]}}},"required":["requirements"]}`)}

// question asks the model of the session what the objective demands, while that is not known. It is nil once it is, and when it was asked often
// enough without an answer.
func question(tx Tx, s session.Session, r session.Run, g *Goal) (*session.Enquiry, error) {
	if g.Extraction != ExtractionPending {
		return nil, nil
	}
	reqs, err := tx.RequestsOf(r.ID)
	if err != nil {
		return nil, err
	}
	asked := 0
	for _, q := range reqs {
		if q.Purpose == session.PurposeRequirements && q.Revision == g.Revision {
			asked++
		}
	}
	if asked >= maxExtractions {
		g.Extraction, g.ExtractionNote = ExtractionFailed, fmt.Sprintf("The model was asked %d times and no answer arrived.", asked)
		return nil, tx.UpdateGoal(*g, g.UpdatedAt)
	}
	id := g.ID
	return &session.Enquiry{Purpose: session.PurposeRequirements, System: extractor + "\nWorking directory: " + s.Cwd,
		Text: "The user's objective, verbatim:\n" + g.Objective, Tool: extractSpec,
		Done: func(stx session.Tx, a session.Answered) error { return extracted(in(stx), id, s, a) }}, nil
}

// extracted stores what was read out of the objective, or why nothing was. An answer to other words, or one that nobody waits for any more, changes
// nothing.
func extracted(tx Tx, id string, s session.Session, a session.Answered) error {
	g, err := tx.Goal(id)
	if err != nil {
		return err
	}
	if g.Status.Ended() || g.Extraction != ExtractionPending || g.Revision != a.Request.Revision {
		return nil
	}
	have, err := tx.Requirements(id, g.Revision)
	if err != nil {
		return err
	}
	reqs, why := readList(have, s, a)
	g.Extraction, g.UpdatedAt = ExtractionDone, a.Now
	if why != "" {
		g.Extraction, g.ExtractionNote = ExtractionFailed, why
	} else if err := tx.PutRequirements(id, g.Revision, reqs); err != nil {
		return err
	}
	return tx.UpdateGoal(g, a.Now)
}

// readList turns an answer into requirements behind those that there are, or says why it does not. An answer with a mistake counts as none: half a list may be worse.
func readList(have []Requirement, s session.Session, a session.Answered) (out []Requirement, why string) {
	if a.Refused != "" {
		return nil, "The request was refused: " + a.Refused
	}
	at := slices.IndexFunc(a.Calls, func(c session.Call) bool { return c.Name == extractTool })
	if at < 0 {
		return nil, "The model gave no list."
	}
	var in struct {
		Requirements []struct {
			Kind                         Kind
			Text, Command, Path, Pattern string
		}
	}
	if err := json.Unmarshal([]byte(a.Calls[at].Args), &in); err != nil {
		return nil, "The model gave a list that cannot be read."
	}
	if len(in.Requirements) > maxExtracted {
		return nil, fmt.Sprintf("The model gave %d requirements; %d are the most.", len(in.Requirements), maxExtracted)
	}
	var given []Requirement
	for i, q := range in.Requirements {
		for _, text := range []string{q.Text, q.Command, q.Path, q.Pattern} {
			if utf8.RuneCountInString(text) > maxExtractedText {
				return nil, fmt.Sprintf("Requirement %d of the model's list is too long.", i+1)
			}
		}
		if q.Kind == KindFile && !below(s, q.Path) {
			return nil, fmt.Sprintf("Requirement %d of the model's list is about a file outside the workspace.", i+1)
		}
		if q.Kind == KindSemantic && strings.TrimSpace(q.Text) == strings.TrimSpace(have[0].Text) {
			continue // the objective is one already
		}
		given = append(given, Requirement{Kind: q.Kind, Text: strings.TrimSpace(q.Text), Command: q.Command, Path: q.Path, Pattern: q.Pattern})
	}
	out, err := extend(have, given)
	if err != nil {
		return nil, "The model gave a list with a mistake: " + err.Error() + "."
	}
	for i := range out[len(have):] {
		q := &out[len(have)+i]
		q.Origin, q.Confirmed = FromModel, false
	}
	return out, ""
}

// below tells by its spelling whether a path lies in a directory of the session; a review looks at its links.
func below(s session.Session, path string) bool {
	path = absolute(s, path)
	return slices.ContainsFunc(append([]string{s.Cwd}, s.Roots...), func(root string) bool { return within(root, path) })
}
