package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// BodyForTomorrow returns the body of a request to send a message tomorrow, with additional JSON fields.
func BodyForTomorrow(fields string) string {
	return fmt.Sprintf(`{"destinations":["447700900123"],"send_time":%q,%s}`, time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339), fields)
}

// TomorrowMark ends the texts of messages that are scheduled for tomorrow.
const TomorrowMark = "tomorrow"

// PendingMessage is a pending message as the API lists it.
type PendingMessage struct {
	ID                                  int64
	Source, Destination, Received, Data string
	ScheduledDelivery                   string `json:"scheduled_delivery"`
	OriginalScheduledDelivery           string `json:"original_scheduled_delivery"`
}

// SentParts is a sent message with its parts, as the admin API shows it.
type SentParts struct {
	ID    int64
	Parts []struct{ Data, State string }
}

// CreditHistory is an account's credit as the admin API shows it.
type CreditHistory struct {
	Data []struct {
		Credits, Balance  int64
		Reason, Reference string
	}
	Meta struct{ Balance int64 }
}

// Credit returns an account's credit and checks that the entries add up to the balances.
func (g *Gateway) Credit(t *testing.T, acct int) CreditHistory {
	t.Helper()
	var history CreditHistory
	g.Admin().Get(fmt.Sprintf("/admin/credit?account=%d&limit=1000", acct)).Decode(t, &history)
	sum := int64(0)
	for i := len(history.Data) - 1; i >= 0; i-- {
		if sum += history.Data[i].Credits; sum != history.Data[i].Balance || sum < 0 {
			t.Errorf("the balance after %q is %d, want %d, the sum of the entries up to it", history.Data[i].Reason, history.Data[i].Balance, sum)
		}
	}
	if sum != history.Meta.Balance {
		t.Errorf("balance = %d, want %d, the sum of the entries", history.Meta.Balance, sum)
	}
	return history
}

// SendBody returns the body of a request to send messages with reports to sink. extra adds or
// replaces fields.
func SendBody(t *testing.T, sink string, extra map[string]any, destinations ...string) string {
	t.Helper()
	body := map[string]any{
		"destinations": destinations, "message": "hello", "originator": "447700900999",
		"dlr_url": sink + "/dlr?id=%msgid&to=%dest&code=%code&at=%timestamp&dlr=%dlr",
	}
	for key, value := range extra {
		body[key] = value
	}
	raw, err := json.Marshal(body)
	relaytest.NoError(t, err)
	return string(raw)
}

// SentMessage is an entry in the answer of /v2/sms/send.
type SentMessage struct {
	ID          int64
	Destination string
}

// SendMessages posts a request to send and returns the entries of the answer.
func (c Client) SendMessages(body string) []SentMessage {
	c.Gateway.T.Helper()
	var list struct{ Data []SentMessage }
	c.Post("/v2/sms/send", body).Decode(c.Gateway.T, &list)
	return list.Data
}

// AwaitReports waits until a sink has received exactly the wanted reports, as number:code, in
// any order, each once.
func AwaitReports(t *testing.T, sink *Sink, want ...string) {
	t.Helper()
	slices.Sort(want)
	relaytest.Eventually(t, "reports "+strings.Join(want, " "), func() (any, bool) {
		got := reportedCodes(sink)
		return got, slices.Equal(got, want)
	})
}

// reportedCodes returns the number and code of each report, sorted. Reports with the same
// webhook-id count once: a gateway that was killed before it saved the outcome of a report
// sends the report again.
func reportedCodes(sink *Sink) (got []string) {
	ids := make(map[string]bool)
	for _, req := range sink.Requests("/dlr") {
		if id := req.Header.Get("Webhook-Id"); !ids[id] {
			ids[id] = true
			got = append(got, req.Query.Get("to")+":"+req.Query.Get("code"))
		}
	}
	slices.Sort(got)
	return got
}

// SOAPEnvelope returns a request to send a message to a number, in SOAP 1.1.
func SOAPEnvelope(username, number string) string {
	return `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Header><auth xmlns="urn:penstock:messaging"><username>` + username +
		`</username><password>secret</password></auth></e:Header><e:Body><SoapSendSms xmlns="urn:penstock:messaging"><destinationarray><number>` + number +
		`</number></destinationarray><message>hi</message><messagetype>text</messagetype></SoapSendSms></e:Body></e:Envelope>`
}

// SOAP11Type and SOAP12Type are the media types of the two SOAP versions.
const SOAP11Type, SOAP12Type = "text/xml; charset=utf-8", "application/soap+xml; charset=utf-8"

// ToSOAP12 converts an envelope of SOAP 1.1 to SOAP 1.2.
func ToSOAP12(envelope string) string {
	return strings.Replace(envelope, "http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope", 1)
}
