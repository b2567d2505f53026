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
	ID    string // the SMSC's id of the message, unchanged
	State string // DELIVRD, UNDELIV, …, or "message_state 119" for an unknown number; empty if missing
	Error string // the network's error code, unchanged; 000 means no error
}

// Receipt returns the values of a receipt. A value comes from its optional parameter or, if that
// is missing, from the text (ParseReceipt).
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

// ReceiptText returns the text of a receipt without a byte order mark. The data_coding is
// not used, because some SMSCs send the data_coding of the message. The text is the first of
// these decodings that has a field id or stat: ASCII (which suits most codings), UTF-16,
// packed septets. If none has one, the octets are returned unchanged.
func (d *Delivery) ReceiptText() string {
	udh, octets, _ := d.Split()
	for _, text := range []string{string(octets), sms.DecodeUCS2(octets), sms.DecodeUTF16LE(octets), string(sms.Unpack(octets, len(udh)))} {
		if fieldOffset(text, "id:") >= 0 || fieldOffset(text, "stat:") >= 0 {
			return strings.TrimPrefix(text, "\ufeff")
		}
	}
	return string(octets)
}

// stateName returns the name of a message_state (5.2.28, and SMPP 5.0, 4.7.15) in the text of
// receipts, or "" if it is unknown.
func stateName(n int) string {
	names := [...]string{"SCHEDULED", "ENROUTE", "DELIVRD", "EXPIRED", "DELETED", "UNDELIV", "ACCEPTD", "UNKNOWN", "REJECTD", "SKIPPED"}
	if n >= len(names) {
		return ""
	}
	return names[n]
}

// ParseReceipt parses the text of a receipt (SMPP 3.4, appendix B):
//
//	id:1001 sub:001 dlvrd:001 submit date:2601011200 done date:2601011201 stat:DELIVRD err:000 text:hello
//
// Fields may be missing or in another order, and their names in any case. They may be
// separated by line ends or tabs, and blanks may follow a colon. The field text is ignored
// because it holds the beginning of the message.
func ParseReceipt(text []byte) Receipt {
	s := string(text)
	if offset := fieldOffset(s, "text:"); offset >= 0 {
		s = s[:offset]
	}
	return Receipt{ID: fieldValue(s, "id:"), State: strings.ToUpper(fieldValue(s, "stat:")), Error: fieldValue(s, "err:")}
}

// blanks are the characters that separate fields.
const blanks = " \t\r\n"

// fieldOffset returns the offset of a field's name, or -1 if it is missing. The name must follow a
// blank or begin the text.
func fieldOffset(s, name string) int {
	lower := lowerASCII(s)
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

// lowerASCII returns s with its ASCII letters in lower case. It keeps the length of s, which may
// be invalid UTF-8.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// fieldValue returns a field's value, up to the next blank.
func fieldValue(s, name string) string {
	offset := fieldOffset(s, name)
	if offset < 0 {
		return ""
	}
	remaining := strings.TrimLeft(s[offset+len(name):], blanks)
	// The field is empty if another field follows its colon.
	for _, name := range []string{"id:", "sub:", "dlvrd:", "submit date:", "done date:", "stat:", "err:", "text:"} {
		if strings.HasPrefix(lowerASCII(remaining), name) {
			return ""
		}
	}
	if end := strings.IndexAny(remaining, blanks); end >= 0 {
		remaining = remaining[:end]
	}
	return strings.Trim(remaining, "\x00")
}

// CanonicalID returns an SMSC's id of a message in lower case and without leading zeros,
// because SMSCs write one id differently in a response and in a receipt. An id of zeros
// becomes "0".
func CanonicalID(id string) string {
	id = strings.ToLower(strings.TrimSpace(id))
	if bare := strings.TrimLeftFunc(id, func(r rune) bool { return r == '0' || unicode.IsSpace(r) }); bare != "" {
		return bare
	}
	return id[:min(1, len(id))]
}

// maxNumeric is the largest length of an id that may be a number: 64 bits have up to 16
// hexadecimal or 20 decimal digits.
const maxNumeric = 20

// ReceiptIDs returns the canonical ids that the response to the submission may have had if
// the receipt has id, the likeliest first: the same id, then the same number converted from
// decimal to hexadecimal and from hexadecimal to decimal.
func ReceiptIDs(id string) []string {
	canonical := CanonicalID(id)
	if canonical == "" {
		return nil
	}
	ids := []string{canonical}
	for _, base := range [][2]int{{10, 16}, {16, 10}} {
		n, ok := new(big.Int).SetString(canonical, base[0])
		if !ok || len(canonical) > maxNumeric || strings.Trim(canonical, "0123456789abcdef") != "" { // big.Int accepts signs and underscores too
			continue
		}
		if id := n.Text(base[1]); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// ReferenceOf returns the user_message_reference of the message with an id of the gateway.
func ReferenceOf(id string) uint16 { return uint16(crc32.ChecksumIEEE([]byte(id))) }

// UnansweredID returns a replacement for the SMSC's id of a message whose response was lost.
// It is made of the user_message_reference, which some SMSCs repeat in receipts, and of the
// recipient's number.
func UnansweredID(reference uint16, number string) string {
	return fmt.Sprintf("ref %d %s", reference, number)
}

// maxMessageID is the largest length of message_id in octets, with its NUL (4.4.2).
const maxMessageID = 65

// ParseMessageID returns the SMSC's id of a message from the response to a submit_sm or a
// data_sm. It is empty if the response has no body, which is usual for a refusal.
func ParseMessageID(pdu []byte) (string, error) {
	h, err := ParseHeader(pdu)
	if err != nil {
		return "", err
	}
	if h.Command != SubmitSM.Answer() && h.Command != DataSM.Answer() {
		return "", fault("command_id", 4, h.Command.String()+" is not a response to a submission")
	}
	if len(pdu) == HeaderLen {
		return "", nil
	}
	r := reader{pdu: pdu, offset: HeaderLen}
	id := r.text("message_id", maxMessageID)
	return strings.TrimSpace(id), r.err
}
