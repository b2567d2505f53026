package frames

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// Pairs of posts that networks send for one frame. The post with additional data comes first.
const (
	loriotGateways = `{"cmd":"gw","seqno":7,"EUI":"A84041D2C5182F0A","ts":1772366400123,"fcnt":21,"port":2,"bat":127,"data":"15",` +
		`"gws":[{"gweui":"A1","rssi":-97,"snr":5},{"gweui":"A2","rssi":-110,"snr":-3}]}`
	loriotFrame    = `{"cmd":"rx","seqno":7,"EUI":"A84041D2C5182F0A","ts":1772366400123,"fcnt":21,"port":2,"rssi":-97,"snr":5,"bat":127,"data":"15"}`
	sigfoxPosition = `{"device":"1CF2A0","time":1772366400,"seqNumber":9,"computedLocation":{"lat":51.5,"lng":-0.125,"radius":900,"source":2,"status":1}}`
	sigfoxFrame    = `{"device":"1CF2A0","time":"1772366400","data":"15","seqNumber":"9","rssi":"-120","snr":"8","station":"4E01"}`
)

// testSupplements checks that a frame in several posts is stored once, with the data of all
// posts, and that a replay of all events changes nothing.
func testSupplements(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "senders.yaml"))
	acme := g.WithToken("acme-all-0123456")
	for _, body := range []string{loriotGateways, loriotFrame, sigfoxPosition, sigfoxFrame, loriotGateways, sigfoxPosition} {
		acme.Post("/webhooks/lpwan?decoder_id=bytes", body).Expect(t, 200, "")
		g.AwaitProcessed()
	}
	loriot, sigfox := acme.AwaitDevice("A84041D2C5182F0A"), acme.AwaitDevice("1CF2A0")
	radio := func(device string, frameTime time.Time) string { // only InfluxDB has the field frames
		return strings.Replace(radioOfOnlyUplink(t, g, device, frameTime), " frames=1", "", 1)
	}
	check := func(label string) {
		t.Helper()
		relaytest.Equal(t, label+", LORIOT's readings", e2e.FormatReadings(acme.Readings(loriot, "")), "payload=15@2026-03-01 12:00:00")
		relaytest.Equal(t, label+", Sigfox's readings", e2e.FormatReadings(acme.Readings(sigfox, "")), "payload=15@2026-03-01 12:00:00")
		relaytest.Equal(t, label+", LORIOT's radio", radio(loriot, time.UnixMilli(1772366400123)), "battery=50 f_cnt=21 f_port=2 gateways=2 rssi=-97 snr=5")
		relaytest.Equal(t, label+", Sigfox's radio", radio(sigfox, time.Unix(1772366400, 0)), "f_cnt=9 gateways=1 latitude=51.5 longitude=-0.125 rssi=-120 snr=8")
	}
	check("before a replay")
	acme.Get("/iot/devices/"+loriot).Mentions(t, 200, `"last_seen_at":"2026-03-01 12:00:00"`)
	g.Admin().Post("/admin/events/replay", `{"kind":"uplink","from":"2000-01-01T00:00:00Z"}`).Mentions(t, 200, `"count":6`)
	check("after a replay")
	relaytest.Equal(t, "the number of quarantined events", len(g.Events("state=quarantined")), 0)
}

// radioOfOnlyUplink returns the radio data of the only uplink of a device. It fails the test unless the
// uplink has the time frameTime.
func radioOfOnlyUplink(t *testing.T, g *e2e.Gateway, device string, frameTime time.Time) string {
	t.Helper()
	if g.Site.Influx == nil {
		return sortAndJoin(strings.Fields(radioFields(t, g, device, frameTime.UTC(), frameTime)))
	}
	var response struct {
		Results []struct {
			Series []struct {
				Columns []string
				Values  [][]any
			}
		}
	}
	answer := g.Site.Influx.Query(t, g.Setting("PENSTOCK_INFLUX_BUCKET"), "SELECT * FROM uplink WHERE device_id = '"+device+"'")
	relaytest.NoError(t, json.Unmarshal([]byte(answer), &response))
	series := response.Results[0].Series
	if len(series) != 1 || len(series[0].Values) != 1 || int64(series[0].Values[0][0].(float64))/1e6 != frameTime.UnixMilli() {
		t.Fatalf("uplinks of %s = %s, want one at %s", device, answer, frameTime)
	}
	var fields []string
	for i, name := range series[0].Columns {
		if v, ok := series[0].Values[0][i].(float64); ok && name != "time" {
			fields = append(fields, fmt.Sprint(name, "=", v))
		}
	}
	return sortAndJoin(fields)
}

// testLoss checks the query in docs/api/webhooks.md that counts lost frames.
func testLoss(t *testing.T, s *e2e.Site) {
	if s.Influx == nil {
		return // InfluxQL only
	}
	g := e2e.Start(t, s, e2e.Fixture(t, "senders.yaml"))
	acme := g.WithToken("acme-all-0123456")
	for minute, count := range []int{10, 11, 14, 15, 18} {
		acme.Post("/webhooks/lorawan?decoder_id=bytes&event=up", fmt.Sprintf(`{"deduplicationId":"%d","time":"2026-03-01T12:%02d:00Z","deviceInfo":{"devEui":"a84041d2c5182f0b"},"fCnt":%d,"fPort":2,"data":"AQ=="}`, count, minute, count)).Expect(t, 200, "")
	}
	g.AwaitProcessed()
	_, query, found := strings.Cut(e2e.APIPage(t, "webhooks"), "```sql\n")
	query, _, _ = strings.Cut(query, "```")
	if !found {
		t.Fatal("docs/api/webhooks.md has no query")
	}
	if answer := s.Influx.Query(t, g.Setting("PENSTOCK_INFLUX_BUCKET"), query); !strings.Contains(answer, `"identifier":"a84041d2c5182f0b"`) || !strings.Contains(answer, ",4]]") {
		t.Errorf("answer = %s, want 4 lost frames", answer)
	}
}

func sortAndJoin(fields []string) string {
	slices.Sort(fields)
	return strings.Join(fields, " ")
}
