package smpp

import (
	"fmt"
	"hash/crc32"
	"math/big"
	"slices"
	"strings"
	"unicode"

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
	// A name behind the colon means that the field has no value.
	for _, name := range []string{"id:", "sub:", "dlvrd:", "submit date:", "done date:", "stat:", "err:", "text:"} {
		if strings.HasPrefix(lowered(remaining), name) {
			return ""
		}
	}
	if end := strings.IndexAny(remaining, blanks); end >= 0 {
		remaining = remaining[:end]
	}
	return strings.Trim(remaining, "\x00")
}

// CanonicalID is an SMSC's id of a message as it is compared: SMSCs write one id
// in capitals or not, and with or without zeros in front. Nothing is left of an
// id of zeros only but one.
func CanonicalID(id string) string {
	id = strings.ToLower(strings.TrimSpace(id))
	if bare := strings.TrimLeftFunc(id, func(r rune) bool { return r == '0' || unicode.IsSpace(r) }); bare != "" {
		return bare
	}
	return id[:min(1, len(id))]
}

// maxNumeric is the longest id that is taken for a number: 16 hexadecimal digits
// are 64 bits, 20 decimal ones are no more.
const maxNumeric = 20

// ReceiptIDs lists what the id in a receipt may have been in the answer to the
// submission, likeliest first: the same, else the same number in hexadecimal
// (where the receipt has it in decimal), or in decimal.
func ReceiptIDs(id string) []string {
	same := CanonicalID(id)
	if same == "" {
		return nil
	}
	ids := []string{same}
	for _, base := range [][2]int{{10, 16}, {16, 10}} {
		n, ok := new(big.Int).SetString(same, base[0])
		if !ok || len(same) > maxNumeric || strings.Trim(same, "0123456789abcdef") != "" { // big.Int takes signs and underscores too
			continue
		}
		if id := n.Text(base[1]); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// ReferenceOf is the user_message_reference that we give a message of an id.
func ReferenceOf(id string) uint16 { return uint16(crc32.ChecksumIEEE([]byte(id))) }

// UnansweredID stands for the id of a message whose answer was lost: our
// reference, which some SMSCs give back in receipts, and the number.
func UnansweredID(reference uint16, number string) string {
	return fmt.Sprintf("ref %d %s", reference, number)
}

// maxMessageID is the longest message_id, with its end (4.4.2).
const maxMessageID = 65

// ParseMessageID reads the SMSC's id of a message out of its answer to a submit_sm or a
// data_sm. It is empty in an answer without a body, as SMSCs send it when they refuse.
func ParseMessageID(pdu []byte) (string, error) {
	h, err := ParseHeader(pdu)
	if err != nil {
		return "", err
	}
	if h.Command != SubmitSM.Answer() && h.Command != DataSM.Answer() {
		return "", fault("command_id", 4, h.Command.String()+" is not an answer to a message")
	}
	if len(pdu) == HeaderLen {
		return "", nil
	}
	r := reader{pdu: pdu, offset: HeaderLen}
	id := r.text("message_id", maxMessageID)
	return strings.TrimSpace(id), r.err
}
