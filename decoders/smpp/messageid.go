package smpp

import (
	"fmt"
	"hash/crc32"
	"math/big"
	"slices"
	"strings"
	"unicode"
)

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
		if !ok || len(same) > maxNumeric || !isHex(same) {
			continue
		}
		if id := n.Text(base[1]); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// isHex reports whether an id has nothing but digits, which big.Int does not ask
// for: it takes signs and underscores too.
func isHex(id string) bool { return strings.Trim(id, "0123456789abcdef") == "" }

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
		return "", fault("command_id", 4, h.Command.String()+" is no answer to a message")
	}
	if len(pdu) == HeaderLen {
		return "", nil
	}
	r := reader{pdu: pdu, offset: HeaderLen}
	id := r.text("message_id", maxMessageID)
	return strings.TrimSpace(id), r.err
}
