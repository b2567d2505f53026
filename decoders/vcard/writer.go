package vcard

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxLine is the largest number of octets of a line without its end.
const maxLine = 75

// writer writes the lines of a card in one version.
type writer struct {
	version Version
	buf     []byte
}

// line writes a content line. A line that is too long is folded by a line end and a blank
// before a character (RFC 2425, 5.8.1; RFC 6350, 3.2).
func (w *writer) line(s string) {
	for room := maxLine; len(s) > room; room = maxLine - 1 { // the blank counts
		cut := room
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		w.buf = append(append(w.buf, s[:cut]...), "\r\n "...)
		s = s[cut:]
	}
	w.buf = append(append(w.buf, s...), "\r\n"...)
}

// names writes the components of the name. In 2.1 the standard escapes only the semicolon. A
// backslash is doubled too, because it would escape a semicolon after it.
func (w *writer) names(surname, forename string) {
	if w.version == V21 {
		escape := strings.NewReplacer(`\`, `\\`, ";", `\;`)
		w.propertyV21("N", escape.Replace(surname)+";"+escape.Replace(forename)+";;;")
		return
	}
	w.line("N:" + escapeText(surname) + ";" + escapeText(forename) + ";;;")
}

// text writes a property with one text, unless the text is empty.
func (w *writer) text(name, text string) {
	switch {
	case text == "":
	case w.version == V21:
		w.propertyV21(name, text)
	default:
		w.line(name + ":" + escapeText(text))
	}
}

// escapeText escapes a text value (RFC 2426, 2.4.2; RFC 6350, 3.4).
func escapeText(text string) string {
	return strings.NewReplacer(`\`, `\\`, ",", `\,`, ";", `\;`, "\n", `\n`).Replace(text)
}

// phone writes a number of one type. 4.0 requires a URI for a global number (RFC 3966:
// + and digits, with separators); other numbers are text.
func (w *writer) phone(kind, number string) {
	digits, isGlobal := strings.CutPrefix(number, "+")
	switch {
	case number == "":
	case w.version == V21:
		w.propertyV21("TEL;"+strings.ToUpper(kind), number)
	case w.version == V30:
		w.line("TEL;TYPE=" + strings.ToUpper(kind) + ":" + escapeText(number))
	case isGlobal && digits != "" && strings.Trim(digits, "0123456789-.() ") == "" && digits[0] >= '0' && digits[0] <= '9':
		w.line("TEL;VALUE=uri;TYPE=" + kind + ":tel:" + strings.ReplaceAll(number, " ", "-"))
	default:
		w.line("TEL;TYPE=" + kind + ":" + escapeText(number))
	}
}

func (w *writer) email(address string) {
	switch {
	case address == "":
	case w.version == V21:
		w.propertyV21("EMAIL;INTERNET", address)
	case w.version == V30:
		w.line("EMAIL;TYPE=INTERNET:" + escapeText(address))
	default:
		w.line("EMAIL:" + escapeText(address))
	}
}

// propertyV21 writes a property of 2.1. A value is quoted-printable unless it is printable ASCII on a
// line that is short enough, because 2.1 allows folding at blanks only and has no escape for a
// line break. A value that ends with = is quoted-printable too, because some readers take the =
// for a soft line break.
func (w *writer) propertyV21(name, value string) {
	if isPlainText(value) && !strings.HasSuffix(value, "=") && len(name)+1+len(value) <= maxLine {
		w.line(name + ":" + value)
		return
	}
	if !isASCII(value) {
		name += ";CHARSET=UTF-8"
	}
	w.quotedPrintable(name+";ENCODING=QUOTED-PRINTABLE:", strings.ReplaceAll(value, "\n", "\r\n"))
}

// quotedPrintable writes a value as quoted-printable (RFC 1521, 5.1). Soft line breaks do not split
// characters and CR LF, because some phones decode line by line. A blank is quoted at the end
// of the value and at the start of a line, where it would mean a folded line.
func (w *writer) quotedPrintable(name, value string) {
	w.buf = append(w.buf, name...)
	length := len(name)
	for len(value) > 0 {
		_, size := utf8.DecodeRuneInString(value)
		if strings.HasPrefix(value, "\r\n") {
			size = len("\r\n")
		}
		character := value[:size]
		value = value[size:]
		code := character
		if !isPrintable(character[0]) || character == "=" || character == " " && value == "" {
			code = "=" + strings.ReplaceAll(fmt.Sprintf("% X", character), " ", "=")
		}
		if length+len(code) > maxLine-1 { // the = of the soft break
			w.buf = append(w.buf, "=\r\n"...)
			length = 0
		}
		if length == 0 && code == " " {
			code = "=20"
		}
		w.buf = append(w.buf, code...)
		length += len(code)
	}
	w.buf = append(w.buf, "\r\n"...)
}

func isPrintable(c byte) bool { return c >= ' ' && c <= '~' }

func isPlainText(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
