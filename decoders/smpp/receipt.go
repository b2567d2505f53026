package smpp

import (
	"fmt"
	"strings"

	"github.com/penstock/penstock/decoders/sms"
)

// Receipt is an SMSC's report about a message that the gateway submitted.
type Receipt struct {
	ID    string // the SMSC's id of the message, as it writes it
	State string // DELIVRD, UNDELIV, …, or message_state 119 for an unknown number; empty if missing
	Error string // the network's code, as it came; 000 is none
}

// Receipt reads a receipt: from the optional parameters, and what they do not
// say from the text, which is as appendix B of SMPP 3.4 suggests, or nearly so.
func (d *Delivery) Receipt() Receipt {
	r := ParseReceipt([]byte(d.ReceiptText()))
	if id := d.MessageID(); id != "" {
		r.ID = id
	}
	if n, ok := d.number(tagMessageState); ok && stateName(n) != "" {
		r.State = stateName(n)
	} else if ok && r.State == "" {
		r.State = fmt.Sprint("message_state ", n)
	}
	return r
}

// ReceiptText is the text of a receipt without a byte order mark. The data_coding may be that
// of the message instead of the receipt, so the text is the reading that has a receipt's
// fields: the octets as they are, for fields are ASCII in nearly all codings, UTF-16, or
// packed septets. Without such fields it is the octets.
func (d *Delivery) ReceiptText() string {
	udh, octets, _ := d.Split()
	for _, text := range []string{string(octets), sms.DecodeUCS2(octets), sms.DecodeUTF16LE(octets), string(sms.Unpack(octets, len(udh)))} {
		if field(text, "id:") >= 0 || field(text, "stat:") >= 0 {
			return strings.TrimPrefix(text, "\ufeff")
		}
	}
	return string(octets)
}

// stateName is a message_state (5.2.28, and SMPP 5.0, 4.7.15) as texts write it.
func stateName(n int) string {
	names := [...]string{"SCHEDULED", "ENROUTE", "DELIVRD", "EXPIRED", "DELETED", "UNDELIV", "ACCEPTD", "UNKNOWN", "REJECTD", "SKIPPED"}
	if n >= len(names) {
		return ""
	}
	return names[n]
}

// ParseReceipt reads the text of a receipt:
//
//	id:1001 sub:001 dlvrd:001 submit date:2601011200 done date:2601011201 stat:DELIVRD err:000 text:hello
//
// Fields may be missing, in another order, in any case, and have blanks behind
// the colon, and line ends or tabs between them. What stands in text: is the message's and says nothing.
func ParseReceipt(text []byte) Receipt {
	s := string(text)
	if offset := field(s, "text:"); offset >= 0 {
		s = s[:offset]
	}
	return Receipt{ID: word(s, "id:"), State: strings.ToUpper(word(s, "stat:")), Error: word(s, "err:")}
}

// fieldNames are the names that may follow a field without a value.
func fieldNames() []string {
	return []string{"id:", "sub:", "dlvrd:", "submit date:", "done date:", "stat:", "err:", "text:"}
}

// blanks may stand between fields.
const blanks = " \t\r\n"

// field returns where a field's name stands as a word of its own, or -1.
func field(s, name string) int {
	lower := lowered(s)
	for start := 0; ; {
		offset := strings.Index(lower[start:], name)
		if offset < 0 {
			return -1
		}
		offset += start
		if offset == 0 || strings.IndexByte(blanks, lower[offset-1]) >= 0 {
			return offset
		}
		start = offset + len(name)
	}
}

// lowered is s with its ASCII letters in lower case. A text need not be UTF-8,
// and every octet keeps its place.
func lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// word returns a field's value, up to the next blank.
func word(s, name string) string {
	offset := field(s, name)
	if offset < 0 {
		return ""
	}
	remaining := strings.TrimLeft(s[offset+len(name):], blanks)
	for _, name := range fieldNames() {
		if strings.HasPrefix(lowered(remaining), name) {
			return ""
		}
	}
	if end := strings.IndexAny(remaining, blanks); end >= 0 {
		remaining = remaining[:end]
	}
	return strings.Trim(remaining, "\x00")
}
