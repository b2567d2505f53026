// Package decimal parses numbers in the format of JSON (RFC 8259, section 6): digits with an
// optional minus sign, fraction and exponent. Unlike strconv, it refuses a plus sign,
// underscores, hexadecimal digits, Inf and NaN.
package decimal

import (
	"math"
	"strconv"
	"strings"
)

// Float parses a number. ok is false for any other text, and for a number beyond the range of
// float64 or so small that it would become 0.
func Float(text string) (v float64, ok bool) {
	digits, _, ok := split(text)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && (v != 0 || digits == "")
}

// Int parses a whole number, which may have a fraction of zeros or an exponent: 1.0, 1e16.
// ok is false for any other text, and for a number beyond 64 bits.
func Int(text string) (n int64, ok bool) {
	digits, exponent, ok := split(text)
	if !ok || digits == "" {
		return 0, ok
	}
	if exponent < 0 || exponent > maxDigits {
		return 0, false
	}
	if text[0] == '-' {
		digits = "-" + digits
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", exponent), 10, 64)
	return n, err == nil
}

// PlainInt parses a whole number without a fraction and an exponent, the format of carriers and
// switches. Unlike a number of JSON, it may begin with zeros. The error is a *strconv.NumError.
func PlainInt(text string) (int64, error) {
	if strings.HasPrefix(text, "+") {
		return 0, &strconv.NumError{Func: "PlainInt", Num: text, Err: strconv.ErrSyntax}
	}
	return strconv.ParseInt(text, 10, 64)
}

// maxDigits is the number of digits of the largest int64.
const maxDigits = 19

// split returns a number without its sign as digits × 10^exponent. The digits neither begin
// nor end with 0. They are empty for 0.
func split(text string) (digits string, exponent int, ok bool) {
	integer, remaining := leadingDigits(strings.TrimPrefix(text, "-"))
	if integer == "" || len(integer) > 1 && integer[0] == '0' {
		return "", 0, false
	}
	var fraction string
	if decimals, found := strings.CutPrefix(remaining, "."); found {
		if fraction, remaining = leadingDigits(decimals); fraction == "" {
			return "", 0, false
		}
	}
	if remaining != "" {
		if exponent, ok = parseExponent(remaining); !ok {
			return "", 0, false
		}
	}
	digits = strings.TrimRight(integer+fraction, "0")
	exponent += len(integer) - len(digits)
	return strings.TrimLeft(digits, "0"), exponent, true
}

// leadingDigits splits a text after the digits that it begins with.
func leadingDigits(text string) (digits, remaining string) {
	remaining = strings.TrimLeft(text, "0123456789")
	return text[:len(text)-len(remaining)], remaining
}

// parseExponent parses e16 or E-3. An exponent beyond 32 bits becomes the nearest number of 32 bits.
func parseExponent(text string) (exponent int, ok bool) {
	if text[0] != 'e' && text[0] != 'E' {
		return 0, false
	}
	digits := text[1:]
	if digits != "" && (digits[0] == '+' || digits[0] == '-') {
		digits = digits[1:]
	}
	if number, remaining := leadingDigits(digits); number == "" || remaining != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text[1:], 10, 32)
	if err != nil {
		n = math.MaxInt32
		if text[1] == '-' {
			n = math.MinInt32
		}
	}
	return int(n), true
}
