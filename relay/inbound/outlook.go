package inbound

import (
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// maxOutlookSubject is how many characters of a text Outlook's mobile service
// shows as the subject.
const maxOutlookSubject = 40

// outlook is a mail that Outlook's mobile service reads as a text message: its
// class says so, and an answer goes to the sender's number.
func outlook(to, messageID string, v view) *outbox.Mail {
	text := strings.ToValidUTF8(v.Body(), "\uFFFD")
	header := map[string]string{"Content-class": "MS-OMS-SMS"}
	if sender := oneLine(v.From, maxInSubject); sender != "" {
		header["X-MS-Reply-To-Mobile"] = international(sender)
	}
	return &outbox.Mail{
		To: to, Subject: oneLine(text, maxOutlookSubject), Text: text, MessageID: messageID, Header: header,
	}
}

// international writes a whole number with its plus sign; short codes and names
// stay as they are.
func international(sender string) string {
	if _, err := relay.ParseMSISDN(sender); err != nil {
		return sender
	}
	return "+" + sender
}
