package tools

import (
	varint "encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// lineDFA tells quickly which lines of plain ASCII match an expression; lines with other characters are left to the expression itself. Its
// states are made as they are needed. One goroutine uses it.
//
// A state is the set of instructions that are waiting, before what asserts about the next character was looked at, and the character before.
type lineDFA struct {
	prog   *syntax.Prog
	states map[string]int32
	sets   []dfaState
	next   []int32 // by state and byte; 0 is not known yet
	broken bool    // too many states: it is not used any more
	seen   []uint32
	mark   uint32
	stack  []uint32
}

type dfaState struct {
	waits  []uint32
	before rune
}

const (
	dfaMatch  = int32(-1) // the line matches, whatever follows
	dfaNone   = int32(-2) // it does not, at its end
	dfaStart  = int32(1)
	dfaMost   = 2_000
	dfaSymbol = utf8.RuneSelf + 1 // every ASCII character, and the end of the line
	dfaEnd    = utf8.RuneSelf
)

// newLineDFA returns nil for an expression that is too large for it.
func newLineDFA(pattern string) *lineDFA {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > 2_000 {
		return nil
	}
	d := &lineDFA{prog: prog, states: map[string]int32{}, seen: make([]uint32, len(prog.Inst))}
	d.sets, d.next = make([]dfaState, 1), make([]int32, dfaSymbol)
	d.state(dfaState{[]uint32{uint32(prog.Start)}, -1})
	return d
}

// find returns where in a text a line begins that matches or that the expression has to be asked about, or -1.
func (d *lineDFA) find(text []byte) int {
	state, line := dfaStart, 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= utf8.RuneSelf || d.broken {
			return line
		}
		symbol := int(c)
		if c == '\n' || c == '\r' && (i+1 == len(text) || text[i+1] == '\n') {
			symbol = dfaEnd
		}
		to := d.next[int(state)*dfaSymbol+symbol]
		if to == 0 {
			to = d.step(state, symbol)
		}
		switch {
		case to == dfaMatch:
			return line
		case symbol == dfaEnd:
			if c == '\r' && i+1 < len(text) {
				i++
			}
			state, line = dfaStart, i+1
		default:
			state = to
		}
	}
	if line < len(text) && d.step(state, dfaEnd) == dfaMatch { // a last line without an end
		return line
	}
	return -1
}

// step makes one transition.
func (d *lineDFA) step(from int32, symbol int) int32 {
	s := d.sets[from]
	after := rune(symbol)
	if symbol == dfaEnd {
		after = -1
	}
	waits, matched := d.closure(s, syntax.EmptyOpContext(s.before, after))
	to := dfaNone
	switch {
	case matched:
		to = dfaMatch
	case symbol != dfaEnd:
		var next []uint32
		for _, pc := range waits {
			if in := &d.prog.Inst[pc]; takes(in, after) && !slices.Contains(next, in.Out) {
				next = append(next, in.Out)
			}
		}
		if !slices.Contains(next, uint32(d.prog.Start)) {
			next = append(next, uint32(d.prog.Start)) // a match may begin anywhere
		}
		slices.Sort(next)
		before := rune('-') // only what assertions tell apart matters
		if syntax.IsWordChar(after) {
			before = 'w'
		}
		to = d.state(dfaState{next, before})
	}
	d.next[int(from)*dfaSymbol+symbol] = to
	return to
}

// closure follows what needs no character. It tells whether a match is reached, and which instructions want one.
func (d *lineDFA) closure(s dfaState, holds syntax.EmptyOp) (waits []uint32, matched bool) {
	d.mark++
	d.stack = append(d.stack[:0], s.waits...)
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if d.seen[pc] == d.mark {
			continue
		}
		d.seen[pc] = d.mark
		switch in := &d.prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return nil, true
		case syntax.InstAlt, syntax.InstAltMatch:
			d.stack = append(d.stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			d.stack = append(d.stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^holds == 0 {
				d.stack = append(d.stack, in.Out)
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			waits = append(waits, pc)
		}
	}
	return waits, false
}

// state numbers a state.
func (d *lineDFA) state(s dfaState) int32 {
	key := varint.AppendVarint(nil, int64(s.before))
	for _, pc := range s.waits {
		key = varint.AppendUvarint(key, uint64(pc))
	}
	if n, known := d.states[string(key)]; known {
		return n
	}
	if len(d.sets) >= dfaMost {
		d.broken = true
		return dfaStart
	}
	n := int32(len(d.sets))
	d.states[string(key)] = n
	d.sets = append(d.sets, s)
	d.next = append(d.next, make([]int32, dfaSymbol)...)
	return n
}

// takes tells whether an instruction goes on with a character, which is never a line end.
func takes(in *syntax.Inst, c rune) bool {
	return in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL || in.MatchRune(c)
}
