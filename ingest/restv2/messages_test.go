package restv2

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/decoders/sms/smstest"
	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/relaytest"
)

// page returns the meta of a list with n records on one page.
func page(n, per int) string {
	return fmt.Sprintf(`"meta":{"pagination":{"total":%d,"count":%d,"per_page":%d,"current_page":1,"total_pages":1,"links":[]}}`, n, n, per)
}

// withCredit returns the surface, with credit on the account acme.
func withCredit(t *testing.T, credits int64) *api {
	t.Helper()
	a := newAPI(t)
	relaytest.NoError(t, a.db.Credit.Open(t.Context(), 1, credits, clock()))
	return a
}

func (a *api) expectBalance(want int64) {
	a.t.Helper()
	a.expect("acme", "GET", "/v2/sms/credit", "", 200, fmt.Sprintf(`{"data":{"credit":%d}}`, want))
}

func TestSendAndPending(t *testing.T) {
	a := withCredit(t, 10)
	a.expect("acme", "GET", "/v2/sms/pending", "", 200, `{"data":[],`+page(0, 50)+`}`)
	long := strings.Repeat("a", 153) + "bc" + strings.Repeat("d", 20)
	a.expect("acme", "POST", "/v2/sms/send", fmt.Sprintf(`{"destinations":["447700900123",447700900124],"message":%q,"originator":"Shop","send_time":"2026-11-21 08:00:00"}`, long), 200,
		`{"data":[`+
			`{"id":1,"source":"Shop","destination":"447700900123","received":"2026-11-20 09:34:15","scheduled_delivery":"2026-11-21 08:00:00","original_scheduled_delivery":"2026-11-21 08:00:00","data":"`+long+`"},`+
			`{"id":3,"source":"Shop","destination":"447700900124","received":"2026-11-20 09:34:15","scheduled_delivery":"2026-11-21 08:00:00","original_scheduled_delivery":"2026-11-21 08:00:00","data":"`+long+`"}],`+page(2, 2)+`}`)
	a.expectBalance(6)
	a.expect("acme", "GET", "/v2/sms/pending?page=2&per_page=3", "", 200,
		`{"data":[{"id":4,"source":"Shop","destination":"447700900124","received":"2026-11-20 09:34:15","scheduled_delivery":"2026-11-21 08:00:00","original_scheduled_delivery":"2026-11-21 08:00:00","data":"`+long[153:]+`"}],`+
			`"meta":{"pagination":{"total":4,"count":1,"per_page":3,"current_page":2,"total_pages":2,"links":[{"rel":"previous","url":"/v2/sms/pending?page=1&per_page=3"}]}}}`)
	a.expect("globex", "GET", "/v2/sms/pending", "", 200, `{"data":[],`+page(0, 50)+`}`)

	a.expect("globex", "DELETE", "/v2/sms/4", "", 404, `{"message":"Not found."}`)
	a.expect("acme", "DELETE", "/v2/sms/4", "", 204, "")
	a.expectBalance(7)
	a.expect("acme", "DELETE", "/v2/sms/4", "", 404, `{"message":"Not found."}`)
	a.expectBalance(7)
	for _, bad := range []string{"0", "-1", "x", "1.5", "9007199254740993"} {
		a.expect("acme", "DELETE", "/v2/sms/"+bad, "", 422, `{"message":"The message must be the id of a pending message.","errors":"message"}`)
	}
	a.expect("acme", "POST", "/v2/sms/send?destinations=447700900123&destinations=447700900124&message=hi&flash=true&replace=true&max_parts=3&originator=12345&dlr_url=https%3A%2F%2Fexample.com%2F%3Fc%3D%25code", "", 200,
		`{"data":[{"id":5,"source":"12345","destination":"447700900123","received":"2026-11-20 09:34:15","scheduled_delivery":"2026-11-20 09:34:15","original_scheduled_delivery":"2026-11-20 09:34:15","data":"hi"},`+
			`{"id":6,"source":"12345","destination":"447700900124","received":"2026-11-20 09:34:15","scheduled_delivery":"2026-11-20 09:34:15","original_scheduled_delivery":"2026-11-20 09:34:15","data":"hi"}],`+page(2, 2)+`}`)
	m, err := a.db.Messages.Get(t.Context(), 1, 5)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "flash", m.Flash, true)
	relaytest.Equal(t, "replace", m.Replace, true)
	relaytest.Equal(t, "the report's URL", m.Report.URL, "https://example.com/?c=%code")
	relaytest.Equal(t, "the interface", m.Origin, "rest")
	if m.IP == "" {
		t.Error("the client's address is empty")
	}
}

func TestSendWithoutCredit(t *testing.T) {
	a := withCredit(t, 2)
	const refused = `{"message":"Insufficient credit."}`
	body := `{"destinations":["447700900123"],"message":"` + strings.Repeat("a", 400) + `"}`
	a.expect("acme", "POST", "/v2/sms/send", body, 402, refused)
	a.expect("globex", "POST", "/v2/sms/send", body, 402, refused)
	a.expect("acme", "POST", "/v2/sms/send-vcard", `{"destinations":["447700900123","447700900124","447700900125"],"first_name":"A","last_name":"B"}`, 402, refused)
	a.expectBalance(2)
	a.expect("acme", "GET", "/v2/sms/pending", "", 200, `{"data":[],`+page(0, 50)+`}`)
}

func TestPreview(t *testing.T) {
	a := withCredit(t, 2)
	a.expect("acme", "POST", "/v2/sms/preview", `{"destinations":["447700900123","447700900124"],"message":"`+strings.Repeat("é", 161)+`"}`, 200,
		`{"data":{"message_parts":2,"credit_cost":4,"available_credit":2,"message_meta":{"forced_route":null,"originator":"","dlr_type":"NONE","dlr_data":"","ip":"0.0.0.0","flash":false,"replace_sms":false,"account_id":1,"delete_body":false,"send_time":null}}}`)
	a.expect("acme", "POST", "/v2/sms/preview", `{"destinations":["447700900123"],"message":"`+strings.Repeat("日", 200)+`","max_parts":2,"originator":"Shop","send_time":"2026-11-21T09:00:00+01:00","dlr_url":"https://example.com/%msgid","flash":true,"replace":true}`, 422,
		`{"message":"The replace is only for messages of one part, because each part would replace the one before; this message has 2.","errors":"replace"}`)
	a.expect("acme", "POST", "/v2/sms/preview", `{"destinations":["447700900123"],"message":"`+strings.Repeat("日", 200)+`","max_parts":1,"originator":"Shop","send_time":"2026-11-21T09:00:00+01:00","dlr_url":"https://example.com/%msgid","flash":true,"replace":true}`, 200,
		`{"data":{"message_parts":1,"credit_cost":1,"available_credit":2,"message_meta":{"forced_route":null,"originator":"Shop","dlr_type":"HTTPGET","dlr_data":"https://example.com/%msgid","ip":"0.0.0.0","flash":true,"replace_sms":true,"account_id":1,"delete_body":false,"send_time":"2026-11-21 08:00:00"}}}`)
	a.expectBalance(2)
}

// The preview and the charge of a text agree with the numbers of parts in smstest.
func TestPreviewAndSendCountTheSameParts(t *testing.T) {
	a := withCredit(t, 1<<20)
	credit := int64(1 << 20)
	for _, tc := range smstest.Texts() {
		body, err := json.Marshal(map[string]any{"destinations": []string{"447700900123", "447700900124"}, "message": tc.Text})
		relaytest.NoError(t, err)
		_, answer := a.ask("acme", "POST", "/v2/sms/preview", string(body))
		want := fmt.Sprintf(`{"data":{"message_parts":%d,"credit_cost":%d,"available_credit":%d,`, tc.Parts, 2*tc.Parts, credit)
		if !strings.HasPrefix(answer, want) {
			t.Errorf("%s: %s, want %s", tc.Name, answer, want)
		}
		if status, answer := a.ask("acme", "POST", "/v2/sms/send", string(body)); status != 200 {
			t.Errorf("%s: %d %s", tc.Name, status, answer)
		}
		credit -= int64(2 * tc.Parts)
		balance, err := a.db.Credit.Balance(t.Context(), 1)
		relaytest.NoError(t, err)
		relaytest.Equal(t, tc.Name+": the balance", balance, credit)
	}
}

func TestInvalidMessagesAreRefused(t *testing.T) {
	a := withCredit(t, 10)
	const ok = `"destinations":["447700900123"],"message":"hi"`
	for _, tc := range []struct{ name, body, errors string }{
		{"nothing", `{}`, "destinations, message"},
		{"no destination", `{"destinations":[],"message":"hi"}`, "destinations"},
		{"an object as destinations", `{"destinations":{"a":1},"message":"hi"}`, "destinations"},
		{"a destination with a plus", `{"destinations":["+447700900123"],"message":"hi"}`, "destinations"},
		{"a fraction as a destination", `{"destinations":[4477009.5],"message":"hi"}`, "destinations"},
		{"null as a destination", `{"destinations":[null],"message":"hi"}`, "destinations"},
		{"an empty message", `{"destinations":["447700900123"],"message":""}`, "message"},
		{"a number as the message", `{"destinations":["447700900123"],"message":7}`, "message"},
		{"a message of 256 parts", `{"destinations":["447700900123"],"message":"` + strings.Repeat("a", 153*255+1) + `"}`, "message"},
		{"an originator of 12 characters", `{` + ok + `,"originator":"abcdefghijkl"}`, "originator"},
		{"February 30", `{` + ok + `,"send_time":"2026-02-30 12:00:00"}`, "send_time"},
		{"a date without a time", `{` + ok + `,"send_time":"2026-11-21"}`, "send_time"},
		{"a word as a time", `{` + ok + `,"send_time":"tomorrow"}`, "send_time"},
		{"a time in two years", `{` + ok + `,"send_time":"2028-11-21 08:00:00"}`, "send_time"},
		{"a number as a time", `{` + ok + `,"send_time":1700000000}`, "send_time"},
		{"zero parts", `{` + ok + `,"max_parts":0}`, "max_parts"},
		{"256 parts", `{` + ok + `,"max_parts":256}`, "max_parts"},
		{"half a part", `{` + ok + `,"max_parts":1.5}`, "max_parts"},
		{"a string as parts", `{` + ok + `,"max_parts":"3"}`, "max_parts"},
		{"a fraction close to zero as parts", `{` + ok + `,"max_parts":1e-400}`, "max_parts"},
		{"a string as destinations", `{"destinations":"447700900123","message":"hi"}`, "destinations"},
		{"a string as flash", `{` + ok + `,"flash":"true"}`, "flash"},
		{"a boolean as parts", `{` + ok + `,"max_parts":true}`, "max_parts"},
		{"a word as flash", `{` + ok + `,"flash":"yes"}`, "flash"},
		{"a number as replace", `{` + ok + `,"replace":1}`, "replace"},
		{"a report to a private address", `{` + ok + `,"dlr_url":"http://10.0.0.1/"}`, "dlr_url"},
		{"a relative URL for reports", `{` + ok + `,"dlr_url":"example.com"}`, "dlr_url"},
		{"invalid fields only", `{"destinations":["1"],"message":7,"originator":"------------","flash":"x","max_parts":0,"dlr_url":"x"}`, "destinations, dlr_url, flash, max_parts, message, originator"},
		{"invalid JSON", `{`, "body"},
		{"a list", `[]`, "body"},
	} {
		for _, path := range []string{"/v2/sms/send", "/v2/sms/preview"} {
			status, answer := a.ask("acme", "POST", path, tc.body)
			var got invalidJSON
			relaytest.NoError(t, json.Unmarshal([]byte(answer), &got))
			relaytest.Equal(t, tc.name+": "+path+": the status", status, 422)
			relaytest.Equal(t, tc.name+": "+path+": the errors", got.Errors, tc.errors)
			if got.Message == "" {
				t.Errorf("%s: %s: the message is empty", tc.name, path)
			}
		}
	}
	a.expectBalance(10)
	for _, path := range []string{"/v2/sms/send", "/v2/sms/preview", "/v2/sms/send-vcard"} {
		if status, answer := a.ask("acme", "POST", path, `{}`, "Content-Type", "text/plain"); status != 415 {
			t.Errorf("%s as text: %d %s", path, status, answer)
		}
		a.expect("nobody", "POST", path, `{}`, 401, `{"message":"Unauthenticated."}`)
		a.expect("iot", "POST", path, `{}`, 403, `{"message":"This action is unauthorised."}`)
	}
}

func TestContactCards(t *testing.T) {
	a := withCredit(t, 20)
	status, answer := a.ask("acme", "POST", "/v2/sms/send-vcard", `{"destinations":["447700900123"],"first_name":"Zoë","last_name":"Ångström","phone":{"mobile":"+447700900999","home":null},"email":"z@example.com","birth_date":"1990-01-31","note":"one\ntwo","version":"4.0","originator":"Shop","dlr_url":"https://example.com/%code/%dest/%msgid"}`)
	if status != 200 {
		t.Fatalf("%d %s, want 200", status, answer)
	}
	m, err := a.db.Messages.Get(t.Context(), 1, 1)
	relaytest.NoError(t, err)
	var card []byte
	for _, p := range m.Parts {
		card = append(card, p.Data...)
		if !slices.Equal(p.UDH[1:7], []byte{5, 4, 0x23, 0xF4, 0, 0}) {
			t.Errorf("header % x", p.UDH)
		}
	}
	relaytest.Equal(t, "the coding", m.Coding, message.Binary)
	answertest.HasPrefix(t, "the card", string(card), "BEGIN:VCARD\r\nVERSION:4.0\r\n")
	answertest.Contains(t, "the card", string(card), "Zoë")
	a.expectBalance(20 - int64(len(m.Parts)))
	if status, answer := a.ask("acme", "POST", "/v2/sms/send-vcard?destinations=447700900123&first_name=A&last_name=B&phone.work=123", ""); status != 200 {
		t.Errorf("as a query: %d %s", status, answer)
	}
	for _, tc := range []struct{ name, body, errors string }{
		{"nothing", `{}`, "destinations, first_name, last_name"},
		{"a string as phones", `{"destinations":["447700900123"],"first_name":"A","last_name":"B","phone":"1"}`, "phone"},
		{"a number as a phone", `{"destinations":["447700900123"],"first_name":"A","last_name":"B","phone":{"home":7}}`, "phone.home"},
		{"an unknown version", `{"destinations":["447700900123"],"first_name":"A","last_name":"B","version":"5.0"}`, "version"},
		{"a birthday in another format", `{"destinations":["447700900123"],"first_name":"A","last_name":"B","birth_date":"31/01/1990"}`, "birth_date"},
		{"a name with a control character", `{"destinations":["447700900123"],"first_name":"A\u0000","last_name":"B"}`, "first_name"},
		{"a note of more than 255 parts", `{"destinations":["447700900123"],"first_name":"A","last_name":"B","note":"` + strings.Repeat("a", 255*140) + `"}`, "note"},
		{"an invalid destination and an invalid name", `{"destinations":["x"],"first_name":"A","last_name":7}`, "destinations, last_name"},
	} {
		status, answer := a.ask("acme", "POST", "/v2/sms/send-vcard", tc.body)
		relaytest.Equal(t, tc.name+": the status", status, 422)
		answertest.Contains(t, tc.name, answer+"\n", `"errors":"`+tc.errors+"\"}\n")
	}
}

func TestIdempotencyKeys(t *testing.T) {
	a := withCredit(t, 10)
	send := func(token, body, key string) (int, string) {
		t.Helper()
		return a.ask(token, "POST", "/v2/sms/send", body, "Idempotency-Key", key)
	}
	const body = `{"destinations":["447700900123"],"message":"hi","flash":true}`
	_, answer := send("acme", body, "k1")
	status, repeated := send("acme", `{"flash":true,"message":"hi","destinations":["447700900123"]}`, "k1")
	relaytest.Equal(t, "the status of the repetition", status, 200)
	relaytest.Equal(t, "the answer to the repetition", repeated, answer)
	a.expectBalance(9)
	const refused = `{"message":"The Idempotency-Key was used for another request.","errors":"Idempotency-Key"}`
	status, refusal := send("acme", `{"destinations":["447700900123"],"message":"ho"}`, "k1")
	relaytest.Equal(t, "the status of another message", status, 422)
	relaytest.Equal(t, "the answer to another message", refusal, refused)
	status, refusal = a.ask("acme", "POST", "/v2/sms/send-vcard", `{"destinations":["447700900123"],"first_name":"A","last_name":"B"}`, "Idempotency-Key", "k1")
	relaytest.Equal(t, "the status of another operation", status, 422)
	relaytest.Equal(t, "the answer to another operation", refusal, refused)
	if status, _ := send("globex", body, "k1"); status != 402 { // keys belong to an account
		t.Errorf("the key of another account: status = %d, want 402", status)
	}
	relaytest.NoError(t, a.db.Credit.Open(t.Context(), 2, 5, clock()))
	if status, _ := send("globex", body, "k1"); status != 200 { // a refused request does not use its key
		t.Errorf("the key of a refused request: status = %d, want 200", status)
	}
	if _, answerK2 := send("acme", body, "k2"); answerK2 == answer {
		t.Error("an order with another key has the same answer")
	}
	a.expectBalance(8)
	if status, answer := send("acme", body, strings.Repeat("k", 256)); status != 422 {
		t.Errorf("a key of 256 characters: %d %s, want 422", status, answer)
	}
}

func TestSendingWhileTheStoreIsDown(t *testing.T) {
	a := withCredit(t, 10)
	a.ask("acme", "GET", "/v2/sms/credit", "") // the token is cached
	relaytest.NoError(t, a.db.Close())
	for _, op := range []struct{ method, path, body string }{
		{"POST", "/v2/sms/send", `{"destinations":["447700900123"],"message":"hi"}`},
		{"POST", "/v2/sms/preview", `{"destinations":["447700900123"],"message":"hi"}`},
		{"POST", "/v2/sms/send-vcard", `{"destinations":["447700900123"],"first_name":"A","last_name":"B"}`},
		{"GET", "/v2/sms/pending", ""}, {"DELETE", "/v2/sms/1", ""},
	} {
		if status, answer := a.ask("acme", op.method, op.path, op.body); status != 503 {
			t.Errorf("%s %s: %d %s", op.method, op.path, status, answer)
		}
	}
}

// Concurrent requests with the same key create one message.
func TestConcurrentRequestsWithOneKey(t *testing.T) {
	a := withCredit(t, 10)
	answers := make([]string, 20)
	var running sync.WaitGroup
	for i := range answers {
		running.Go(func() {
			r := httptest.NewRequest("POST", "/v2/sms/send", strings.NewReader(`{"destinations":["447700900123"],"message":"hi"}`))
			for name, value := range map[string]string{"X-Auth-Token": "acme", "Content-Type": "application/json", "Idempotency-Key": "k"} {
				r.Header.Set(name, value)
			}
			resp, err := a.app.Test(r, 20_000)
			if err != nil {
				t.Error(err)
				return
			}
			body, _ := io.ReadAll(resp.Body)
			answers[i] = string(body)
		})
	}
	running.Wait()
	answers = slices.Compact(answers)
	if len(answers) != 1 {
		t.Fatalf("different answers: %q", answers)
	}
	answertest.Contains(t, "the answer", answers[0], `"data":"hi"`)
	a.expectBalance(9)
}
