package iot_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// Posts of LoRaWAN and Sigfox networks about one frame, received at noon on 1 March 2026.
const (
	loriotRx = `{"cmd":"rx","seqno":7,"EUI":"24E124136B502217","ts":1772366400000,"fcnt":21,"port":2,"rssi":-97,"snr":5,"bat":127,"data":"15"}`
	loriotGw = `{"cmd":"gw","seqno":7,"EUI":"24E124136B502217","ts":1772366400000,"fcnt":21,"port":2,"bat":127,"data":"15",` +
		`"gws":[{"gweui":"A1","rssi":-97,"snr":5},{"gweui":"A2","rssi":-110,"snr":-3}]}`
	sigfoxData     = `{"device":"1CF2A0","time":"1772366400","data":"15","seqNumber":"9","rssi":"-120","snr":"8","station":"4E01"}`
	sigfoxPosition = `{"device":"1CF2A0","time":1772366400,"seqNumber":9,"computedLocation":{"lat":51.5,"lng":-0.125,"radius":900,"source":2,"status":1}}`
	sigfoxFull     = `{"device":"1CF2A0","time":1772366400,"data":"15","seqNumber":9,"lqi":"Good","duplicates":[{"bsId":"4E01","rssi":-119,"snr":8},{"bsId":"4E02","rssi":-101,"snr":17}],` +
		`"computedLocation":{"lat":51.5,"lng":-0.125,"radius":900,"source":2,"status":1}}`
	sigfoxStations = `{"deviceId":"1CF2A0","time":1772366400,"seqNumber":9,"lqi":"Good","duplicates":[{"bsId":"4E02","rssi":-101,"snr":17}]}`
)

func everynetUplink(gateway string, rssi int, duplicate bool) string {
	return fmt.Sprintf(`{"type":"uplink","meta":{"device":"24e124136b502217","packet_hash":"ab","gateway":%q},"params":{"rx_time":1772366400.0,`+
		`"port":2,"counter_up":21,"payload":"FQ==","duplicate":%v,"radio":{"hardware":{"rssi":%d,"snr":4}}}}`, gateway, duplicate, rssi)
}

// gatewayWithPosts returns a new gateway that has ingested the frames of posts.
func gatewayWithPosts(t *testing.T, bodies []string) *gateway {
	t.Helper()
	g := newGateway(t)
	d := iot.Decoder{ID: "raw", Name: "raw", Type: iot.Other, Codec: "expr", Source: "temperature = bytes[0]", Sensors: []iot.Mapping{{SensorTypeID: "temperature", Key: "temperature"}}}
	relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, d))
	for i, body := range bodies {
		frames, err := netserver.Parse(netserver.Post{Body: []byte(body), Query: url.Values{}, ReceivedAt: g.now})
		relaytest.NoError(t, err)
		for _, f := range frames {
			g.mustStore(iot.Arrival{RecordID: fmt.Sprint("n1-u", i), Account: 1, DecoderID: "raw", ReceivedAt: g.now, Frame: f})
		}
	}
	return g
}

// radio formats the stored radio data. Later values of a field replace earlier ones.
func (g *gateway) radio() string {
	fields := make(map[string]string)
	put := func(u iot.RadioData, name string, v any, ok bool) {
		if ok {
			fields[u.Time.Format("15:04:05")+" "+name] = fmt.Sprint(v)
		}
	}
	for _, u := range g.readings.radio {
		put(u, "f_cnt", valueOrZero(u.FCnt), u.FCnt != nil)
		put(u, "f_port", valueOrZero(u.FPort), u.FPort != nil)
		put(u, "gateways", valueOrZero(u.Gateways), u.Gateways != nil)
		put(u, "rssi", valueOrZero(u.RSSI), u.RSSI != nil)
		put(u, "snr", valueOrZero(u.SNR), u.SNR != nil)
		put(u, "battery", valueOrZero(u.Battery), u.Battery != nil)
		put(u, "margin", valueOrZero(u.Margin), u.Margin != nil)
		put(u, "latitude", valueOrZero(u.Latitude), u.Latitude != nil)
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		list = append(list, k+"="+fields[k])
	}
	return strings.Join(list, ", ")
}

func valueOrZero[T any](p *T) (result T) {
	if p != nil {
		result = *p
	}
	return result
}

func TestPostsAboutAFrameAreMerged(t *testing.T) {
	loriot := "12:00:00 battery=50, 12:00:00 f_cnt=21, 12:00:00 f_port=2, 12:00:00 gateways=2, 12:00:00 rssi=-97, 12:00:00 snr=5"
	cases := []struct {
		name, device string
		posts        []string
		want         string
	}{
		{"LORIOT's rx and gw", eui, []string{loriotRx, loriotGw}, loriot},
		{"LORIOT's rx alone", eui, []string{loriotRx}, strings.Replace(loriot, "gateways=2", "gateways=1", 1)},
		{"LORIOT's gw alone", eui, []string{loriotGw}, loriot},
		{"Sigfox's data and position", "1CF2A0", []string{sigfoxData, sigfoxPosition}, "12:00:00 f_cnt=9, 12:00:00 gateways=1, 12:00:00 latitude=51.5, 12:00:00 rssi=-120, 12:00:00 snr=8"},
		{"Sigfox's data, then data with stations and position", "1CF2A0", []string{sigfoxData, sigfoxFull}, "12:00:00 f_cnt=9, 12:00:00 gateways=2, 12:00:00 latitude=51.5, 12:00:00 rssi=-101, 12:00:00 snr=17"},
		{"Sigfox's data, then stations without data", "1CF2A0", []string{sigfoxData, sigfoxStations}, "12:00:00 f_cnt=9, 12:00:00 gateways=2, 12:00:00 rssi=-101, 12:00:00 snr=17"},
		{"Sigfox's data, stations and position", "1CF2A0", []string{sigfoxData, sigfoxPosition, sigfoxFull}, "12:00:00 f_cnt=9, 12:00:00 gateways=2, 12:00:00 latitude=51.5, 12:00:00 rssi=-101, 12:00:00 snr=17"},
		{"Everynet's copies of three gateways", eui, []string{everynetUplink("a", -90, false), everynetUplink("b", -80, true), everynetUplink("c", -100, true)},
			"12:00:00 f_cnt=21, 12:00:00 f_port=2, 12:00:00 gateways=3, 12:00:00 rssi=-80, 12:00:00 snr=4"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			for _, order := range orders(tc.posts) {
				g := gatewayWithPosts(t, order)
				d, err := g.DeviceByIdentifier(t.Context(), 1, tc.device)
				relaytest.NoError(t, err)
				records, err := g.Readings(t.Context(), iot.Query{Account: 1, DeviceID: d.ID}, "")
				relaytest.NoError(t, err)
				if got := keyValues(records); !slices.Equal(got, []string{"temperature=21"}) {
					t.Errorf("readings %q after\n%s", got, strings.Join(order, "\n"))
				}
				if got := g.radio(); got != tc.want {
					t.Errorf("radio %s\nwant  %s\nafter\n%s", got, tc.want, strings.Join(order, "\n"))
				}
			}
		})
	}
}

// orders returns all permutations of posts, and posts followed by posts.
func orders(posts []string) [][]string {
	sequences := [][]string{slices.Concat(posts, posts)}
	var permute func(prefix, remaining []string)
	permute = func(prefix, remaining []string) {
		if len(remaining) == 0 {
			sequences = append(sequences, prefix)
		}
		for i := range remaining {
			permute(append(slices.Clone(prefix), remaining[i]), append(slices.Clone(remaining[:i]), remaining[i+1:]...))
		}
	}
	permute(nil, posts)
	return sequences
}

// The position of an unknown device is not stored. It may arrive before the frame.
func TestAPositionCreatesNoDevice(t *testing.T) {
	g := gatewayWithPosts(t, []string{sigfoxPosition})
	if _, err := g.DeviceByIdentifier(t.Context(), 1, "1CF2A0"); err == nil || g.radio() != "" {
		t.Errorf("device: %v, radio data %q; want neither", err, g.radio())
	}
}

func TestRadioDataIsStoredWithoutReadings(t *testing.T) {
	g := newGateway(t)
	send := func(record string, f decoders.Frame) iot.Outcome {
		f.Identifier, f.IsDevEUI, f.DedupID = eui, true, record
		return g.ingest(iot.Arrival{RecordID: record, Account: 1, DecoderID: "d1", ReceivedAt: g.now, Frame: f})[0]
	}
	ciphertext := decoders.Frame{Kind: decoders.Uplink, Payload: []byte{1}, Encrypted: true, FCnt: 5, HasFCnt: true}
	if outcome := send("n1-u1", ciphertext); outcome.Refused == "" {
		t.Error("an encrypted payload was accepted")
	}
	g.now = g.now.Add(1e9)
	send("n1-u2", decoders.Frame{Kind: decoders.Status, Battery: new(88.0), Margin: new(10.0)})
	g.now = g.now.Add(1e9)
	send("n1-u3", decoders.Frame{Kind: decoders.Location, Position: &decoders.Position{Latitude: 37.5, Longitude: -8.8}})
	g.now = g.now.Add(1e9)
	send("n1-u4", decoders.Frame{Kind: decoders.Join})
	send("n1-u5", decoders.Frame{Kind: decoders.Log, Text: "x"})
	if got, want := g.radio(), "12:00:00 f_cnt=5, 12:00:01 battery=88, 12:00:01 margin=10, 12:00:02 latitude=37.5"; got != want {
		t.Errorf("radio data %s\nwant       %s", got, want)
	}
}

func TestASimulatedFrameIsNotStored(t *testing.T) {
	g := newGateway(t)
	a := g.frame("n1-u1", values("temperature", 1.0))
	a.Frame.Simulated, a.Frame.FCnt, a.Frame.HasFCnt = true, 3, true
	outcome := g.ingest(a)[0]
	relaytest.Equal(t, "the refusal", outcome.Refused, "")
	relaytest.Equal(t, "the number of points", len(outcome.Points), 0)
	relaytest.Equal(t, "the radio data", g.radio(), "")
	relaytest.Equal(t, "the history", g.history(1), nil)
	relaytest.Equal(t, "the notes", outcome.Notes, decoders.Notes{"simulated by the network server's console: not stored"})
	if d := g.device(1); !d.LastSeen.IsZero() {
		t.Errorf("last seen at %s, want never", d.LastSeen)
	}
}

func TestADeviceIsLastSeenAtTheNetworkTimeOfItsFrame(t *testing.T) {
	g := newGateway(t)
	steps := []struct {
		name string
		kind decoders.FrameKind
		ago  float64 // seconds between the network's time and the receipt; 0 without a network's time
		want string
	}{
		{"a frame without the network's time", decoders.Uplink, 0, "12:00:00"},
		{"a frame with an older network's time", decoders.Uplink, 3600, "12:00:00"},
		{"a network whose clock is fast", decoders.Uplink, -600, "12:00:20"},
		{"a network whose clock is wrong by 30 years", decoders.Uplink, 1e9, "12:00:30"},
		{"a log message of the network", decoders.Log, 0, "12:00:30"},
		{"a downlink", decoders.TxAck, 0, "12:00:30"},
		{"an acknowledgement", decoders.Ack, 0, "12:01:00"},
		{"a status", decoders.Status, 5, "12:01:05"},
	}
	for i, step := range steps {
		a := g.frame(fmt.Sprint("n1-u", i), values("temperature", 1.0))
		if a.Frame.Kind = step.kind; step.kind != decoders.Uplink {
			a.Frame.Object = nil
		}
		if step.ago != 0 {
			a.Frame.NetworkTime = g.now.Add(-seconds(step.ago))
		}
		g.mustStore(a)
		if got := g.device(1).LastSeen.Format("15:04:05"); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
		g.now = g.now.Add(seconds(10))
	}
	devices, err := g.Devices(t.Context(), 1)
	relaytest.NoError(t, err)
	if len(devices) != 1 {
		t.Fatalf("%d devices, want 1", len(devices))
	}
	relaytest.Equal(t, "the time at which the device was last seen", devices[0].LastSeen.Format("15:04:05"), "12:01:05")
	for _, tc := range []struct {
		since  time.Time
		silent int
	}{{devices[0].LastSeen, 0}, {devices[0].LastSeen.Add(time.Nanosecond), 1}} {
		counts, err := g.CountDevices(t.Context(), tc.since)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the devices of the account", counts, map[relay.AccountID]iot.DeviceCount{1: {Devices: 1, Silent: tc.silent}})
	}
}

// A JavaScript codec gets the time of receipt even if the sender does not post a time.
func TestACodecGetsTheTimeOfReceipt(t *testing.T) {
	g := newGateway(t)
	d := iot.Decoder{ID: "js", Name: "js", Type: iot.Other, Codec: "javascript", UseRawPayload: true,
		Source:  "function decodeUplink(input) { return { data: { state: input.recvTime.toISOString() + ' ' + new Date().toISOString() } } }",
		Sensors: []iot.Mapping{{SensorTypeID: "state", Key: "state"}}}
	relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, d))
	for i, tc := range []struct {
		name string
		ago  float64
		want string
	}{
		{"the network's time", 60, "2026-03-01T11:59:00.000Z 2026-03-01T11:59:00.000Z"},
		{"a network's time in the future", -1, "2026-03-01T12:00:01.000Z 2026-03-01T12:00:01.000Z"},
		{"no network's time", 0, "2026-03-01T12:00:00.000Z 2026-03-01T12:00:00.000Z"},
		{"an implausible network's time", 1e9, "2026-03-01T12:00:00.000Z 2026-03-01T12:00:00.000Z"},
	} {
		a := g.frame(fmt.Sprint("n1-u", i), nil)
		a.DecoderID, a.Frame.Identifier, a.Frame.Payload = "js", fmt.Sprint("dev", i), []byte{1}
		if tc.ago != 0 {
			a.Frame.NetworkTime = g.now.Add(-seconds(tc.ago))
		}
		if outcome := g.mustStore(a)[0]; outcome.Points[0].Text != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, outcome.Points[0].Text, tc.want)
		}
	}
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
