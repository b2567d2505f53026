package contract

import (
	"fmt"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// createPendingMessage creates a message that stays pending and returns its id.
func createPendingMessage(g *e2e.Gateway) string {
	g.T.Helper()
	var list struct{ Data []e2e.PendingMessage }
	e2e.CustomerOf(g).Post("/v2/sms/send", e2e.BodyForTomorrow(`"message":"to be deleted"`)).Decode(g.T, &list)
	return fmt.Sprint(list.Data[0].ID)
}

// sendSamples returns successful requests to the operations that send messages.
func sendSamples(pending string) []sample {
	const js = "application/json"
	return []sample{
		{"deleteMessage", "DELETE", "/v2/sms/" + pending, "", ""},
		{"previewMessage", "POST", "/v2/sms/preview", js, e2e.BodyForTomorrow(`"message":"€ 5","originator":"Shop","dlr_url":"https://example.com/%msgid/%code","max_parts":2,"flash":true,"replace":false`)},
		{"previewMessage", "POST", "/v2/sms/preview?destinations=447700900123&message=hi", "", ""},
		{"sendMessage", "POST", "/v2/sms/send", js, e2e.BodyForTomorrow(`"message":"hi","originator":null,"max_parts":null`)},
		{"sendMessage", "POST", "/v2/sms/send?destinations=447700900123&destinations=447700900124&message=hi&flash=true&replace=true", "", ""},
		{"sendCard", "POST", "/v2/sms/send-vcard", js, e2e.BodyForTomorrow(`"first_name":"Ada","last_name":"Lovelace","phone":{"mobile":"+447700900123","fax":null},"email":"ada@example.com","birth_date":"1815-12-10","note":"née Byron","version":"2.1"`)},
		{"sendCard", "POST", "/v2/sms/send-vcard?destinations=447700900123&first_name=Ada&last_name=Lovelace&phone.mobile=447700900123", "", ""},
		{"listPending", "GET", "/v2/sms/pending?page=1&per_page=1", "", ""},
		{"listMessages", "GET", "/admin/messages?account=1", "", ""},
		{"listMessages", "GET", "/admin/messages?account=1&state=removed&number=447700900123&limit=1&cursor=OTAwIA", "", ""},
		{"resendMessages", "POST", "/admin/messages/resend", js, `{"account":1,"ids":["` + pending + `"]}`},
	}
}

// sendMistakes returns requests that the operations of sendSamples refuse.
func sendMistakes() []refusedSample {
	const js = "application/json"
	return []refusedSample{
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

// checkSendsWithoutCredit checks that an account without credit cannot send.
func checkSendsWithoutCredit(g *e2e.Gateway) {
	g.T.Helper()
	globex := g.XAuth("globex-token-0123456")
	for path, fields := range map[string]string{"send": `"message":"hi"`, "send-vcard": `"first_name":"Ada","last_name":"Lovelace"`} {
		if resp := globex.Post("/v2/sms/"+path, e2e.BodyForTomorrow(fields)); resp.Status != 402 {
			g.T.Errorf("%s: %d %s, want 402", resp.Request, resp.Status, resp.Body)
		}
	}
}

// checkSendsWithOneKey checks that a request with a repeated Idempotency-Key returns the first answer.
func checkSendsWithOneKey(g *e2e.Gateway) {
	g.T.Helper()
	acme := e2e.CustomerOf(g).With("Idempotency-Key", "once")
	body := e2e.BodyForTomorrow(`"message":"once"`)
	firstAnswer := acme.Post("/v2/sms/send", body)
	secondAnswer := acme.Post("/v2/sms/send", body)
	if firstAnswer.Status != 200 || secondAnswer.Body != firstAnswer.Body || firstAnswer.Header.Get("Idempotency-Replayed") != "" || secondAnswer.Header.Get("Idempotency-Replayed") != "true" {
		g.T.Errorf("first answer = %d %s\nsecond answer = %d %s\nwant the same, the second with Idempotency-Replayed", firstAnswer.Status, firstAnswer.Body, secondAnswer.Status, secondAnswer.Body)
	}
}
