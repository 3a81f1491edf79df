package jsondoc

import (
	"strconv"
	"strings"
)

// sameNumber reports whether two JSON numbers have one value: 1, 1.0 and 10e-1 do. No number is made of the text, so
// that 1e400 and 0.1 are exact and 1e999999999 costs nothing.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, okX := decimalOf(a)
	y, okY := decimalOf(b)
	return okX && okY && x == y
}

// decimal is digits × 10^exponent, without zeros at either end of digits.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// decimalOf reads a JSON number. It is not ok where the exponent is beyond 10^15: nobody means such a number.
func decimalOf(s string) (d decimal, ok bool) {
	d.negative = strings.HasPrefix(s, "-")
	mantissa, exponent := strings.TrimPrefix(s, "-"), ""
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		mantissa, exponent = mantissa[:i], mantissa[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return decimal{}, true // zero has one value, whatever its sign and exponent
	}
	if exponent != "" {
		n, err := strconv.ParseInt(exponent, 10, 64)
		if err != nil || n > 1e15 || n < -1e15 {
			return d, false
		}
		d.exponent = n
	}
	d.exponent -= int64(len(fraction))
	d.digits = strings.TrimRight(digits, "0")
	d.exponent += int64(len(digits) - len(d.digits))
	return d, true
}

// Whole reads a number that is an integer by JSON Schema (2020-12, Core 4.2.3 and Validation 6.1.1): 15.0 and 15e0 are.
// It reports false for any other, and for one that is beyond an int64.
func Whole(number string) (int64, bool) {
	d, ok := decimalOf(number)
	if !ok || d.exponent < 0 || int64(len(d.digits))+d.exponent > 19 {
		return 0, false
	}
	digits := "0" + d.digits + strings.Repeat("0", int(d.exponent))
	if d.negative {
		digits = "-" + digits
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}
