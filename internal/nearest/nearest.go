// Package nearest finds the word that was probably meant.
//
// Invariant:
//
//	I1: a word is near only when few letters differ; with none near, nothing is guessed.
package nearest

import "strings"

// Of is the name that takes the fewest changes, if they are few.
func Of(name string, names []string) string {
	best, least := "", 1+max(1, min(len(name), 9)/3)
	for _, n := range names {
		if d := distance(strings.ToLower(name), n); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance counts the letters to change, add, leave out or swap with their neighbour.
func distance(a, b string) int {
	const most = 64
	x, y := []rune(a), []rune(b)
	if len(x) > most || len(y) > most {
		return most
	}
	d := make([][]int, len(x)+1)
	for i := range d {
		d[i] = make([]int, len(y)+1)
		d[i][0] = i
	}
	for j := range y {
		d[0][j+1] = j + 1
	}
	for i := range x {
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			d[i+1][j+1] = min(d[i][j+1]+1, d[i+1][j]+1, d[i][j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				d[i+1][j+1] = min(d[i+1][j+1], d[i-1][j-1]+1)
			}
		}
	}
	return d[len(x)][len(y)]
}
