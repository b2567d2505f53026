package rules

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func decodeNotice(t *testing.T, req e2e.SinkRequest) (n e2e.RuleNotice) {
	t.Helper()
	if err := json.Unmarshal([]byte(req.Body), &n); err != nil {
		t.Fatalf("%v: %s", err, req.Body)
	}
	return n
}

// postReading posts a reading of a device with a time.
func postReading(t *testing.T, c e2e.Client, device string, readAt time.Time, celsius float64) {
	t.Helper()
	c.Post("/webhooks/generic?decoder_id=sent", fmt.Sprintf(`{"deviceId":%q,"time":%q,"temperature":%v}`, device, readAt.Format(time.RFC3339Nano), celsius)).Mentions(t, 200)
}

// testRules raises and clears an alarm with readings above and below thresholds.
func testRules(t *testing.T, s *e2e.Site) {
	sink := e2e.NewSink(t, nil)
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	ruleID := acme.Create("/iot/rules", fmt.Sprintf(`{"name":"Hot","on":"reading","when":"values.temperature > 30","clear":"values.temperature < 28",
"actions":[{"action":"http_post","parameters":["%s/hot"]}]}`, sink.URL))
	acme.Create("/iot/rules", fmt.Sprintf(`{"name":"All","on":"reading","actions":[{"action":"http_post","parameters":["%s/all"]}]}`, sink.URL))
	firstFrameAt := time.Now().Add(-time.Hour).UTC()
	send := func(second int, celsius float64) {
		postReading(t, acme, "probe", firstFrameAt.Add(time.Duration(second)*time.Second), celsius)
	}
	send(0, 20)
	send(1, 31.5)
	raisedNotice := decodeNotice(t, sink.Await(t, "/hot", 1))
	if raisedNotice.AlarmID == "" {
		t.Error("the raised alarm has no id")
	}
	relaytest.Equal(t, "the state of the raised alarm", raisedNotice.State, "raised")
	relaytest.Equal(t, "the rule of the raised alarm", raisedNotice.Rule.ID, ruleID)
	relaytest.Equal(t, "the device of the raised alarm", raisedNotice.Device.Identifier, "probe")
	relaytest.Equal(t, "the temperature of the raised alarm", raisedNotice.Readings["temperature"].Value, 31.5)
	relaytest.Equal(t, "the unit of the temperature", raisedNotice.Readings["temperature"].Units, "°C")
	for n := range 20 {
		send(2+n, 29+float64(n%3))
	}
	send(30, 27)
	clearedNotice := decodeNotice(t, sink.Await(t, "/hot", 2))
	relaytest.Equal(t, "the state of the cleared alarm", clearedNotice.State, "cleared")
	relaytest.Equal(t, "the id of the cleared alarm", clearedNotice.AlarmID, raisedNotice.AlarmID)
	acme.Gateway.AwaitProcessed()
	sink.Await(t, "/all", 23)
	if n := len(sink.Requests("/hot")); n != 2 {
		t.Errorf("number of notices = %d, want 2", n)
	}
	acme.Get("/iot/alarms?rule_id="+ruleID).Mentions(t, 200, raisedNotice.AlarmID, `"state":"cleared"`)
}
