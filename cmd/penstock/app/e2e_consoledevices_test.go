package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// opened signs a browser in at a gateway's console.
func (b *browser) opened(g *gateway) {
	b.t.Helper()
	b.do(chromedp.Navigate(g.url() + "/console"))
	b.write("#token", adminToken+kb.Enter)
	b.press("Devices")
}

// quiet holds that the browser had nothing to complain of.
func (b *browser) quiet(expected ...string) {
	b.t.Helper()
	if wrong := b.complaints(expected...); len(wrong) > 0 {
		b.t.Errorf("the browser complains: %q", wrong)
	}
}

// drawn is a condition that holds once a chart has a line or a point in one of the
// colours of minimum, mean and maximum; axes have others.
const drawn = `[...document.querySelectorAll("figure.chart canvas")].some((c) => { const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
	const lines = [[0x17, 0x60, 0x87], [0xb4, 0x53, 0x1a], [0x2e, 0x7d, 0x4f]];
	for (let i = 0, n = 0; i < d.length; i += 4) if (d[i + 3] > 200 && lines.some((l) => Math.abs(d[i] - l[0]) + Math.abs(d[i + 1] - l[1]) + Math.abs(d[i + 2] - l[2]) < 40) && ++n > 5) return true; return false })`

// TestConsoleShowsDevices drives the console as somebody does who looks for a device
// and for what it measured.
func TestConsoleShowsDevices(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	g := start(t, &site{name: "embedded"}, fixture(t, "inventory.yaml"))
	b.opened(g)
	b.shows("There is no device yet", "/webhooks/generic/my-device")
	acme := g.as("acme-all-0123456")
	for n := range 30 {
		at := time.Now().Add(-time.Duration(n) * time.Minute).UTC().Format(time.RFC3339)
		acme.post("/webhooks/generic/shed?decoder_id=sent", fmt.Sprintf(`{"time":%q,"temperature":%d}`, at, 20+n%7)).mentions(t, 200, "temperature")
	}
	acme.post("/webhooks/lorawan?decoder_id=lpp&event=up", fixture(t, "chirpstack/up.json")).is(t, 200, "")
	g.settled()
	shed := acme.device("shed")
	acme.do("PATCH", "/iot/devices/"+shed, `{"longitude":"-2.09","latitude":"57.15","frame_logging":"enabled","name":"`+strings.ReplaceAll(markup, `"`, `'`)+`"}`).mentions(t, 200, "57.15")
	acme.post("/iot/devices/"+shed+"/event-markers", `{"event_marker_id":"m1","comment":"New battery"}`).mentions(t, 201, "New battery")
	acme.post("/webhooks/generic/shed", `{"temperature":31}`).mentions(t, 200, "31")
	g.settled()

	b.press("Refresh")
	b.shows("acme (1)", "dBm", " ago", "Where they are", "longitude, degrees east")
	b.write("input[name=q]", "nothing like it"+kb.Enter)
	b.shows("No device matches these filters.")
	b.press("Clear")
	b.write("input[name=q]", "shed"+kb.Enter)
	b.shows("<b>Gate</b>", "1 device of this page")
	b.click("tbody a")
	b.shows("Newest values", "31 °C", "Minimum, mean and maximum", "New battery", "57.15, -2.09", "stored", "No alarm was raised for this device.")
	eventually(t, "the chart of the day is drawn", func() (any, bool) { return b.text(), b.holds(drawn) })
	b.press("Last hour")
	b.shows("of each half minute")
	eventually(t, "the chart of the hour is drawn", func() (any, bool) { return b.text(), b.holds(drawn) })
	b.press("trace")
	b.shows("The way of it")
	if !b.holds(`document.title !== "harm" && document.images.length === 0`) {
		t.Error("the name became markup")
	}
	b.quiet()
}

// TestConsoleMendsADecoder drives the console as somebody does whose decoder is broken:
// it is found by its failures, mended, tried, saved, and history is replayed with it.
func TestConsoleMendsADecoder(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	g := start(t, &site{name: "embedded"}, fixture(t, "inventory.yaml"))
	acme := g.as("acme-all-0123456")
	acme.post("/webhooks/lorawan?decoder_id=torn&event=up", fixture(t, "chirpstack/up.json")).is(t, 200, "")
	g.settled()
	b.opened(g)
	b.press("Decoders")
	b.shows("Parking space", "acme (1)", "fails", "no device uses it")
	b.press("Parking space")
	b.shows("1 frame: 1 fails.", "out of range")
	b.do(chromedp.SetValue(chromedp.CSS("textarea[name=source]"), "temperature = bytes["))
	b.press("Save")
	b.shows("line 1, column")
	b.do(chromedp.SetValue(chromedp.CSS("textarea[name=source]"), "temperature = bytes[1] * 1.0"))
	b.press("Try on the last frames")
	b.shows("1 frame: none fails, 1 would store something else than is stored today.", "(added)")
	b.press("Save")
	b.shows("Saved. Frames that arrive from now on are read with it")
	b.press("What a replay would change")
	b.shows("A replay would do this; nothing was changed", "1 added")
	b.press("Replay history")
	b.shows("Replay 1 event?")
	b.press("Replay 1")
	b.shows("1 event is processed again.")
	eventually(t, "the reading is stored", func() (any, bool) {
		list := acme.latest(acme.device("70b3d57ed0001234"))
		return list, len(list) == 1
	})
	b.quiet("status of 422")
}
