package wap

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders/sms"
)

// Class is the class of a multimedia message (MMS Encapsulation, 7.3.26).
type Class byte

// The classes. The numbers 80 to 83 of the API are these octets in hexadecimal.
const (
	Personal      Class = 0x80
	Advertisement Class = 0x81
	Informational Class = 0x82
	Auto          Class = 0x83
)

// ParseClass parses 80, 81, 82 or 83.
//
// It returns a decoders.Error with format "mms" and field "class".
func ParseClass(number int) (Class, error) {
	if number < 80 || number > 83 {
		return 0, newError("mms", "class", -1, "is not 80, 81, 82 or 83")
	}
	return Personal + Class(number-80), nil
}

// Notification announces a multimedia message that a phone may fetch.
type Notification struct {
	Transaction string        // id of this notification, printable ASCII, at most 40 octets
	From        string        // number in digits, or empty
	Subject     string        // UTF-8, one line, or empty
	Class       Class         // 0 means Personal
	Size        int64         // of the message in octets
	Expiry      time.Duration // from receipt, whole seconds (X-Mms-Expiry, relative)
	URL         string        // address from which the phone fetches the message
}

// Codes of header fields and values (MMS Encapsulation, 7.3 and tables 12, 13).
const (
	headerLocation    = 0x83
	headerExpiry      = 0x88
	headerFrom        = 0x89
	headerClass       = 0x8A
	headerType        = 0x8C
	headerVersion     = 0x8D
	headerSize        = 0x8E
	headerSubject     = 0x96
	headerTransaction = 0x98

	notificationInd = 0x82
	version1        = 0x90
	addressPresent  = 0x80
	relative        = 0x81
	utf8MIBenum     = 0xEA
	quote           = 0x7F
	lengthQuote     = 0x1F
)

// Message returns the notification as a push to port 2948. transaction is the id of the push,
// which phones ignore.
//
// It returns a decoders.Error with format "mms" and field "transaction", "from",
// "subject", "class", "size", "expiry" or "url".
func (n Notification) Message(transaction byte) (sms.Octets, error) {
	if err := n.check(); err != nil {
		return sms.Octets{}, err
	}
	// The content type application/vnd.wap.mms-message and X-Wap-Application-Id mms.ua, as
	// well-known values.
	headers := []byte{0x3E | 0x80, 0x2F | 0x80, 0x04 | 0x80}
	return newPush(transaction, headers, n.body()), nil
}

func (n Notification) check() error {
	const maxID = 40
	if len(n.Transaction) > maxID {
		return newError("mms", "transaction", maxID, "is longer than 40 octets")
	}
	if err := checkAddress("mms", "transaction", n.Transaction); err != nil {
		return err
	}
	for i, c := range []byte(n.From) {
		if c < '0' || c > '9' {
			return newError("mms", "from", i, "is not a number in digits")
		}
	}
	if err := checkText("mms", "subject", n.Subject, false); err != nil {
		return err
	}
	switch {
	case n.Class != 0 && (n.Class < Personal || n.Class > Auto):
		return newError("mms", "class", -1, "is not 0x80 to 0x83")
	case n.Size < 0:
		return newError("mms", "size", -1, "is below zero")
	case n.Expiry < 0 || n.Expiry%time.Second != 0:
		return newError("mms", "expiry", -1, "is not a number of seconds")
	}
	return checkAddress("mms", "url", n.URL)
}

// body returns the header fields in the order of the table. The first three fields must come first.
func (n Notification) body() []byte {
	buf := []byte{headerType, notificationInd}
	buf = appendText(append(buf, headerTransaction), n.Transaction)
	buf = append(buf, headerVersion, version1)
	if n.From != "" {
		address := appendText([]byte{addressPresent}, "+"+n.From+"/TYPE=PLMN")
		buf = appendLengthy(append(buf, headerFrom), address)
	}
	if n.Subject != "" {
		buf = appendEncoded(append(buf, headerSubject), n.Subject)
	}
	buf = append(buf, headerClass, byte(max(n.Class, Personal)))
	buf = appendLong(append(buf, headerSize), uint64(n.Size))
	expiry := appendLong([]byte{relative}, uint64(n.Expiry/time.Second))
	buf = appendLengthy(append(buf, headerExpiry), expiry)
	return appendText(append(buf, headerLocation), n.URL)
}

// appendText appends a Text-string, with a quote before a first octet that
// would mean a value of one octet (WAP-230, 8.4.2.1).
func appendText(dst []byte, s string) []byte {
	if s != "" && s[0] >= 0x80 {
		dst = append(dst, quote)
	}
	return append(append(dst, s...), 0)
}

// appendEncoded appends an Encoded-string-value, which names the charset unless the text is
// ASCII (MMS Encapsulation, 7.3.20).
func appendEncoded(dst []byte, s string) []byte {
	if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return appendLengthy(dst, appendText([]byte{utf8MIBenum}, s))
	}
	return appendText(dst, s)
}

// appendLengthy appends a Value-length and the value (WAP-230, 8.4.2.2).
func appendLengthy(dst, value []byte) []byte {
	if len(value) < lengthQuote {
		return append(append(dst, byte(len(value))), value...)
	}
	return append(appendUintvar(append(dst, lengthQuote), uint64(len(value))), value...)
}

// appendLong appends a Long-integer: the number of octets, and as few octets as possible
// (WAP-230, 8.4.2.1).
func appendLong(dst []byte, v uint64) []byte {
	octets := []byte{byte(v)}
	for v >>= 8; v > 0; v >>= 8 {
		octets = append([]byte{byte(v)}, octets...)
	}
	return append(append(dst, byte(len(octets))), octets...)
}
