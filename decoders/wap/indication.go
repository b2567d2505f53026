package wap

import (
	"strings"

	"github.com/penstock/penstock/decoders/sms"
)

// Indication is a service indication: the phone shows the title and offers to
// open the address. The optional attributes (times, an id, an action
// other than the default) are omitted.
type Indication struct {
	Title string // UTF-8; may be empty
	URL   string // absolute, in ASCII
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

// Message returns the indication as a push to port 2948. transaction is an id that
// phones ignore.
//
// It returns a decoders.Error with format "si" and field "url" or "title".
func (i Indication) Message(transaction byte) (sms.Octets, error) {
	if err := checkAddress("si", "url", i.URL); err != nil {
		return sms.Octets{}, err
	}
	if err := checkText("si", "title", i.Title, true); err != nil {
		return sms.Octets{}, err
	}
	type token struct {
		text string
		code byte
	}
	body := []byte{wbxmlVersion, publicID, charsetUTF8, 0, tagSI, tagIndication}
	// Write the attribute href. Tokens shorten its start and its first occurrence of the end of
	// a host.
	address := i.URL
	for _, t := range []token{{"https://www.", 0x0F}, {"http://www.", 0x0D}, {"https://", 0x0E}, {"http://", 0x0C}, {"", 0x0B}} {
		if remaining, ok := strings.CutPrefix(address, t.text); ok {
			body, address = append(body, t.code), remaining
			break
		}
	}
	for _, t := range []token{{".com/", 0x85}, {".edu/", 0x86}, {".net/", 0x87}, {".org/", 0x88}} {
		if host, path, found := strings.Cut(address, t.text); found {
			body, address = append(appendString(body, host), t.code), path
			break
		}
	}
	body = append(appendString(body, address), end)
	body = append(appendString(body, i.Title), end, end)
	return newPush(transaction, []byte{contentTypeSI}, body), nil
}

// appendString appends an inline string, or nothing for an empty string.
func appendString(dst []byte, s string) []byte {
	if s == "" {
		return dst
	}
	return append(append(append(dst, inlineString), s...), 0)
}
