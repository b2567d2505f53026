package smpp

import "strings"

// maxMessageID is the longest message_id, with its end (4.4.2).
const maxMessageID = 65

// ParseMessageID reads the SMSC's id of a message out of its answer to a
// submit_sm or a data_sm. It is empty in an answer without a body, which is what
// SMSCs send when they refuse.
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
	r := reader{pdu: pdu, at: HeaderLen}
	id := r.text("message_id", maxMessageID)
	return strings.TrimSpace(id), r.err
}
