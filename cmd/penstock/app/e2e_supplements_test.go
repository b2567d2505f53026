package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// What networks tell of one frame in several posts, the additions first.
const (
	loriotGateways = `{"cmd":"gw","seqno":7,"EUI":"A84041D2C5182F0A","ts":1772366400123,"fcnt":21,"port":2,"bat":127,"data":"15",` +
		`"gws":[{"gweui":"A1","rssi":-97,"snr":5},{"gweui":"A2","rssi":-110,"snr":-3}]}`
	loriotFrame    = `{"cmd":"rx","seqno":7,"EUI":"A84041D2C5182F0A","ts":1772366400123,"fcnt":21,"port":2,"rssi":-97,"snr":5,"bat":127,"data":"15"}`
	sigfoxPosition = `{"device":"1CF2A0","time":1772366400,"seqNumber":9,"computedLocation":{"lat":51.5,"lng":-0.125,"radius":900,"source":2,"status":1}}`
	sigfoxFrame    = `{"device":"1CF2A0","time":"1772366400","data":"15","seqNumber":"9","rssi":"-120","snr":"8","station":"4E01"}`
)

// testSupplements holds that frames of which several posts tell are stored once,
// with all that was told, and that a replay of everything changes nothing.
func testSupplements(t *testing.T, s *site) {
	g := start(t, s, fixture(t, "senders.yaml"))
	acme := g.as("acme-all-0123456")
	for _, body := range []string{loriotGateways, loriotFrame, sigfoxPosition, sigfoxFrame, loriotGateways, sigfoxPosition} {
		acme.post("/webhooks/lpwan?decoder_id=bytes", body).is(t, 200, "")
		g.settled()
	}
	loriot, sigfox := acme.device("A84041D2C5182F0A"), acme.device("1CF2A0")
	radio := func(device string, at time.Time) string { // InfluxDB alone counts frames
		return strings.Replace(g.stored(t, device, at), " frames=1", "", 1)
	}
	check := func(when string) {
		t.Helper()
		same(t, when+", LORIOT's readings", short(acme.readings(loriot, "")), "payload=15@2026-03-01 12:00:00")
		same(t, when+", Sigfox's readings", short(acme.readings(sigfox, "")), "payload=15@2026-03-01 12:00:00")
		same(t, when+", LORIOT's radio", radio(loriot, time.UnixMilli(1772366400123)), "battery=50 f_cnt=21 f_port=2 gateways=2 rssi=-97 snr=5")
		same(t, when+", Sigfox's radio", radio(sigfox, time.Unix(1772366400, 0)), "f_cnt=9 gateways=1 latitude=51.5 longitude=-0.125 rssi=-120 snr=8")
	}
	check("at first")
	acme.get("/iot/devices/"+loriot).mentions(t, 200, `"last_seen_at":"2026-03-01 12:00:00"`)
	g.admin().post("/admin/events/replay", `{"kind":"uplink","from":"2000-01-01T00:00:00Z"}`).mentions(t, 200, `"count":6`)
	check("after a replay")
	if events := g.events("state=quarantined"); len(events) > 0 {
		t.Errorf("quarantined: %+v", events)
	}
}

// stored is the radio side of a device's only uplink, at a time.
func (g *gateway) stored(t *testing.T, device string, at time.Time) string {
	t.Helper()
	if g.site.influx == nil {
		return ordered(strings.Fields(g.radio(t, device, at.UTC(), at)))
	}
	var found struct {
		Results []struct {
			Series []struct {
				Columns []string
				Values  [][]any
			}
		}
	}
	answer := g.site.influx.Query(t, fieldOf(g.env, "PENSTOCK_INFLUX_BUCKET="), "SELECT * FROM uplink WHERE device_id = '"+device+"'")
	must(t, json.Unmarshal([]byte(answer), &found))
	series := found.Results[0].Series
	if len(series) != 1 || len(series[0].Values) != 1 || int64(series[0].Values[0][0].(float64))/1e6 != at.UnixMilli() {
		t.Fatalf("uplinks of %s: %s", device, answer)
	}
	var fields []string
	for i, name := range series[0].Columns {
		if v, ok := series[0].Values[0][i].(float64); ok && name != "time" {
			fields = append(fields, fmt.Sprint(name, "=", v))
		}
	}
	return ordered(fields)
}

// testLoss holds the query by which lost frames are counted, in docs/api.
func testLoss(t *testing.T, s *site) {
	if s.influx == nil {
		return // InfluxQL only
	}
	g := start(t, s, fixture(t, "senders.yaml"))
	acme := g.as("acme-all-0123456")
	for minute, count := range []int{10, 11, 14, 15, 18} {
		acme.post("/webhooks/lorawan?decoder_id=bytes&event=up", fmt.Sprintf(`{"deduplicationId":"%d","time":"2026-03-01T12:%02d:00Z","deviceInfo":{"devEui":"a84041d2c5182f0b"},"fCnt":%d,"fPort":2,"data":"AQ=="}`, count, minute, count)).is(t, 200, "")
	}
	g.settled()
	_, query, found := strings.Cut(apiPage(t, "webhooks"), "```sql\n")
	query, _, _ = strings.Cut(query, "```")
	if !found {
		t.Fatal("docs/api/webhooks.md has no query")
	}
	if answer := s.influx.Query(t, fieldOf(g.env, "PENSTOCK_INFLUX_BUCKET="), query); !strings.Contains(answer, `"identifier":"a84041d2c5182f0b"`) || !strings.Contains(answer, ",4]]") {
		t.Errorf("4 frames were lost: %s", answer)
	}
}

func ordered(fields []string) string {
	slices.Sort(fields)
	return strings.Join(fields, " ")
}
