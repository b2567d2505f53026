package inbound

import (
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/penstock/penstock/decoders/sms"
)

// gatewayMessage is what inbound_gw posts to another gateway. Ours takes it at
// /inbound/sms/json as it is.
type gatewayMessage struct {
	ID         string     `json:"id"`
	From       string     `json:"from"`
	To         string     `json:"to"`
	Text       *string    `json:"text,omitempty"`
	Data       *string    `json:"data,omitempty"` // hex
	UDH        string     `json:"udh"`            // hex
	Coding     sms.Coding `json:"coding"`
	ReceivedAt string     `json:"received_at"` // RFC 3339, UTC
}

func gatewayBody(v view) []byte {
	m := gatewayMessage{
		ID: v.ID, From: v.From, To: v.To, UDH: hex.EncodeToString(v.UDH), Coding: v.Coding,
		ReceivedAt: v.ReceivedAt.UTC().Format(time.RFC3339),
	}
	text := v.Body()
	if v.Coding == sms.Binary {
		m.Data = &text
	} else {
		m.Text = &text
	}
	b, _ := json.Marshal(m) // strings and numbers only
	return b
}
