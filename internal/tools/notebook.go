package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"holdfast/session"
)

const (
	maxNotebook = 16 << 20 // bytes of a notebook that is shown cell by cell
	maxCellOut  = 2_000    // bytes shown of the outputs of a cell
)

// notebookFile is what is read of a notebook.
type notebookFile struct {
	Cells []struct {
		Kind    string       `json:"cell_type"`
		Source  notebookText `json:"source"`
		Outputs []struct {
			Kind  string                  `json:"output_type"`
			Text  notebookText            `json:"text"`
			Data  map[string]notebookText `json:"data"`
			Name  string                  `json:"ename"`
			Value string                  `json:"evalue"`
		} `json:"outputs"`
	} `json:"cells"`
}

// notebookText is a text, or a list of its lines, or anything else, which is left out.
type notebookText string

func (t *notebookText) UnmarshalJSON(b []byte) error {
	var one string
	var lines []string
	if json.Unmarshal(b, &one) != nil {
		if json.Unmarshal(b, &lines) != nil {
			*t = notebookText(fmt.Sprintf("[%d bytes of JSON]", len(b)))
			return nil
		}
		one = strings.Join(lines, "")
	}
	*t = notebookText(one)
	return nil
}

// notebook shows a notebook cell by cell. The text is empty when it is none; it is then read as any other text.
func (r *reading) notebook(ctx context.Context) (session.Output, error) {
	b, err := io.ReadAll(io.LimitReader(untilDone(ctx, r.all), maxNotebook+1))
	if err != nil {
		return session.Output{}, r.failed(ctx, err)
	}
	r.all = bytes.NewReader(b)
	var nb notebookFile
	if json.Unmarshal(b, &nb) != nil || nb.Cells == nil {
		return session.Output{}, nil
	}
	var text strings.Builder
	for i, c := range nb.Cells {
		fmt.Fprintf(&text, "[cell %d, %s]\n%s\n", i+1, visibleName(c.Kind), strings.TrimSuffix(string(c.Source), "\n"))
		var outs strings.Builder
		for _, o := range c.Outputs {
			outs.WriteString(string(o.Text))
			if o.Name != "" {
				fmt.Fprintf(&outs, "%s: %s\n", o.Name, o.Value)
			}
			outs.WriteString(notebookData(o.Data))
		}
		if outs.Len() > 0 {
			fmt.Fprintf(&text, "[output of cell %d]\n%s\n", i+1, session.Shorten(strings.TrimSuffix(r.o.Mask.Text(outs.String()), "\n"), maxCellOut))
		}
	}
	digest := digestOf(b)
	p := r.o.newPage(r.in)
	if err := p.scan(strings.NewReader(text.String()), true); err != nil {
		return session.Output{}, r.failed(ctx, err)
	}
	what := fmt.Sprintf("a notebook with %d cells, version %s of the file. Its JSON is what is edited: read it with raw first", len(nb.Cells), versionOf(digest))
	return session.Output{Text: p.told(what, true), Digest: digest}, nil
}

// notebookData shows the plain text of an output, and names what else there is.
func notebookData(data map[string]notebookText) string {
	out := ""
	for _, kind := range []string{"image/png", "image/jpeg", "image/svg+xml", "text/html"} {
		if d, ok := data[kind]; ok {
			out += fmt.Sprintf("[%s, %d bytes]\n", kind, len(d))
		}
	}
	if d, ok := data["text/plain"]; ok {
		out += string(d) + "\n"
	}
	return out
}
