package soap

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/decoders/wap"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

// orderReader sets the fields of an order that are specific to one operation.
type orderReader func(s *Surface, v values, o *message.Order) error

// orderOf converts a request to an order. The error is relay.KindInvalid and names the
// parameter.
func (s *Surface) orderOf(op operation, v values) (message.Order, error) {
	o := message.Order{
		Destinations: v.child("destinationarray").texts("number"), Originator: v.text("originator"),
		SendAt: v.timestamp("sendtime"), Origin: "soap",
	}
	if report := v.child("dlrep"); report.text("callbacktype") == "HTTPGET" {
		o.Report.URL = strings.TrimSpace(report.text("callbackurl"))
		if o.Report.URL == "" {
			return o, relay.Invalid("dlr_url", "is required when callbacktype is HTTPGET")
		}
	}
	return o, op.read(s, v, &o)
}

func readText(s *Surface, v values, o *message.Order) error {
	o.Flash = v.text("messagetype") == "flash"
	o.Body = s.Messages.Text(v.text("message"), int(v.number("maxconcat")))
	return nil
}

func readBinary(_ *Surface, v values, o *message.Order) error {
	data, udh := hex.EncodeToString(v.octets("data")), hex.EncodeToString(v.octets("udh"))
	octets, err := sms.ParseHex(data, udh, int(v.number("encoding")))
	if err != nil {
		return message.Unencodable(err)
	}
	o.Body = message.Octets(octets)
	return nil
}

func readPush(_ *Surface, v values, o *message.Order) error {
	link := wap.Indication{Title: v.text("waptitle"), URL: strings.TrimSpace(v.text("wapurl"))}
	octets, err := link.Message(transaction())
	if err != nil {
		return message.Unencodable(err)
	}
	o.Body = message.Octets(octets)
	return nil
}

// maxExpiry is the longest expiry of a notification, in seconds: phones read at most four octets.
const maxExpiry = 1<<32 - 1

func readNotification(s *Surface, v values, o *message.Order) error {
	if v.number("expiry") > maxExpiry {
		return relay.Invalid("expiry", "expected at most 4294967295 seconds")
	}
	class, err := wap.ParseClass(int(v.number("class")))
	if err != nil {
		return message.Unencodable(err)
	}
	sender := o.Originator // the notification has no sender if the originator is a name
	if strings.Trim(strings.TrimPrefix(sender, "+"), "0123456789") != "" {
		sender = ""
	}
	n := wap.Notification{
		Transaction: relay.NewID(s.Now()), From: sender, Subject: v.text("subject"), Class: class,
		Size: v.number("filesize"), Expiry: time.Duration(v.number("expiry")) * time.Second, URL: strings.TrimSpace(v.text("mmsurl")),
	}
	octets, err := n.Message(transaction())
	if err != nil {
		return message.Unencodable(err)
	}
	o.Body = message.Octets(octets)
	return nil
}

// transaction returns a random id, by which phones distinguish consecutive pushes.
func transaction() byte { return byte(rand.Uint32()) }
