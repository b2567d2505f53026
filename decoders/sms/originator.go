package sms

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of an originator (TS 23.040, 9.1.2.5): digits of a number, characters of
// a name.
const (
	maxOriginatorDigits = 15
	maxOriginatorName   = 11
)

// IsOriginator reports whether phones can show a text as the originator of a
// message: 1 to 15 digits, with or without a plus sign, or 1 to 11 characters of the
// alphabet.
func (a *Alphabet) IsOriginator(text string) bool {
	if digits := NormalizeOriginator(text); digits != "" && isDigits(digits) {
		return len(digits) <= maxOriginatorDigits
	}
	return utf8.RuneCountInString(text) <= maxOriginatorName && strings.TrimSpace(text) != "" &&
		!strings.ContainsFunc(text, unicode.IsControl) && a.Fits(text)
}

// NormalizeOriginator returns a number without its plus sign, and any other
// originator as it is.
func NormalizeOriginator(originator string) string {
	if digits, ok := strings.CutPrefix(originator, "+"); ok && digits != "" && isDigits(digits) {
		return digits
	}
	return originator
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }
