package app

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
)

const rulesSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// rulesInventory is an account whose probes are decoded, and that may send.
func rulesInventory(t *testing.T, credit int) string {
	t.Helper()
	return fixture(t, "inventory.yaml", "  - name: acme\n", fmt.Sprintf("  - name: acme\n    credit: %d\n    webhook_secret: %s\n", credit, rulesSecret))
}

// ruled is an account with a rule that says of the probe 70b3d57ed0001234 by every
// way out when it is warm.
type ruled struct {
	*gateway
	acme  caller
	sink  *sink
	peer  *smsc
	box   string
	rule  string
	began time.Time
}

const ruleNumber = "447700900108" // the SMSC reports its messages as delivered

func newRuled(t *testing.T, s *site, credit int) *ruled {
	t.Helper()
	r := &ruled{sink: newSink(t, nil), peer: startSMSC(t), box: s.mailbox(), began: time.Now().Add(-time.Hour).UTC().Truncate(time.Second)}
	r.gateway = newGateway(t, s, rulesInventory(t, credit))
	r.configure("carriers:\n" + r.peer.carrier("one"))
	r.run()
	r.acme = r.as("acme-all-0123456")
	body, err := json.Marshal(map[string]any{
		"name": "Too warm", "on": "reading", "when": "values.temperature_3 > 30", "clear": "values.temperature_3 < 25",
		"devices": map[string]any{"decoder_id": "lpp"},
		"actions": []any{
			map[string]any{"action": "http_post", "parameters": []string{r.sink.url + "/posted/%state"}},
			map[string]any{"action": "http_post", "parameters": []string{r.sink.url + "/shaped"}, "body": `{"text": device.name + " " + state, "t": values.temperature_3}`},
			map[string]any{"action": "http_get", "parameters": []string{r.sink.url + "/got/%identifier?s=%state&t=%key:temperature_3&d=%device&r=%rule"}},
			map[string]any{"action": "email", "parameters": []string{r.box}, "body": `{"subject": "%device is %state", "text": "It has %key:temperature_3 degrees."}`},
			map[string]any{"action": "sms", "parameters": []string{ruleNumber}, "originator": "Alarm", "body": `"%device %state at %key:temperature_3"`},
		},
	})
	must(t, err)
	var made struct {
		Data     struct{ ID string }
		Warnings []string
	}
	a := r.acme.post("/iot/rules", string(body))
	if a.into(t, &made); a.status != 201 || len(made.Warnings) > 0 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	r.rule = made.Data.ID
	return r
}

// frame posts the n-th frame of the probe, as ChirpStack does.
func (r *ruled) frame(n int, celsius float64) {
	r.t.Helper()
	payload := []byte{3, 0x67, 0, 0, 4, 0x68, 0x79}
	binary.BigEndian.PutUint16(payload[2:], uint16(int16(celsius*10)))
	at := r.began.Add(time.Duration(n) * time.Minute).Format(time.RFC3339)
	hook(r.t, r.acme, "/webhooks/lorawan?decoder_id=lpp&event=up", fixture(r.t, "chirpstack/up.json",
		"A2cBEARoeQ==", base64.StdEncoding.EncodeToString(payload), "8b2f6c1e-", fmt.Sprintf("%08x-", n), "2026-03-01T10:15:30.250Z", at,
		"2026-03-01T10:15:30.260Z", at, `"fCnt": 4711`, fmt.Sprint(`"fCnt": `, 4711+n)))
}

// texts are those that the SMSC was given for the rule's number.
func (r *ruled) texts() (all []string) {
	for _, e := range r.peer.all() {
		if e.Submitted == ruleNumber {
			all = append(all, e.From+": "+e.Text)
		}
	}
	return all
}

// ended waits until so many deliveries of the rule have ended well.
func (r *ruled) ended(count int) []parcel {
	r.t.Helper()
	var all []parcel
	eventually(r.t, fmt.Sprintf("%d deliveries arrive", count), func() (any, bool) {
		all = r.deliveries("kind=rule&relay=" + r.rule)
		left := slices.ContainsFunc(all, func(p parcel) bool { return p.State != "delivered" && p.State != "simulated" })
		return all, len(all) == count && !left
	})
	return all
}

// TestRulesSendEverywhere takes frames of a probe that becomes warm and cold again, to
// an SMSC, a customer's endpoint and a mail server.
func TestRulesSendEverywhere(t *testing.T) {
	t.Parallel()
	onEverySite(t, func(t *testing.T, s *site) {
		r := newRuled(t, s, 100)
		r.frame(0, 31.5)
		r.arrives("raised", "31.5", 1)
		for n := range 20 { // between the conditions: nothing is said of them
			r.frame(1+n, 25+float64(n)/2)
		}
		r.settled()
		r.ended(5)
		r.frame(21, 24.9)
		r.arrives("cleared", "24.9", 2)
		r.settled()
		for _, p := range r.ended(10) {
			if p.Kind != "rule" || p.Relay != r.rule || len(p.Attempts) != 1 {
				t.Errorf("%+v", p)
			}
		}
		if got, want := r.texts(), []string{"Alarm: Probe 7 raised at 31.5", "Alarm: Probe 7 cleared at 24.9"}; !slices.Equal(got, want) {
			t.Errorf("the SMSC has %q, want %q", got, want)
		}
		if n := len(r.sink.at("/shaped")) + len(r.sink.at("/got/70b3d57ed0001234")) + len(r.mails(r.box)); n != 6 {
			t.Errorf("%d requests and mails, want 6", n)
		}
		r.acme.with("X-Auth-Token", "acme-all-0123456").get("/v2/sms/credit").is(t, 200, `{"data":{"credit":98}}`)
		r.hasAlarm("cleared")
	})
}

// arrives waits until the n-th occurrence is everywhere, and checks what came.
func (r *ruled) arrives(state, degrees string, n int) {
	r.t.Helper()
	posted := r.sink.await(r.t, "/posted/"+state, 1)
	key, err := webhooks.NewWebhook(rulesSecret)
	must(r.t, err)
	if err := key.Verify([]byte(posted.body), posted.header); err != nil {
		r.t.Errorf("the signature: %v", err)
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
	must(r.t, json.Unmarshal([]byte(posted.body), &body))
	reading := body.Readings["temperature_3"]
	if body.Rule.ID != r.rule || body.Rule.Name != "Too warm" || body.AlarmID == "" || body.State != state || body.Device.Identifier != "70b3d57ed0001234" ||
		fmt.Sprint(reading.Value) != degrees || reading.Units != "°C" || !strings.HasSuffix(body.Links["device"], "/iot/devices/"+body.Device.ID) {
		r.t.Errorf("posted %s", posted.body)
	}
	shaped := r.sink.await(r.t, "/shaped", n).body
	if want := fmt.Sprintf(`{"t":%s,"text":"Probe 7 %s"}`, degrees, state); shaped != want {
		r.t.Errorf("shaped %s, want %s", shaped, want)
	}
	sameValues(r.t, r.sink.await(r.t, "/got/70b3d57ed0001234", n).query, map[string]string{"s": state, "t": degrees, "d": "Probe 7", "r": "Too warm"})
	mail := r.awaitMail(r.box, "Subject: Probe 7 is "+state+"\n")
	if !strings.Contains(mail, "It has "+degrees+" degrees.") {
		r.t.Errorf("mail %s", mail)
	}
	eventually(r.t, "an SMS at the SMSC", func() (any, bool) { all := r.texts(); return all, len(all) == n })
}

// hasAlarm checks that there is one alarm, in a state.
func (r *ruled) hasAlarm(state string) {
	r.t.Helper()
	var list struct {
		Data []struct{ State string }
	}
	r.acme.get("/iot/alarms?rule_id="+r.rule).into(r.t, &list)
	if len(list.Data) != 1 || list.Data[0].State != state {
		r.t.Errorf("alarms %+v, want one that is %s", list.Data, state)
	}
}

// TestRulesWithoutCredit has an SMS wait for credit, and everything else go out.
func TestRulesWithoutCredit(t *testing.T) {
	t.Parallel()
	r := newRuled(t, &site{name: "embedded"}, 0)
	r.frame(0, 31.5)
	r.sink.await(t, "/posted/raised", 1)
	var waiting []parcel
	eventually(t, "the SMS waits for credit", func() (any, bool) {
		waiting = r.deliveries("kind=rule&state=retrying&number=" + ruleNumber)
		return waiting, len(waiting) == 1 && len(waiting[0].Attempts) > 0
	})
	p := waiting[0]
	if !strings.Contains(p.Reason, "not enough credit") || p.NextAttemptAt == nil || p.Target != "sms:"+ruleNumber {
		t.Errorf("%+v", p)
	}
	r.admin().put("/admin/inventory?reset=credit", rulesInventory(t, 5)).mentions(t, 200)
	eventually(t, "the SMS is sent with credit", func() (any, bool) {
		return r.deliveries("kind=rule&number=" + ruleNumber), len(r.texts()) == 1
	})
	r.ended(5)
	r.acme.with("X-Auth-Token", "acme-all-0123456").get("/v2/sms/credit").is(t, 200, `{"data":{"credit":4}}`)

	r.admin().post("/admin/deliveries/replay", `{"ids":["`+p.ID+`"]}`).mentions(t, 200, `"count":0`)
	r.admin().post("/admin/deliveries/replay", `{"ids":["`+p.ID+`"],"include_delivered":true}`).mentions(t, 200, `"count":1`)
	eventually(t, "an operator has it sent once more", func() (any, bool) { return r.texts(), len(r.texts()) == 2 })
	r.ended(5)
}

// TestRulesThatAreRefused posts rules whose actions cannot be taken.
func TestRulesThatAreRefused(t *testing.T) {
	t.Parallel()
	g := start(t, &site{name: "embedded"}, rulesInventory(t, 5), "PENSTOCK_EGRESS_ALLOW=")
	acme := g.as("acme-all-0123456")
	for action, want := range map[string][2]string{
		`{"action":"http_post","parameters":["https://example.com/","http://10.1.2.3/%state"]}`:               {"actions[0].parameters[1]", "10.1.2.3"},
		`{"action":"http_get","parameters":["http://localhost/?t=%key:t"]}`:                                   {"actions[0].parameters[0]", "this machine"},
		`{"action":"http_get","parameters":["https://example.com/?t=%temperature"]}`:                          {"actions[0].parameters[0]", "is no placeholder here"},
		`{"action":"email","parameters":["nobody"]}`:                                                          {"actions[0].parameters[0]", "is not an e-mail address"},
		`{"action":"sms","parameters":["+447700900123"]}`:                                                     {"actions[0].parameters[0]", "is not a number"},
		`{"action":"sms","parameters":["447700900123"],"originator":"longer than phones show"}`:               {"actions[0].originator", "1 to 11 characters"},
		`{"action":"http_post","parameters":["https://example.com/"],"body":"{\"t\":\n valeus.temperature}"}`: {"actions[0].body", "line 2, column 2: unknown name valeus"},
	} {
		var refused struct{ Errors map[string][]string }
		a := acme.post("/iot/rules", `{"name":"n","on":"reading","actions":[`+action+`]}`)
		if err := json.Unmarshal([]byte(a.body), &refused); err != nil || a.status != 422 || !strings.Contains(strings.Join(refused.Errors[want[0]], " "), want[1]) {
			t.Errorf("%s: %d %s", action, a.status, a.body)
		}
	}
}

// TestRulesWithSimulators has a gateway without back ends say what it only pretends.
func TestRulesWithSimulators(t *testing.T) {
	t.Parallel()
	g := start(t, &site{name: "embedded"}, rulesInventory(t, 5))
	acme := g.as("acme-all-0123456")
	acme.post("/iot/rules", `{"name":"Forward","on":"reading","actions":[{"action":"sms","parameters":["447700900123"]},{"action":"email","parameters":["ops@example.com"]}]}`).mentions(t, 201)
	hook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", fixture(t, "chirpstack/up.json"))
	eventually(t, "the SMS and the mail are simulated", func() (any, bool) {
		all := g.deliveries("kind=rule&state=simulated")
		return all, len(all) == 2
	})
}
