package frames

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// senderPost is a body in testdata/senders with its request and the expected results.
type senderPost struct {
	file             string // below testdata/senders
	target           string // path and query
	header           string // "name: value"
	reply            string // status and body
	source           string
	outcome          string // beginning of the event's outcome; a note about an implausible time may follow
	quarantineReason string // empty if the event is not quarantined
	device           string // identifier of the device to check, if any
	frameTime        string // empty if the frame has no time: it is stored with the time of receipt
	// readings are "key=value", radio are the fields of the uplink that have a value.
	readings, radio string
}

// senderPosts returns the posts of all bodies in testdata/senders.
func senderPosts() []senderPost {
	const (
		payload  = "?decoder_id=bytes"
		sent     = "?decoder_id=sent"
		lorawan  = "/webhooks/lorawan"
		vendor   = "/webhooks/sensor-vendor"
		lpwan    = "/webhooks/lpwan"
		commons  = "/webhooks/community"
		actility = "LrnDevEui=20635F0108000496&LrnFPort=17&LrnInfos=TWA_100002167.1111.AS-1-111974&AS_ID=TWA_100002167.1111.AS" +
			"&Time=2021-04-07T08%3A49%3A51.551%2B00%3A00&Token=196c22898bf95fcf48b72be198c89256410660b9b514539651344baa594ad74f"
	)
	return []senderPost{
		{file: "chirpstack-legacy-loraserver/001.json", target: lorawan + payload, source: "chirpstack-v3",
			outcome: "3339343752356a14: fCnt 10, fPort 5, 17 bytes, 1 radio gateway, RSSI -57 dBm, SNR 10 dB, battery 78.7 %, margin 6 dB",
			device:  "3339343752356A14", frameTime: "2016-11-25T16:24:37.295915988Z", readings: "payload=0073000001670110026800030064040100",
			radio: "f_cnt=10 f_port=5 rssi=-57 snr=10 gateways=1 battery=78.7 margin=6"},
		{file: "chirpstack-v3/002.json", target: lorawan + payload + "&event=status", source: "chirpstack-v3",
			outcome: "0202020202020202: status, battery 75.5 %, margin 6 dB", device: "0202020202020202", radio: "battery=75.5 margin=6"},
		{file: "chirpstack-v3/003.json", target: lorawan + payload + "&event=join", source: "chirpstack-v3",
			outcome: "0202020202020202: join, 1 radio gateway, RSSI -48 dBm, SNR 9 dB", device: "02:02:02:02:02:02:02:02"},
		{file: "chirpstack-v3/004.json", target: lorawan + payload + "&event=ack", source: "chirpstack-v3",
			outcome: "0202020202020202: ack, fCnt 15, 1 radio gateway, RSSI -48 dBm, SNR 9 dB", device: "0202020202020202"},
		{file: "chirpstack-v3/006.json", target: lorawan + payload + "&event=error", source: "chirpstack-v3",
			outcome: "0202020202020202: error, UPLINK_CODEC: ...", device: "0202020202020202"},
		{file: "chirpstack-v3/007.json", target: lorawan + payload, source: "chirpstack-v3",
			outcome: "0202020202020202: fCnt 10, fPort 5, 11 bytes, 1 radio gateway, RSSI -48 dBm, SNR 9 dB", device: "0202020202020202",
			frameTime: "2019-11-08T13:59:25.048445Z", readings: "payload=02023b0003003702710c60", radio: "f_cnt=10 f_port=5 rssi=-48 snr=9 gateways=1"},
		{file: "chirpstack-v4/001.json", target: lorawan + payload + "&event=up", source: "chirpstack-v4",
			outcome: "0101010101010101: fCnt 0, fPort 1, 1 byte, 1 radio gateway, RSSI -36 dBm, SNR 10.5 dB", device: "0101010101010101",
			frameTime: "2022-07-18T09:34:15.775023242Z", readings: "payload=aa", radio: "f_cnt=0 f_port=1 rssi=-36 snr=10.5 gateways=1"},
		{file: "chirpstack-v4/002.json", target: lorawan + payload + "&event=status", source: "chirpstack-v4",
			outcome: "0101010101010101: status, battery 88.3 %, margin 10 dB", device: "0101010101010101",
			frameTime: "2022-07-18T09:35:06.927172638Z", radio: "battery=88.3 margin=10"},
		{file: "chirpstack-v4/003.json", target: lorawan + payload + "&event=join", source: "chirpstack-v4",
			outcome: "0101010101010101: join", device: "0101010101010101"},
		{file: "chirpstack-v4/004.json", target: lorawan + "/below" + payload + "&event=ack", source: "chirpstack-v4",
			outcome: "0101010101010101: ack", device: "0101010101010101"},
		{file: "chirpstack-v4/005.json", target: lorawan + payload + "&event=txack", source: "chirpstack-v4",
			outcome: "0101010101010101: txack, 1 radio gateway", device: "0101010101010101"},
		{file: "chirpstack-v4/006.json", target: lorawan + payload + "&event=log", source: "chirpstack-v4",
			outcome: "0101010101010101: log, ERROR UPLINK_MIC: MIC of join-request is invalid, make sure keys are correct", device: "0101010101010101"},
		{file: "chirpstack-v4/007.json", target: lorawan + payload + "&event=location", source: "chirpstack-v4",
			outcome: "0101010101010101: location, at 37.344214, -8.839375", device: "0101010101010101",
			frameTime: "2022-07-18T09:55:11.059481003Z", radio: "latitude=37.344214 longitude=-8.839375"},
		{file: "chirpstack-v4/008.json", target: lorawan + payload + "&event=integration", source: "chirpstack-v4",
			outcome: "0016c001f000175a: service, loracloud modem_UplinkResponse", quarantineReason: "device 0016c001f000175a is not known"},
		{file: "chirpstack-v4/009.json", target: vendor + payload, source: "chirpstack-v4",
			outcome: "1000000000000001: fCnt 4, fPort 2, 2 bytes, 1 radio gateway, RSSI -35 dBm, SNR 11.5 dB", device: "1000000000000001",
			frameTime: "2023-05-22T07:47:05.404859Z", readings: "payload=0112", radio: "f_cnt=4 f_port=2 rssi=-35 snr=11.5 gateways=1"},
		{file: "cra-envelope/001.json", target: lpwan + payload, source: "cra-envelope",
			outcome: "00112233aabbccdd: 11 bytes, battery 100 %, adds to a frame", device: "00112233AABBCCDD",
			frameTime: "2026-03-13T10:27:13.008Z", readings: "payload=cbe006e001c10106aa7fff", radio: "battery=100"},
		{file: "disruptive-technologies/001.json", target: vendor + sent, source: "disruptive-technologies",
			outcome: "emuc17m6d7lq0bgk44smcqg: uplink", device: "emuc17m6d7lq0bgk44smcqg",
			frameTime: "2022-01-12T09:41:12.108482Z", readings: "touch=1"},
		{file: "disruptive-technologies/003.json", target: vendor + sent, source: "disruptive-technologies",
			outcome: "bchonod7rihjtvdmd2vg: uplink", device: "bchonod7rihjtvdmd2vg",
			frameTime: "2019-05-16T08:15:18.318751Z", readings: "temperature.value=24.9"},
		{file: "everynet/002.json", target: lorawan + payload, source: "everynet",
			outcome: "0004a30b00e9a0a9: fCnt 105, fPort 100, 12 bytes, 1 radio gateway, RSSI -43 dBm, SNR 9.5 dB", device: "0004a30b00e9a0a9",
			readings: "payload=0d0c7f0d0d5c0d03390c0cde", radio: "f_cnt=105 f_port=100 rssi=-43 snr=9.5 gateways=1"},
		{file: "helium-console/001.json", target: commons + sent, source: "helium-console",
			outcome: "1d4a7d00003f9d6b: fCnt 93, fPort 1, 9 bytes, 1 radio gateway, RSSI -88 dBm, SNR 7.800000190734863 dB", device: "1D4A7D00003F9D6B",
			frameTime: "2021-08-18T13:44:57.659Z", readings: "latitude=52.2118033", radio: "f_cnt=93 f_port=1 rssi=-88 snr=7.800000190734863 gateways=1"},
		{file: "helium-console/004.json", target: commons + payload, source: "helium-console",
			outcome: "373631320078747b: fCnt 2, fPort 2, 16 bytes, 1 radio gateway, RSSI -116 dBm, SNR -21.5 dB", device: "373631320078747b",
			frameTime: "2021-07-23T14:21:29.668Z", readings: "payload=0e0110cc000000000000000000000000", radio: "f_cnt=2 f_port=2 rssi=-116 snr=-21.5 gateways=1"},
		{file: "kerlink-wanesy/001.json", target: lorawan + "/dataUp" + payload, header: "Klk-Unsent-Dataup: true", source: "kerlink-wanesy",
			outcome: "343737394a336f09: fCnt 6940, fPort 2, 16 bytes, 1 radio gateway, RSSI -107 dBm, SNR -7 dB", device: "343737394A336F09",
			frameTime: "2019-07-08T13:18:36.089Z", readings: "payload=0027800bddfd773b447bf9fede870046", radio: "f_cnt=6940 f_port=2 rssi=-107 snr=-7 gateways=1"},
		{file: "kpn-things-senml/001.json", target: lpwan + payload, source: "kpn-things-senml",
			outcome: "0059ac0000000000: fPort 3, 44 bytes", device: "0059AC0000000000", frameTime: "2025-12-26T13:13:40Z",
			readings: "payload=1b0c6e0c6a640a01ffcd7304000c0a0946000300020002000200010001000100010001000007000000000000", radio: "f_port=3"},
		{file: "loriot/001.json", target: lorawan + payload, source: "loriot",
			outcome: "1000000000000001: fCnt 2, fPort 2, 2 bytes, 1 radio gateway, RSSI -21 dBm, SNR 10 dB, battery 37 %", device: "1000000000000001",
			frameTime: "2023-05-19T06:46:41.936Z", readings: "payload=0112", radio: "f_cnt=2 f_port=2 rssi=-21 snr=10 gateways=1 battery=37"},
		{file: "loriot/002.json", target: lorawan + payload, source: "loriot",
			outcome: "1000000000000001: fCnt 2, fPort 1, 1 byte, 1 radio gateway, RSSI -21 dBm, SNR 10 dB, battery 37 %", device: "1000000000000001",
			frameTime: "2023-05-19T06:46:41.936Z", readings: "payload=01", radio: "f_cnt=2 f_port=1 rssi=-21 snr=10 gateways=1 battery=37"},
		{file: "loriot/005.json", target: lorawan + payload, source: "loriot",
			outcome: "0004a30b001adcb5: fCnt 121, fPort 1, 11 bytes, 1 radio gateway, RSSI -119 dBm, SNR -15.8 dB", device: "0004A30B001ADCB5",
			frameTime: "2017-07-26T10:14:08.945Z", readings: "payload=02023b0003003702710c60", radio: "f_cnt=121 f_port=1 rssi=-119 snr=-15.8 gateways=1"},
		{file: "milesight-development-platform/001.json", target: vendor + sent, source: "milesight-development-platform", outcome: "no frames"},
		{file: "milesight-gateway-http/001.json", target: lorawan + payload, source: "chirpstack-v3",
			outcome: "24e1641092176759: fCnt 0, fPort 85, 10 bytes, 1 radio gateway, RSSI -57 dBm, SNR 10 dB", device: "24-E1-64-10-92-17-67-59",
			readings: "payload=0175640367180104686d", radio: "f_cnt=0 f_port=85 rssi=-57 snr=10 gateways=1"},
		{file: "monnit/001.json", target: vendor + sent, source: "monnit",
			outcome: "HQ Cell: status, count 1, messageType 0, power 0; 1368042: 1 radio gateway, battery 100 %, DryContact false", device: "1368042",
			frameTime: "2026-04-15T10:36:01Z", readings: "DryContact=0 voltage=3.07", radio: "gateways=1 battery=100"},
		{file: "monnit/004.json", target: vendor, source: "monnit-rule",
			outcome: "56789: alert, Test: Test subject: Battery: 10%", quarantineReason: "device 56789 is not known"},
		{file: "netmore/001.json", target: lpwan + payload, source: "netmore",
			outcome: "70b3d554600002e7: fPort 2, 26 bytes, 1 radio gateway, RSSI -104 dBm, SNR -2 dB", device: "70b3d554600002e7",
			frameTime: "2025-04-10T20:48:22.053Z", readings: "payload=b006b800013008cc98000002b8a8000399000000190840e40000", radio: "f_port=2 rssi=-104 snr=-2 gateways=1"},
		{file: "sigfox/001.json", target: lpwan + payload, source: "sigfox",
			outcome: "1A2345: fCnt 1492, 12 bytes, 1 radio gateway, RSSI -123 dBm, SNR 18.86 dB", device: "1A2345",
			frameTime: "2016-10-20T16:20:26Z", readings: "payload=920e82002731b01db0512201", radio: "f_cnt=1492 rssi=-123 snr=18.86 gateways=1"},
		{file: "sigfox/006.json", target: lpwan + payload, source: "sigfox",
			outcome: "CDBB84: location, fCnt 172, at -11.847185868272895, 32.08352465774905, adds to a frame"},
		{file: "sigfox/008.form.txt", target: lpwan + payload, header: "Content-Type: application/x-www-form-urlencoded", source: "sigfox",
			outcome: "153FF: fCnt 2, 12 bytes, 1 radio gateway, RSSI -123.1 dBm, SNR 23.67 dB", device: "153FF",
			frameTime: "2016-10-20T16:20:26Z", readings: "payload=3794a01820348220590d000f", radio: "f_cnt=2 rssi=-123.1 snr=23.67 gateways=1"},
		{file: "thingpark/001.json", target: lorawan + payload, source: "thingpark",
			outcome: "70b3d57ba000156b: fCnt 26, fPort 1, 11 bytes, 1 radio gateway, RSSI -114 dBm, SNR 4.75 dB", device: "70B3D57BA000156B",
			frameTime: "2024-11-28T21:08:22.138Z", readings: "payload=02023b0003003702710c60", radio: "f_cnt=26 f_port=1 rssi=-114 snr=4.75 gateways=1"},
		{file: "thingpark/119.json", target: lorawan + payload + "&" + actility, source: "thingpark",
			outcome: "20635f0108000496: fCnt 18, fPort 17, 34 bytes, 1 radio gateway, RSSI -67 dBm, SNR 9 dB", device: "20635F0108000496",
			frameTime: "2021-04-07T08:49:45.235Z", readings: "payload=032ce4850919d85d4c9f793ad148d24f32f3c6b5488f5a087cbeb1488f5a998c83ab", radio: "f_cnt=18 f_port=17 rssi=-67 snr=9 gateways=1"},
		{file: "ttn-v2/001.json", target: commons + sent, source: "ttn-v2",
			outcome: "00e150e95369a0b0: fCnt 29932, fPort 1, 11 bytes, 4 radio gateways, RSSI -54 dBm, SNR 10.2 dB", device: "00E150E95369A0B0",
			frameTime: "2020-04-05T13:26:44.519096325Z", readings: "gps_0.latitude=-33.9366", radio: "f_cnt=29932 f_port=1 rssi=-54 snr=10.2 gateways=4"},
		{file: "tts-v3/001.json", target: commons + payload, source: "tts-v3", outcome: "0004a30b001c0530: join", device: "0004A30B001C0530"},
		{file: "tts-v3/003.json", target: commons + "/down/ack", source: "tts-v3", outcome: "0004a30b001c0530: ack, fPort 15", device: "0004A30B001C0530"},
		{file: "tts-v3/004.json", target: commons, source: "tts-v3",
			outcome: "app1/dev1: error, downlink failed: application downlink payload is too long", quarantineReason: "device app1/dev1 is not known"},
		{file: "tts-v3/006.json", target: commons + payload, source: "tts-v3",
			outcome: "1000000000000001: fCnt 10335, fPort 2, 2 bytes, 1 radio gateway, RSSI -35 dBm, SNR 13.2 dB", device: "1000000000000001",
			frameTime: "2023-05-19T05:33:35.641841782Z", readings: "payload=0112", radio: "f_cnt=10335 f_port=2 rssi=-35 snr=13.2 gateways=1"},
		{file: "tts-v3/empty.json", target: commons + payload, source: "tts-v3",
			outcome: "a84041d2c5182f01: fCnt 71, fPort 2", device: "A84041D2C5182F01",
			frameTime: "2026-02-14T06:30:12.5Z", radio: "f_cnt=71 f_port=2"},
		{file: "ubibot/001.json", target: vendor + sent, reply: "200 SUCCESS", source: "ubibot",
			outcome: "123456: uplink", device: "123456", frameTime: "2022-04-24T09:06:56Z", readings: "field1=24.495308 field2=82"},
	}
}

// TestBodiesOfEverySender posts every body over HTTP, and checks the answer, the event, the readings and
// the radio data.
func TestBodiesOfEverySender(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "senders.yaml"))
	tested := make(map[string]bool)
	for _, p := range senderPosts() {
		tested[filepath.Join("testdata", "senders", filepath.FromSlash(p.file))] = true
		t.Run(p.file, func(t *testing.T) { checkPost(t, g, p) })
	}
	files, err := filepath.Glob("testdata/senders/*/*")
	relaytest.NoError(t, err)
	for _, file := range files {
		if !tested[file] {
			t.Errorf("%s has no case in senderPosts", file)
		}
	}
}

func checkPost(t *testing.T, g *e2e.Gateway, p senderPost) {
	body := e2e.Fixture(t, "senders/"+p.file)
	acme := g.WithToken("acme-all-0123456").With("Content-Type", "application/json")
	if name, value, ok := strings.Cut(p.header, ": "); ok {
		acme = acme.With(name, value)
	}
	if p.reply == "" {
		p.reply = "200 "
	}
	startedAt := time.Now()
	post := func() {
		t.Helper()
		resp := acme.Post(p.target, body)
		relaytest.Equal(t, "the reply", fmt.Sprint(resp.Status, " ", resp.Body), p.reply)
		for name := range resp.Header {
			if !strings.Contains("Date Content-Type Content-Length X-Request-Id Cache-Control X-Content-Type-Options", name) {
				t.Errorf("unexpected header %s in the reply", name)
			}
		}
		g.AwaitProcessed()
	}
	post()
	e := g.Events("limit=1")[0]
	relaytest.Equal(t, "source", e.Source, p.source)
	relaytest.Equal(t, "reason", e.Reason, p.quarantineReason)
	relaytest.Equal(t, "state", e.State, map[bool]string{true: "done", false: "quarantined"}[p.quarantineReason == ""])
	if p.device == "" {
		checkOutcome(t, e, body, p.outcome)
		return
	}
	var device struct{ Name, Identifier string }
	acme.Get("/iot/devices/"+acme.AwaitDevice(p.device)).Decode(t, &device)
	checkOutcome(t, e, body, strings.ReplaceAll(p.outcome, device.Identifier+": ", device.Name+": "))
	if p.frameTime != "" {
		post() // a repeated post gets the same answer, and nothing is stored twice
	}
	frameTime := p.storedTime(startedAt)
	id := acme.AwaitDevice(p.device)
	var got []string
	for _, r := range acme.Readings(id, "") {
		if storedAt, err := time.Parse(time.DateTime, r.ReadingDate); err != nil || !isStoredTime(storedAt, frameTime, startedAt) {
			continue // a reading of another frame
		}
		value := r.Text
		if r.Value != nil {
			value = fmt.Sprint(*r.Value)
		}
		got = append(got, r.Key+"="+value)
	}
	slices.Sort(got)
	relaytest.Equal(t, "readings", strings.Join(got, " "), p.readings)
	relaytest.Equal(t, "radio", radioFields(t, g, id, frameTime, startedAt), p.radio)
}

func checkOutcome(t *testing.T, e e2e.Event, body, want string) {
	t.Helper()
	if !strings.HasPrefix(e.Outcome, want) || e.Raw != body {
		t.Errorf("outcome = %s of\n%s\nwant %s", e.Outcome, e.Raw, want)
	}
}

// storedTime returns the time with which the frame is stored: its own time if it is plausible, else the
// zero time, which stands for the time of receipt.
func (p *senderPost) storedTime(received time.Time) time.Time {
	frameTime, err := time.Parse(time.RFC3339Nano, p.frameTime)
	if err != nil || !iot.Plausible(frameTime, received) {
		return time.Time{}
	}
	return frameTime
}

// isStoredTime reports whether a stored time is the frame's time or, if frameTime is zero, is not before
// the receipt. stored may lack the fraction of a second.
func isStoredTime(stored, frameTime, received time.Time) bool {
	if !frameTime.IsZero() {
		return stored.Equal(frameTime) || stored.Equal(frameTime.Truncate(time.Second))
	}
	if stored.Nanosecond() == 0 {
		received = received.Truncate(time.Second)
	}
	return !stored.Before(received)
}

// radioFields returns the stored radio data of a device at a time, as "field=value".
func radioFields(t *testing.T, g *e2e.Gateway, device string, frameTime, received time.Time) string {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(g.DataDir(), "readings", "readings.db"))
	relaytest.NoError(t, err)
	defer func() { _ = db.Close() }()
	names := []string{"f_cnt", "f_port", "rssi", "snr", "gateways", "battery", "margin", "latitude", "longitude"}
	rows, err := db.Query("SELECT at, "+strings.Join(names, ", ")+" FROM uplink JOIN device ON device.id = uplink.device WHERE name = ?", device)
	relaytest.NoError(t, err)
	defer func() { _ = rows.Close() }()
	var fields []string
	for rows.Next() {
		var ns int64
		values := make([]sql.NullFloat64, len(names))
		targets := []any{&ns}
		for i := range values {
			targets = append(targets, &values[i])
		}
		relaytest.NoError(t, rows.Scan(targets...))
		if stored := time.Unix(0, ns).UTC(); !isStoredTime(stored, frameTime, received) {
			continue
		}
		for i, v := range values {
			if v.Valid {
				fields = append(fields, fmt.Sprint(names[i], "=", v.Float64))
			}
		}
	}
	relaytest.NoError(t, rows.Err())
	return strings.Join(fields, " ")
}

// TestSignedPostNeedsNoToken checks that a post with a valid signature of a source needs no token, and
// that posts with other signatures are refused.
func TestSignedPostNeedsNoToken(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "senders.yaml"))
	const secret = "f3203a20a2e8dfaf6686b621f56d05e3"
	sum := func(body string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(body+secret))) }
	pack := e2e.Fixture(t, "senders/kpn-things-senml/001.json")
	anonymous, target := g.WithToken(""), "/webhooks/lpwan/hq?decoder_id=bytes"
	anonymous.Post(target, pack).Expect(t, 401, `{"message":"Unauthenticated."}`)
	anonymous.With("Things-Message-Token", sum(pack+" ")).Post(target, pack).Expect(t, 401, `{"message":"Unauthenticated."}`)
	anonymous.With("Things-Message-Token", sum(pack)).Post("/webhooks/lpwan/hr", pack).Expect(t, 401, `{"message":"Unauthenticated."}`)
	anonymous.With("Things-Message-Token", sum(pack)).Post(target, pack).Expect(t, 200, "")
	acme := g.WithToken("acme-all-0123456")
	if got := acme.Readings(acme.AwaitDevice("0059AC0000000000"), ""); len(got) != 1 || got[0].Key != "payload" {
		t.Errorf("readings = %s, want one of payload", e2e.FormatReadings(got))
	}
	body := e2e.Fixture(t, "senders/thingpark/119.json")
	stale := "/webhooks/lorawan/hq?LrnDevEui=20635F0108000496&LrnFPort=17&LrnInfos=TWA_100002167.1111.AS-1-111974&AS_ID=TWA_100002167.1111.AS&Time="
	anonymous.Post(stale+"2021-04-07T08%3A49%3A51.551%2B00%3A00&Token=196c22898bf95fcf48b72be198c89256410660b9b514539651344baa594ad74f", body).
		Expect(t, 401, `{"message":"Unauthenticated."}`)
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000+00:00")
	signed := strings.TrimPrefix(stale, "/webhooks/lorawan/hq?") + now
	token := sum("100002167" + "20635F0108000496" + "17" + "18" + "032ce4850919d85d4c9f793ad148d24f32f3c6b5488f5a087cbeb1488f5a998c83ab" + signed)
	anonymous.Post("/webhooks/lorawan/hq?"+strings.NewReplacer("+", "%2B", ":", "%3A").Replace(signed)+"&Token="+token, body).Expect(t, 200, "")
	acme.AwaitDevice("20635F0108000496")
	if strings.Contains(g.Logs.String(), secret) {
		t.Error("the log contains the secret")
	}
}
