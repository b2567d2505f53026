package frames

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay/relaytest"
)

const (
	// wrongSource reads an unsigned temperature, and throws if the second byte is missing.
	wrongSource = `function decodeUplink(input) {
  var raw = input.bytes[0] * 256 + input.bytes[1].valueOf();
  return {data: {temperature: raw / 10}};
}`
	correctedSource = `function decodeUplink(input) {
  var raw = input.bytes.length > 1 ? input.bytes[0] * 256 + input.bytes[1] : input.bytes[0];
  return {data: {temperature: (raw > 32767 ? raw - 65536 : raw) / 10}};
}`
)

const fridge = "70b3d57ed00f0001"

// fridgeFrame returns the n-th frame of the fridge, a minute after the previous frame.
func fridgeFrame(n int, payload ...byte) string {
	return fmt.Sprintf(`{"deduplicationId":"chill-%d","time":"2026-03-01T10:%02d:00Z","deviceInfo":{"devEui":%q,"deviceName":"Fridge"},"fCnt":%d,"fPort":2,"data":%q}`,
		n, n, fridge, n, base64.StdEncoding.EncodeToString(payload))
}

// testCorrectedDecoder corrects a decoder with a trial, a dry run and a replay.
func testCorrectedDecoder(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	decoder := acme.CreateDecoder("javascript", wrongSource)
	acme.Post("/iot/decoders/"+decoder+"/sensors", `{"sensor_type_id":"temperature","key":"temperature"}`).Mentions(t, 200, "temperature")
	for n, payload := range [][]byte{{0x00, 0x28}, {0xff, 0xf6}, {0x30}, {0x00, 0x1e}} {
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up&decoder_id="+decoder, fridgeFrame(n, payload...))
	}
	g.AwaitProcessed()
	id := acme.AwaitDevice(fridge)
	const wrongReadings = "temperature=3@2026-03-01 10:03:00 temperature=6552.6@2026-03-01 10:01:00 temperature=4@2026-03-01 10:00:00"
	relaytest.Equal(t, "readings of the wrong source", e2e.FormatReadings(acme.Readings(id, "")), wrongReadings)
	events := g.Events("state=quarantined&device=" + fridge)
	if len(events) != 1 {
		t.Fatalf("number of quarantined events = %d, want 1", len(events))
	}
	if !strings.Contains(events[0].Reason, "line 2, column") {
		t.Fatalf("reason = %q, want line 2 and a column", events[0].Reason)
	}
	tryCorrection(g, decoder, id)
	relaytest.Equal(t, "readings after trying", e2e.FormatReadings(acme.Readings(id, "")), wrongReadings)

	acme.Do("PATCH", "/iot/decoders/"+decoder, string(relaytest.Must(json.Marshal(map[string]string{"source": correctedSource}))(t))).Mentions(t, 200, decoder)
	selection := `{"kind":"uplink","q":"` + fridge + `"`
	var dryRun admin.DryRun
	g.Admin().Post("/admin/events/replay", selection+`,"dry_run":true}`).Decode(t, &dryRun)
	relaytest.Equal(t, "the dry run", dryRunSummary(dryRun),
		"done>done 10:01 changed 6552.6>-1; quarantined>done 10:02 added <nil>>4.8; 4 examined, 4 done, 2 differ, 1 added, 1 changed, 2 unchanged")
	relaytest.Equal(t, "readings after a dry run", e2e.FormatReadings(acme.Readings(id, "")), wrongReadings)

	for _, changes := range []string{`"added":1,"changed":1,"unchanged":2,"stays":0`, `"added":0,"changed":0,"unchanged":4,"stays":0`} {
		g.Admin().Post("/admin/events/replay", selection+`,"decoder":"`+decoder+`"}`).Mentions(t, 200, `"count":4,"examined":4,`, changes)
		relaytest.Equal(t, "readings after the replay", e2e.FormatReadings(acme.Readings(id, "")),
			"temperature=3@2026-03-01 10:03:00 temperature=4.8@2026-03-01 10:02:00 temperature=-1@2026-03-01 10:01:00 temperature=4@2026-03-01 10:00:00")
		relaytest.Equal(t, "latest after the replay", e2e.FormatReadings(acme.LatestReadings(id)), "temperature=3@2026-03-01 10:03:00")
		relaytest.Equal(t, "the number of quarantined events after the replay", len(g.Events("state=quarantined&device="+fridge)), 0)
		if s.Influx != nil {
			if n := s.Influx.Count(t, g.Setting("PENSTOCK_INFLUX_BUCKET"), "temperature", "value"); n != 4 {
				t.Errorf("readings in InfluxDB = %d, want 4", n)
			}
		}
	}
	dryRun = admin.DryRun{}
	g.Admin().Post("/admin/events/replay", selection+`,"dry_run":true}`).Decode(t, &dryRun)
	relaytest.Equal(t, "the dry run after the replay", dryRunSummary(dryRun), "; 4 examined, 4 done, 0 differ, 0 added, 0 changed, 4 unchanged")
}

// dryRunSummary returns the changes and the counts of a dry run as text.
func dryRunSummary(r admin.DryRun) string {
	var events []string
	for _, e := range r.ChangedEvents {
		text := fmt.Sprintf("%s>%s", e.State, e.NewState)
		for _, d := range e.Devices {
			for _, v := range d.Readings {
				text += fmt.Sprintf(" %s %s %v>%v", v.Time.Format("15:04"), v.Effect, v.Old, v.New)
			}
		}
		events = append(events, text)
	}
	return fmt.Sprintf("%s; %d examined, %d done, %d differ, %d added, %d changed, %d unchanged", strings.Join(events, "; "),
		r.Examined, r.Events.Done, r.Events.Changed, r.Readings.Added, r.Readings.Changed, r.Readings.Unchanged)
}

// tryCorrection runs correctedSource on the device's stored frames before it is saved, and runs the
// stored decoder on a payload.
func tryCorrection(g *e2e.Gateway, decoder, device string) {
	g.T.Helper()
	source := filepath.Join(g.Dir, "careful.js")
	relaytest.NoError(g.T, os.WriteFile(source, []byte(correctedSource), 0o600))
	const want = `frame 1  2026-03-01T10:03:00Z  event …  device 70b3d57ed00f0001  chirpstack-v4  001e  port 2  … µs
  temperature = 3
  reading temperature (temperature): 3, stored value: 3

frame 2  2026-03-01T10:02:00Z  event …  device 70b3d57ed00f0001  chirpstack-v4  30  port 2  … µs
  temperature = 4.8
  reading temperature (temperature): 4.8, no stored value

frame 3  2026-03-01T10:01:00Z  event …  device 70b3d57ed00f0001  chirpstack-v4  fff6  port 2  … µs
  temperature = -1
  reading temperature (temperature): -1, stored value: 6552.6
`
	got := g.RunCommand("", "decode", "--device", device, "--last", "3", "--source", source)
	if got.Mentions(g.T, e2e.ExitDone); !e2e.LinesMatch(strings.Split(want, "\n"), strings.Split(got.Stdout, "\n")) {
		g.T.Errorf("frames of the device = %s\nwant %s", got.Stdout, want)
	}
	g.RunCommand("", "decode", "--decoder", decoder, "--hex", "30").Mentions(g.T, e2e.ExitFailed, "error: javascript: decodeUplink: line 2, column")
	g.RunCommand("", "replay", "events", "--kind", "uplink", "-q", fridge, "--dry-run").Mentions(g.T, e2e.ExitDone, "4 examined: 3 would be stored, 1 quarantined; 0 differ")
}

// TestDecodeWithoutAGateway runs the command decode on files, without a gateway.
func TestDecodeWithoutAGateway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		relaytest.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return filepath.Join(dir, name)
	}
	js, expr := file("codec.js", correctedSource), file("codec.expr", "temperature = bytes[0] * 0.5")
	clock := file("clock.js", "function decodeUplink(input) { return {data: {received: input.recvTime, now: new Date(), this_century: Date.now() > 1.7e12}} }")
	up := file("up.json", e2e.Fixture(t, "chirpstack/up.json"))
	form := file("sigfox.txt", "device=1A2B3C&data=30&time=1700000000&seqNumber=5")
	for _, tc := range []struct {
		name   string
		args   []string
		stdin  string
		code   int
		output string
	}{
		{"a codec by the ending of its file", []string{"--source", js, "--hex", "ff:f6"}, "", 0, "temperature = -1\n"},
		{"an expression from the standard input", []string{"--source", "-", "--base64", "Kw=="}, "temperature = bytes[0] * 0.5", 0, "temperature = 21.5\n"},
		{"the time of a frame", []string{"--source", clock, "--hex", "01", "--time", "2026-03-01T10:00:00Z"}, "", 0, "now = \"2026-03-01T10:00:00.000Z\"\n  received = \"2026-03-01T10:00:00.000Z\"\n"},
		{"a frame without a time", []string{"--source", clock, "--hex", "01"}, "", 0, "this_century = 1\n"},
		{"a codec without a source", []string{"--codec", "cayenne_lpp", "--hex", "03670110"}, "", 0, "temperature_3 = 27.2\n"},
		{"the post of a sender", []string{"--source", js, "--raw", "--body", up, "--post-query", "event=up"}, "", 0, "chirpstack-v4  03670110046879  port 2"},
		{"a post that is not JSON", []string{"--source", expr, "--body", form, "--content-type", "application/x-www-form-urlencoded", "--path", "lpwan"}, "", 0, "temperature = 24\n"},
		{"the readings of sensors", []string{"--source", expr, "--hex", "02", "--sensor", "temperature=t1"}, "", 0, "reading temperature (t1): 1\n"},
		{"several frames", []string{"--source", expr, "--hex", "02", "--hex", "04"}, "", 0, "temperature = 2\n"},
		{"the output as JSON", []string{"--source", expr, "--hex", "02", "--json", "--f-port", "7"}, "", 0, `"fPort": 7,`},
		{"a frame that the codec cannot read", []string{"--codec", "cayenne_lpp", "--hex", "0367"}, "", e2e.ExitFailed, "error: cayenne_lpp"},
		{"a source that does not compile", []string{"--source", "-", "--codec", "javascript", "--hex", "01"}, "function (", e2e.ExitFailed, "decode: source: javascript: line 1, column"},
		{"no frame", []string{"--source", js}, "", e2e.ExitFailed, "decode: frames: "},
		{"no codec", []string{"--hex", "01"}, "", e2e.ExitFailed, "Name a decoder, a device with a decoder, or a codec."},
		{"invalid bytes", []string{"--source", js, "--hex", "xy"}, "", e2e.ExitFailed, "decode: frames.0: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e2e.RunCommand(nil, tc.stdin, append([]string{"decode"}, tc.args...)...).Mentions(t, tc.code, tc.output)
		})
	}
}
