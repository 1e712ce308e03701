package server

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Lines come out as they went in, in whatever pieces; what is too long is an error at its place and nothing else.
func FuzzLines(f *testing.F) {
	f.Add("a\nbb\n\nlong line here\nlast")
	f.Add(strings.Repeat("x", 100) + "\nnext\n")
	f.Fuzz(func(t *testing.T, in string) {
		const most = 12
		var want []string
		for _, line := range strings.SplitAfter(in, "\n") {
			text, ended := strings.CutSuffix(line, "\n")
			switch {
			case len(text) > most:
				want = append(want, "!")
			case ended || text != "":
				want = append(want, "="+text)
			}
		}
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(in), "bytes": iotest.OneByteReader(strings.NewReader(in))} {
			l := &lines{bufio.NewReaderSize(r, 16), most}
			var got []string
			for {
				line, err := l.next()
				if errors.Is(err, errTooLong) {
					got = append(got, "!")
					continue
				}
				if err != nil {
					break
				}
				got = append(got, "="+string(line))
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s: %q gives %q, want %q", name, in, got, want)
			}
		}
	})
}
