package rpc

import (
	"bytes"
	"encoding/json"
)

// The functions here walk JSON that is known to be valid, and slice it without copying.

const space = " \t\r\n"

// maxDepth is how deep encoding/json reads.
const maxDepth = 10_000

// eachMember calls fn with the members of an object in order.
func eachMember(object []byte, fn func(name string, value []byte)) {
	rest := bytes.TrimLeft(object[1:], space)
	for len(rest) > 0 && rest[0] == '"' {
		end := stringEnd(rest)
		name := text(rest[:end])
		rest = bytes.TrimLeft(rest[end:], space)
		rest = bytes.TrimLeft(rest[1:], space) // the colon
		end = valueEnd(rest)
		fn(name, bytes.TrimRight(rest[:end], space))
		rest = bytes.TrimLeft(rest[end+1:], space) // the comma or the brace
	}
}

// eachItem calls fn with the items of an array in order.
func eachItem(array []byte, fn func(item []byte)) {
	rest := bytes.TrimLeft(array[1:], space)
	for len(rest) > 0 && rest[0] != ']' {
		end := valueEnd(rest)
		fn(bytes.TrimRight(rest[:end], space))
		rest = bytes.TrimLeft(rest[end+1:], space)
	}
}

// stringEnd returns the length of the string that b begins with.
func stringEnd(b []byte) int {
	for at := 1; at < len(b); {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			break
		}
		at += n + 1
		escapes := 0
		for i := at - 2; i > 0 && b[i] == '\\'; i-- {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
	return len(b)
}

// valueEnd returns where the value that b begins with ends: at the comma or the bracket that follows it.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += stringEnd(b[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}

// tooDeep tells whether b opens more brackets than encoding/json follows. b need not be valid.
func tooDeep(b []byte) bool {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += stringEnd(b[i:]) - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// text decodes a JSON string.
func text(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it is a valid string
	return s
}
