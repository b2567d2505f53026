package sms

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// TestSignatureSelectsTheAccount posts messages without a token. A valid signature selects the account
// that has a token with the source in the path. The signature covers the public URL.
func TestSignatureSelectsTheAccount(t *testing.T) {
	t.Parallel()
	const inventory = `
accounts:
  - name: acme
    tokens: [{token: acme-token-0123456, scopes: [messaging]}, {token: twilio-token-0123456, scopes: [carrier], source: tw, secret: shh}]
    relays: {vmn: [{id: desk, number: "447860000001", action: desktopsms, parameters: [desk]}]}`
	g := e2e.Start(t, e2e.Embedded(), inventory, "PENSTOCK_PUBLIC_URL=https://sms.example.com/gw")
	sign := func(text string) string {
		m := hmac.New(sha1.New, []byte("shh"))
		m.Write([]byte(text))
		return base64.StdEncoding.EncodeToString(m.Sum(nil))
	}
	const form = "Body=hi&From=%2B447700900123&MessageSid=SM1&To=%2B447860000001"
	validSignature := sign("https://sms.example.com/gw/inbound/sms/twilio/tw" + "BodyhiFrom+447700900123MessageSidSM1To+447860000001")
	twilio := g.WithToken("").With("Content-Type", "application/x-www-form-urlencoded")
	twilio.With("X-Twilio-Signature", sign("another")).Post("/inbound/sms/twilio/tw", form).Expect(t, 401, `{"message":"Unauthenticated."}`)
	for range 2 { // a carrier repeats a message after a lost answer
		twilio.With("X-Twilio-Signature", validSignature).Post("/inbound/sms/twilio/tw", form).Expect(t, 200, `<?xml version="1.0" encoding="UTF-8"?><Response></Response>`)
	}
	twilio.With("X-Twilio-Signature", sign("https://sms.example.com/gw/inbound/sms/twilio/tw"+"MessageSidSM2MessageStatusdelivered")).
		Post("/inbound/sms/twilio/tw", "MessageSid=SM2&MessageStatus=delivered").Expect(t, 200, `<?xml version="1.0" encoding="UTF-8"?><Response></Response>`)
	g.AwaitProcessed()
	g.XAuth("acme-token-0123456").Get("/v2/sms-relay/vmn/desk/inbox").Mentions(t, 200, `"data":"hi"`, `"total":1`)
}
