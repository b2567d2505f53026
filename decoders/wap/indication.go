package wap

import (
	"strings"

	"github.com/penstock/penstock/decoders/sms"
)

// Indication is a service indication: the phone shows the title and offers to
// open the address. What the document leaves optional (times, an id, an action
// other than the default, signal-medium) is left out.
type Indication struct {
	Title string // UTF-8; may be empty
	URL   string // absolute, percent-encoded where it is not ASCII
}

// The WBXML document: version 1.2, SI 1.0, UTF-8, no string table
// (WAP-154, 5.4; WAP-167, 8.3).
const (
	wbxmlVersion = 0x02
	publicID     = 0x05
	charsetUTF8  = 0x6A
	end          = 0x01
	inlineString = 0x03

	tagSI         = 0x05 | withContent
	tagIndication = 0x06 | withContent | withAttributes

	withContent    = 0x40
	withAttributes = 0x80
)

// contentTypeSI is application/vnd.wap.sic as a well-known value.
const contentTypeSI = 0x2E | 0x80

// beginnings of href have tokens of their own, the longest first.
func beginnings() []token {
	return []token{{"https://www.", 0x0F}, {"http://www.", 0x0D}, {"https://", 0x0E}, {"http://", 0x0C}, {"", 0x0B}}
}

// endings are the attribute values that a token stands for.
func endings() []token {
	return []token{{".com/", 0x85}, {".edu/", 0x86}, {".net/", 0x87}, {".org/", 0x88}}
}

type token struct {
	text string
	code byte
}

// Message is the indication as a push to port 2948; transaction is an id that
// the phone does not use.
//
// It returns a decoders.Error with format "si" and field "url" or "title".
func (s Indication) Message(transaction byte) (sms.Octets, error) {
	body, err := s.wbxml()
	if err != nil {
		return sms.Octets{}, err
	}
	return push(transaction, []byte{contentTypeSI}, body), nil
}

func (s Indication) wbxml() ([]byte, error) {
	if err := checkAddress("si", "url", s.URL); err != nil {
		return nil, err
	}
	if err := checkText("si", "title", s.Title, true); err != nil {
		return nil, err
	}
	buf := []byte{wbxmlVersion, publicID, charsetUTF8, 0, tagSI, tagIndication}
	buf = appendHref(buf, s.URL)
	buf = append(buf, end)
	if s.Title != "" {
		buf = appendString(buf, s.Title)
	}
	return append(buf, end, end), nil
}

// appendHref writes the attribute with the tokens that shorten it.
func appendHref(dst []byte, url string) []byte {
	for _, b := range beginnings() {
		if remaining, ok := strings.CutPrefix(url, b.text); ok {
			return appendValue(append(dst, b.code), remaining)
		}
	}
	return dst // not reached: the last beginning is empty
}

// appendValue writes a value, with a token for its first ending of a host.
func appendValue(dst []byte, value string) []byte {
	for _, e := range endings() {
		prefix, suffix, found := strings.Cut(value, e.text)
		if !found {
			continue
		}
		dst = append(appendString(dst, prefix), e.code)
		return appendString(dst, suffix)
	}
	return appendString(dst, value)
}

// appendString writes an inline string; nothing for an empty one.
func appendString(dst []byte, s string) []byte {
	if s == "" {
		return dst
	}
	return append(append(append(dst, inlineString), s...), 0)
}
