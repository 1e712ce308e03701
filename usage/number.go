package usage

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// plus adds two numbers that are not negative. A sum that is too large stays at the largest number: no budget is larger.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Plus adds two numbers that are not negative, up to the largest there is.
func Plus(a, b int64) int64 { return plus(a, b) }

// product is a sum of products of numbers that are not negative, in 128 bits.
type product struct {
	high, low uint64
	over      bool
}

func (p *product) add(a, b int64) {
	if a <= 0 || b <= 0 {
		return
	}
	high, low := bits.Mul64(uint64(a), uint64(b))
	var carry uint64
	p.low, carry = bits.Add64(p.low, low, 0)
	p.high, carry = bits.Add64(p.high, high, carry)
	p.over = p.over || carry != 0
}

// million is how many tokens a price is for, and how many millionths a unit of a currency has.
const million = 1_000_000

// millionth is a millionth of the sum. A started one counts whole: what is spent is never understated.
func (p product) millionth() int64 {
	if p.over || p.high >= million {
		return math.MaxInt64
	}
	q, rest := bits.Div64(p.high, p.low, million)
	if rest > 0 && q < math.MaxUint64 {
		q++
	}
	return int64(min(q, math.MaxInt64))
}

// Amount writes millionths as a decimal number with two places at least: "0.42", "1.000005".
func Amount(micros int64) string {
	whole, part := micros/million, fmt.Sprintf("%06d", micros%million)
	for len(part) > 2 && strings.HasSuffix(part, "0") {
		part = part[:len(part)-1]
	}
	return strconv.FormatInt(whole, 10) + "." + part
}

// Micros reads a decimal number above zero as millionths, exactly.
func Micros(text string) (int64, error) {
	whole, part, _ := strings.Cut(text, ".")
	if whole == "" {
		whole = "0"
	}
	if len(part) > 6 && strings.Trim(part[6:], "0") != "" {
		return 0, errors.New("it has more than six places")
	}
	part = (part + "000000")[:6]
	n, err := strconv.ParseUint(whole+part, 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("it is too large")
	case err != nil || n == 0:
		return 0, errors.New("it must be a decimal number above 0, such as 2.50")
	}
	return int64(n), nil
}
