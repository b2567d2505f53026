package app

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// notice is the usual body of http_post of a rule.
type notice struct {
	Rule     struct{ ID, Name string }
	AlarmID  string `json:"alarm_id"`
	State    string
	Device   struct{ ID, Identifier string }
	Time     string
	Readings map[string]struct {
		Value float64
		Units string
	}
}

func (h hit) notice(t *testing.T) (n notice) {
	t.Helper()
	if err := json.Unmarshal([]byte(h.body), &n); err != nil {
		t.Fatalf("%v: %s", err, h.body)
	}
	return n
}

// rule creates a rule over REST and returns its id.
func (c caller) rule(body string) string {
	c.g.t.Helper()
	var made struct{ Data struct{ ID string } }
	c.post("/iot/rules", body).into(c.g.t, &made)
	return made.Data.ID
}

// sends posts a reading of a device, the n-th second of the test's time.
func (c caller) sends(t *testing.T, device string, at time.Time, celsius float64) {
	t.Helper()
	c.post("/webhooks/generic?decoder_id=sent", fmt.Sprintf(`{"deviceId":%q,"time":%q,"temperature":%v}`, device, at.Format(time.RFC3339Nano), celsius)).mentions(t, 200)
}

// testRules raises and clears an alarm over the threshold of a reading.
func testRules(t *testing.T, s *site) {
	k := newSink(t, nil)
	g := start(t, s, fixture(t, "inventory.yaml"))
	acme := g.as("acme-all-0123456")
	hot := acme.rule(fmt.Sprintf(`{"name":"Hot","on":"reading","when":"values.temperature > 30","clear":"values.temperature < 28",
"actions":[{"action":"http_post","parameters":["%s/hot"]}]}`, k.url))
	acme.rule(fmt.Sprintf(`{"name":"All","on":"reading","actions":[{"action":"http_post","parameters":["%s/all"]}]}`, k.url))
	began := time.Now().Add(-time.Hour).UTC()
	send := func(second int, celsius float64) {
		acme.sends(t, "probe", began.Add(time.Duration(second)*time.Second), celsius)
	}
	send(0, 20)
	send(1, 31.5)
	raised := k.await(t, "/hot", 1).notice(t)
	if raised.State != "raised" || raised.Rule.ID != hot || raised.AlarmID == "" || raised.Device.Identifier != "probe" ||
		raised.Readings["temperature"].Value != 31.5 || raised.Readings["temperature"].Units != "°C" {
		t.Errorf("raised: got %+v", raised)
	}
	for n := range 20 {
		send(2+n, 29+float64(n%3))
	}
	send(30, 27)
	cleared := k.await(t, "/hot", 2).notice(t)
	if cleared.State != "cleared" || cleared.AlarmID != raised.AlarmID {
		t.Errorf("cleared: got %+v", cleared)
	}
	acme.g.settled()
	k.await(t, "/all", 23)
	if n := len(k.at("/hot")); n != 2 {
		t.Errorf("%d notices", n)
	}
	acme.get("/iot/alarms?rule_id="+hot).mentions(t, 200, raised.AlarmID, `"state":"cleared"`)
}
