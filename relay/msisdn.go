package relay

import "strings"

// MSISDN is a subscriber number in E.164 form: 7 to 15 digits, country code
// first, no leading zero, no plus sign.
type MSISDN string

// ParseMSISDN checks a number as the specification does: only basic validation.
func ParseMSISDN(s string) (MSISDN, error) {
	if !Digits(s) || len(s) < 7 || len(s) > 15 || s[0] == '0' {
		return "", Errorf(KindInvalid, "number %q: want 7 to 15 digits, country code first", s)
	}
	return MSISDN(s), nil
}

// NumberFrom tidies a number as carriers write it (+44…, 0044…, blanks, dashes) to digits. A
// text that is not a number, for example an alphanumeric originator, is returned as it came,
// with ok false.
func NumberFrom(s string) (number string, ok bool) {
	trimmed, plus := strings.CutPrefix(strings.Map(separator, strings.TrimSpace(s)), "+")
	if !plus {
		trimmed = strings.TrimPrefix(trimmed, "00")
	}
	if !Digits(trimmed) {
		return s, false
	}
	return trimmed, true
}

// separator drops what people write between digits.
func separator(r rune) rune {
	if strings.ContainsRune(" -()", r) {
		return -1
	}
	return r
}

// Digits reports whether a text is one or more of the digits 0 to 9.
func Digits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}
