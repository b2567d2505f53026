// Package rules tests rules and alarms end to end.
package rules

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGateway runs every suite of this folder.
func TestGateway(t *testing.T) {
	e2e.RunSuites(t, e2e.Suites{
		"rules": testRules,
	})
}

// rulesInventory returns an inventory with an account that has decoders and credit.
func rulesInventory(t *testing.T, credit int) string {
	t.Helper()
	return e2e.Fixture(t, "inventory.yaml", "  - name: acme\n", fmt.Sprintf("  - name: acme\n    credit: %d\n    webhook_secret: %s\n", credit, e2e.WebhookSecret))
}

// ruleFixture is a gateway with a rule. If the probe 70b3d57ed0001234 is warm, the rule executes an
// action of every kind.
type ruleFixture struct {
	*e2e.Gateway
	acme         e2e.Client
	sink         *e2e.Sink
	peer         *e2e.SMSC
	mailbox      string
	rule         string
	firstFrameAt time.Time
}

const ruleNumber = "447700900108" // the SMSC reports its messages as delivered

func newRuleFixture(t *testing.T, s *e2e.Site, credit int) *ruleFixture {
	t.Helper()
	r := &ruleFixture{sink: e2e.NewSink(t, nil), peer: e2e.StartSMSC(t), mailbox: s.Mailbox(), firstFrameAt: time.Now().Add(-time.Hour).UTC().Truncate(time.Second)}
	r.Gateway = e2e.NewGateway(t, s, rulesInventory(t, credit))
	r.Configure("carriers:\n" + r.peer.CarrierConfig("one"))
	r.Run()
	r.acme = r.WithToken("acme-all-0123456")
	body, err := json.Marshal(map[string]any{
		"name": "Too warm", "on": "reading", "when": "values.temperature_3 > 30", "clear": "values.temperature_3 < 25",
		"devices": map[string]any{"decoder_id": "lpp"},
		"actions": []any{
			map[string]any{"action": "http_post", "parameters": []string{r.sink.URL + "/posted/%state"}},
			map[string]any{"action": "http_post", "parameters": []string{r.sink.URL + "/shaped"}, "body": `{"text": device.name + " " + state, "t": values.temperature_3}`},
			map[string]any{"action": "http_get", "parameters": []string{r.sink.URL + "/got/%identifier?s=%state&t=%key:temperature_3&d=%device&r=%rule"}},
			map[string]any{"action": "email", "parameters": []string{r.mailbox}, "body": `{"subject": "%device is %state", "text": "It has %key:temperature_3 degrees."}`},
			map[string]any{"action": "sms", "parameters": []string{ruleNumber}, "originator": "Alarm", "body": `"%device %state at %key:temperature_3"`},
		},
	})
	relaytest.NoError(t, err)
	var created struct {
		Data     struct{ ID string }
		Warnings []string
	}
	resp := r.acme.Post("/iot/rules", string(body))
	if resp.Decode(t, &created); resp.Status != 201 || len(created.Warnings) > 0 {
		t.Fatalf("create the rule: %d %s, want 201 and no warnings", resp.Status, resp.Body)
	}
	r.rule = created.Data.ID
	return r
}

// frame posts the n-th frame of the probe, as ChirpStack does.
func (r *ruleFixture) frame(n int, celsius float64) {
	r.T.Helper()
	payload := []byte{3, 0x67, 0, 0, 4, 0x68, 0x79}
	binary.BigEndian.PutUint16(payload[2:], uint16(int16(celsius*10)))
	frameTime := r.firstFrameAt.Add(time.Duration(n) * time.Minute).Format(time.RFC3339)
	e2e.PostWebhook(r.T, r.acme, "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(r.T, "chirpstack/up.json",
		"A2cBEARoeQ==", base64.StdEncoding.EncodeToString(payload), "8b2f6c1e-", fmt.Sprintf("%08x-", n), "2026-03-01T10:15:30.250Z", frameTime,
		`"fCnt": 4711`, fmt.Sprint(`"fCnt": `, 4711+n)))
}

// texts returns the texts that were submitted to the SMSC for the rule's number.
func (r *ruleFixture) texts() (texts []string) {
	for _, e := range r.peer.Events() {
		if e.Destination == ruleNumber {
			texts = append(texts, e.From+": "+e.Text)
		}
	}
	return texts
}

// awaitDeliveries waits until the rule has count deliveries, all delivered or simulated.
func (r *ruleFixture) awaitDeliveries(count int) []e2e.Delivery {
	r.T.Helper()
	var deliveries []e2e.Delivery
	relaytest.Eventually(r.T, fmt.Sprintf("%d deliveries arrive", count), func() (any, bool) {
		deliveries = r.Deliveries("kind=rule&relay=" + r.rule)
		unfinished := slices.ContainsFunc(deliveries, func(delivery e2e.Delivery) bool {
			return delivery.State != "delivered" && delivery.State != "simulated"
		})
		return deliveries, len(deliveries) == count && !unfinished
	})
	return deliveries
}

// TestRulesExecuteEveryAction posts frames of a probe that becomes warm and then cold. The alarm is
// reported to an SMSC, a customer's endpoint and a mail server.
func TestRulesExecuteEveryAction(t *testing.T) {
	t.Parallel()
	e2e.OnRealSite(t, func(t *testing.T, s *e2e.Site) {
		r := newRuleFixture(t, s, 100)
		r.frame(0, 31.5)
		r.checkReports("raised", "31.5", 1)
		for n := range 20 { // neither condition holds: no report
			r.frame(1+n, 25+float64(n)/2)
		}
		r.AwaitProcessed()
		r.awaitDeliveries(5)
		r.frame(21, 24.9)
		r.checkReports("cleared", "24.9", 2)
		r.AwaitProcessed()
		for _, delivery := range r.awaitDeliveries(10) {
			relaytest.Equal(t, "the kind of the delivery "+delivery.ID, delivery.Kind, "rule")
			relaytest.Equal(t, "the rule of the delivery "+delivery.ID, delivery.Relay, r.rule)
			relaytest.Equal(t, "the number of attempts of the delivery "+delivery.ID, len(delivery.Attempts), 1)
		}
		if got, want := r.texts(), []string{"Alarm: Probe 7 raised at 31.5", "Alarm: Probe 7 cleared at 24.9"}; !slices.Equal(got, want) {
			t.Errorf("messages at the SMSC = %q, want %q", got, want)
		}
		if n := len(r.sink.Requests("/shaped")) + len(r.sink.Requests("/got/70b3d57ed0001234")) + len(r.Mails(r.mailbox)); n != 6 {
			t.Errorf("requests and mails = %d, want 6", n)
		}
		e2e.CustomerOf(r.Gateway).Get("/v2/sms/credit").Expect(t, 200, `{"data":{"credit":98}}`)
		r.checkAlarm("cleared")
	})
}

// checkReports waits for the n-th report of every action, and checks the reports.
func (r *ruleFixture) checkReports(state, degrees string, n int) {
	r.T.Helper()
	postedReq := r.sink.Await(r.T, "/posted/"+state, 1)
	key, err := webhooks.NewWebhook(e2e.WebhookSecret)
	relaytest.NoError(r.T, err)
	if err := key.Verify([]byte(postedReq.Body), postedReq.Header); err != nil {
		r.T.Errorf("verify the signature: %v", err)
	}
	var body struct {
		Rule, Device struct{ ID, Name, Identifier string }
		AlarmID      string `json:"alarm_id"`
		State        string
		Readings     map[string]struct {
			Value float64
			Units string
		}
		Links map[string]string
	}
	relaytest.NoError(r.T, json.Unmarshal([]byte(postedReq.Body), &body))
	reading := body.Readings["temperature_3"]
	if body.Rule.ID != r.rule || body.Rule.Name != "Too warm" || body.AlarmID == "" || body.State != state || body.Device.Identifier != "70b3d57ed0001234" ||
		fmt.Sprint(reading.Value) != degrees || reading.Units != "°C" || !strings.HasSuffix(body.Links["device"], "/iot/devices/"+body.Device.ID) {
		r.T.Errorf("body = %s, want the rule, the alarm, the state %s and the reading %s", postedReq.Body, state, degrees)
	}
	shapedBody := r.sink.Await(r.T, "/shaped", n).Body
	if want := fmt.Sprintf(`{"t":%s,"text":"Probe 7 %s"}`, degrees, state); shapedBody != want {
		r.T.Errorf("body = %s, want %s", shapedBody, want)
	}
	e2e.SameValues(r.T, r.sink.Await(r.T, "/got/70b3d57ed0001234", n).Query, map[string]string{"s": state, "t": degrees, "d": "Probe 7", "r": "Too warm"})
	mail := r.AwaitMail(r.mailbox, "Subject: Probe 7 is "+state+"\n")
	if !strings.Contains(mail, "It has "+degrees+" degrees.") {
		r.T.Errorf("mail = %s, want %s degrees", mail, degrees)
	}
	relaytest.Eventually(r.T, "an SMS at the SMSC", func() (any, bool) { texts := r.texts(); return texts, len(texts) == n })
}

// checkAlarm checks that the rule has exactly one alarm, in a state.
func (r *ruleFixture) checkAlarm(state string) {
	r.T.Helper()
	type alarm struct{ State string }
	var list struct{ Data []alarm }
	r.acme.Get("/iot/alarms?rule_id="+r.rule).Decode(r.T, &list)
	relaytest.Equal(r.T, "the alarms", list.Data, []alarm{{state}})
}

// TestRulesWithoutCredit checks that an SMS waits for credit while the other actions are executed.
func TestRulesWithoutCredit(t *testing.T) {
	t.Parallel()
	r := newRuleFixture(t, e2e.Embedded(), 0)
	r.frame(0, 31.5)
	r.sink.Await(t, "/posted/raised", 1)
	var waiting []e2e.Delivery
	relaytest.Eventually(t, "the SMS waits for credit", func() (any, bool) {
		waiting = r.Deliveries("kind=rule&state=retrying&number=" + ruleNumber)
		return waiting, len(waiting) == 1 && len(waiting[0].Attempts) > 0
	})
	delivery := waiting[0]
	if !strings.Contains(delivery.Reason, "too little credit") {
		t.Errorf("reason = %q, want too little credit", delivery.Reason)
	}
	if delivery.NextAttemptAt == nil {
		t.Error("the delivery has no next attempt")
	}
	relaytest.Equal(t, "the target of the delivery", delivery.Target, "sms:"+ruleNumber)
	r.Admin().Put("/admin/inventory?reset=credit", rulesInventory(t, 5)).Mentions(t, 200)
	relaytest.Eventually(t, "the SMS is sent with credit", func() (any, bool) {
		return r.Deliveries("kind=rule&number=" + ruleNumber), len(r.texts()) == 1
	})
	r.awaitDeliveries(5)
	e2e.CustomerOf(r.Gateway).Get("/v2/sms/credit").Expect(t, 200, `{"data":{"credit":4}}`)

	r.Admin().Post("/admin/deliveries/replay", `{"ids":["`+delivery.ID+`"]}`).Mentions(t, 200, `"count":0`)
	r.Admin().Post("/admin/deliveries/replay", `{"ids":["`+delivery.ID+`"],"include_delivered":true}`).Mentions(t, 200, `"count":1`)
	relaytest.Eventually(t, "the SMS is sent again", func() (any, bool) { return r.texts(), len(r.texts()) == 2 })
	r.awaitDeliveries(5)
}

func TestInvalidActionsAreRefused(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), rulesInventory(t, 5), "PENSTOCK_EGRESS_ALLOW=")
	acme := g.WithToken("acme-all-0123456")
	for action, want := range map[string][2]string{
		`{"action":"http_post","parameters":["https://example.com/","http://10.1.2.3/%state"]}`:               {"actions[0].parameters[1]", "10.1.2.3"},
		`{"action":"http_get","parameters":["http://localhost/?t=%key:t"]}`:                                   {"actions[0].parameters[0]", "this machine"},
		`{"action":"http_get","parameters":["https://example.com/?t=%temperature"]}`:                          {"actions[0].parameters[0]", "is not a placeholder here"},
		`{"action":"email","parameters":["nobody"]}`:                                                          {"actions[0].parameters[0]", "is not an e-mail address"},
		`{"action":"sms","parameters":["+447700900123"]}`:                                                     {"actions[0].parameters[0]", "is not a number"},
		`{"action":"sms","parameters":["447700900123"],"originator":"longer than phones show"}`:               {"actions[0].originator", "1 to 11 characters"},
		`{"action":"http_post","parameters":["https://example.com/"],"body":"{\"t\":\n valeus.temperature}"}`: {"actions[0].body", "line 2, column 2: unknown name valeus"},
	} {
		var refused struct{ Errors map[string][]string }
		resp := acme.Post("/iot/rules", `{"name":"n","on":"reading","actions":[`+action+`]}`)
		if err := json.Unmarshal([]byte(resp.Body), &refused); err != nil || resp.Status != 422 || !strings.Contains(strings.Join(refused.Errors[want[0]], " "), want[1]) {
			t.Errorf("%s: %d %s, want 422 and %q", action, resp.Status, resp.Body, want)
		}
	}
}

// TestRulesWithSimulators checks the states of simulated deliveries.
func TestRulesWithSimulators(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), rulesInventory(t, 5))
	acme := g.WithToken("acme-all-0123456")
	acme.Post("/iot/rules", `{"name":"Forward","on":"reading","actions":[{"action":"sms","parameters":["447700900123"]},{"action":"email","parameters":["ops@example.com"]}]}`).Mentions(t, 201)
	e2e.PostWebhook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(t, "chirpstack/up.json"))
	relaytest.Eventually(t, "the SMS and the mail are simulated", func() (any, bool) {
		deliveries := g.Deliveries("kind=rule&state=simulated")
		return deliveries, len(deliveries) == 2
	})
}
