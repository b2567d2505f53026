package app

import (
	"fmt"
	"time"
)

// pending makes a message that stays pending and returns its id.
func (g *gateway) pending() string {
	g.t.Helper()
	var list struct{ Data []entry }
	g.as("").with("X-Auth-Token", "acme-all-0123456").post("/v2/sms/send", later24(`"message":"to be deleted"`)).into(g.t, &list)
	return fmt.Sprint(list.Data[0].ID)
}

// later24 is the body of an order for tomorrow.
func later24(fields string) string {
	return fmt.Sprintf(`{"destinations":["447700900123"],"send_time":%q,%s}`, time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339), fields)
}

// sendSamples are successes of the operations that send.
func sendSamples(pending string) []sample {
	const js = "application/json"
	return []sample{
		{"deleteMessage", "DELETE", "/v2/sms/" + pending, "", ""},
		{"previewMessage", "POST", "/v2/sms/preview", js, later24(`"message":"€ 5","originator":"Shop","dlr_url":"https://example.com/%msgid/%code","max_parts":2,"flash":true,"replace":false`)},
		{"previewMessage", "POST", "/v2/sms/preview?destinations=447700900123&message=hi", "", ""},
		{"sendMessage", "POST", "/v2/sms/send", js, later24(`"message":"hi","originator":null,"max_parts":null`)},
		{"sendMessage", "POST", "/v2/sms/send?destinations=447700900123&destinations=447700900124&message=hi&flash=true&replace=true", "", ""},
		{"sendCard", "POST", "/v2/sms/send-vcard", js, later24(`"first_name":"Ada","last_name":"Lovelace","phone":{"mobile":"+447700900123","fax":null},"email":"ada@example.com","birth_date":"1815-12-10","note":"née Byron","version":"2.1"`)},
		{"sendCard", "POST", "/v2/sms/send-vcard?destinations=447700900123&first_name=Ada&last_name=Lovelace&phone.mobile=447700900123", "", ""},
		{"listPending", "GET", "/v2/sms/pending?page=1&per_page=1", "", ""},
		{"listMessages", "GET", "/admin/messages?account=1", "", ""},
		{"listMessages", "GET", "/admin/messages?account=1&state=removed&number=447700900123&limit=1&cursor=900", "", ""},
		{"resendMessages", "POST", "/admin/messages/resend", js, `{"account":1,"ids":["` + pending + `"]}`},
	}
}

// sendMistakes are what they refuse.
func sendMistakes() []refused {
	const js = "application/json"
	return []refused{
		{sample{"", "DELETE", "/v2/sms/900000", "", ""}, 404},
		{sample{"", "DELETE", "/v2/sms/none", "", ""}, 422},
		{sample{"", "GET", "/v2/sms/pending?page=0", "", ""}, 422},
		{sample{"", "POST", "/v2/sms/preview", js, `{"destinations":["+44"],"message":""}`}, 422},
		{sample{"", "POST", "/v2/sms/send", js, `{"destinations":["447700900123"],"message":"hi","max_parts":256,"originator":"My Shop"}`}, 422},
		{sample{"", "POST", "/v2/sms/send-vcard", js, `{"destinations":["447700900123"],"first_name":"Ada","version":"1.0"}`}, 422},
		{sample{"", "GET", "/admin/messages?state=lost", "", ""}, 422},
		{sample{"", "POST", "/admin/messages/resend", js, `{"account":1,"ids":["x"]}`}, 422},
	}
}

// sendsWithoutCredit are refused for that.
func (g *gateway) sendsWithoutCredit() {
	g.t.Helper()
	poor := g.as("").with("X-Auth-Token", "globex-token-0123456")
	for path, fields := range map[string]string{"send": `"message":"hi"`, "send-vcard": `"first_name":"Ada","last_name":"Lovelace"`} {
		if a := poor.post("/v2/sms/"+path, later24(fields)); a.status != 402 {
			g.t.Errorf("%s: %d %s, want 402", a.of, a.status, a.body)
		}
	}
}

// sendsUnderOneKey are one.
func (g *gateway) sendsUnderOneKey() {
	g.t.Helper()
	acme := g.as("").with("X-Auth-Token", "acme-all-0123456").with("Idempotency-Key", "once")
	body := later24(`"message":"once"`)
	first := acme.post("/v2/sms/send", body)
	again := acme.post("/v2/sms/send", body)
	if first.status != 200 || again.body != first.body || first.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true" {
		g.t.Errorf("%d %s\nthen %d %s", first.status, first.body, again.status, again.body)
	}
}
