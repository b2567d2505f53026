package relay

import "strings"

// MSISDN is a subscriber number in E.164 form: 7 to 15 digits, country code
// first, no leading zero, no plus sign.
type MSISDN string

// ParseMSISDN parses a number. It checks the form of the number, but not its country code.
func ParseMSISDN(s string) (MSISDN, error) {
	if !Digits(s) || len(s) < 7 || len(s) > 15 || s[0] == '0' {
		return "", Errorf(KindInvalid, "number %q must be 7 to 15 digits, country code first", s)
	}
	return MSISDN(s), nil
}

// NumberFrom converts a number as carriers write it (+44…, 0044…, blanks, dashes, parentheses) to digits.
// If s is not a number, for example an alphanumeric originator, NumberFrom returns s and false.
func NumberFrom(s string) (number string, ok bool) {
	digits, hasPlus := strings.CutPrefix(strings.Map(dropSeparator, strings.TrimSpace(s)), "+")
	if !hasPlus {
		digits = strings.TrimPrefix(digits, "00")
	}
	if !Digits(digits) {
		return s, false
	}
	return digits, true
}

func dropSeparator(r rune) rune {
	if strings.ContainsRune(" -()", r) {
		return -1
	}
	return r
}

// Digits reports whether a text is one or more of the digits 0 to 9.
func Digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
