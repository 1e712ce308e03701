package usage

import "math"

// plus adds two numbers that are not negative. A sum that is too large stays at the largest number: no budget is larger.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
