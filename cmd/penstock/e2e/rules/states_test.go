package rules

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func notice(h e2e.SinkRequest, t *testing.T) (n e2e.RuleNotice) {
	t.Helper()
	if err := json.Unmarshal([]byte(h.Body), &n); err != nil {
		t.Fatalf("%v: %s", err, h.Body)
	}
	return n
}

// sends posts a reading of a device with a time.
func sends(c e2e.Client, t *testing.T, device string, readAt time.Time, celsius float64) {
	t.Helper()
	c.Post("/webhooks/generic?decoder_id=sent", fmt.Sprintf(`{"deviceId":%q,"time":%q,"temperature":%v}`, device, readAt.Format(time.RFC3339Nano), celsius)).Mentions(t, 200)
}

// testRules raises and clears an alarm over the threshold of a reading.
func testRules(t *testing.T, s *e2e.Site) {
	k := e2e.NewSink(t, nil)
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme := g.As("acme-all-0123456")
	hot := acme.Create("/iot/rules", fmt.Sprintf(`{"name":"Hot","on":"reading","when":"values.temperature > 30","clear":"values.temperature < 28",
"actions":[{"action":"http_post","parameters":["%s/hot"]}]}`, k.URL))
	acme.Create("/iot/rules", fmt.Sprintf(`{"name":"All","on":"reading","actions":[{"action":"http_post","parameters":["%s/all"]}]}`, k.URL))
	began := time.Now().Add(-time.Hour).UTC()
	send := func(second int, celsius float64) {
		sends(acme, t, "probe", began.Add(time.Duration(second)*time.Second), celsius)
	}
	send(0, 20)
	send(1, 31.5)
	raised := notice(k.Await(t, "/hot", 1), t)
	if raised.AlarmID == "" {
		t.Error("the raised alarm has no id")
	}
	relaytest.Equal(t, "the state of the raised alarm", raised.State, "raised")
	relaytest.Equal(t, "the rule of the raised alarm", raised.Rule.ID, hot)
	relaytest.Equal(t, "the device of the raised alarm", raised.Device.Identifier, "probe")
	relaytest.Equal(t, "the temperature of the raised alarm", raised.Readings["temperature"].Value, 31.5)
	relaytest.Equal(t, "the unit of the temperature", raised.Readings["temperature"].Units, "°C")
	for n := range 20 {
		send(2+n, 29+float64(n%3))
	}
	send(30, 27)
	cleared := notice(k.Await(t, "/hot", 2), t)
	relaytest.Equal(t, "the state of the cleared alarm", cleared.State, "cleared")
	relaytest.Equal(t, "the id of the cleared alarm", cleared.AlarmID, raised.AlarmID)
	acme.Gateway.AwaitProcessed()
	k.Await(t, "/all", 23)
	if n := len(k.Requests("/hot")); n != 2 {
		t.Errorf("%d notices, want 2", n)
	}
	acme.Get("/iot/alarms?rule_id="+hot).Mentions(t, 200, raised.AlarmID, `"state":"cleared"`)
}
