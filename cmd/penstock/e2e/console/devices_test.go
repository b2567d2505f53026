package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// openDevices signs in at the console of a gateway, and opens the list of devices.
func openDevices(b *e2e.Browser, g *e2e.Gateway) {
	b.T.Helper()
	b.Open(g.URL() + "/console")
	b.SignIn()
	b.Press("Devices")
}

// TestConsoleShowsDevices searches for a device, and opens its charts, alarms, settings and events.
func TestConsoleShowsDevices(t *testing.T) {
	t.Parallel()
	b := e2e.NewBrowser(t)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml"))
	openDevices(b, g)
	b.AwaitText("No devices yet.", "Add device")
	acme := g.WithToken("acme-all-0123456")
	for n := range 30 {
		readAt := time.Now().Add(-time.Duration(n) * time.Minute).UTC().Format(time.RFC3339)
		acme.Post("/webhooks/generic/shed?decoder_id=sent", fmt.Sprintf(`{"time":%q,"temperature":%d}`, readAt, 20+n%7)).Mentions(t, 200, "temperature")
	}
	acme.Post("/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(t, "chirpstack/up.json")).Expect(t, 200, "")
	g.AwaitProcessed()
	shed := acme.AwaitDevice("shed")
	acme.Do("PATCH", "/iot/devices/"+shed, `{"longitude":"-2.09","latitude":"57.15","frame_logging":"enabled","name":"`+strings.ReplaceAll(markup, `"`, `'`)+`"}`).Mentions(t, 200, "57.15")
	acme.Post("/iot/devices/"+shed+"/event-markers", `{"event_marker_id":"m1","comment":"New battery"}`).Mentions(t, 201, "New battery")
	acme.Post("/webhooks/generic/shed", `{"temperature":31}`).Mentions(t, 200, "31")
	acme.Post("/webhooks/generic/woodshed?decoder_id=sent", `{"temperature":9,"name":"shed"}`).Mentions(t, 200, "9")
	g.AwaitProcessed()

	b.Press("Refresh")
	b.AwaitText("acme", "dBm", " ago", "Map (1 device with a position)", "longitude, degrees east")
	b.Write("input[name=q]", "nothing like it"+kb.Enter)
	b.AwaitText("No devices match the filters.")
	b.Press("Clear")
	b.Write("input[name=q]", "shed"+kb.Enter)
	b.AwaitText("<b>Gate</b>", "31 °C")
	b.Click("tbody a")
	b.AwaitText("31 °C", "minimum to maximum", "About this device")
	b.Press("About this device")
	b.AwaitText("57.15, -2.09")
	b.AwaitCondition("the chart of the day is drawn", e2e.ChartDrawn)
	b.Press("1 h")
	b.AwaitText("of each half-minute interval", "Dashed lines are markers: New battery")
	b.AwaitCondition("the chart of the hour is drawn", e2e.ChartDrawn)
	b.Click(`nav.tabs a[href*="tab=alarms"]`)
	b.AwaitText("No alarms.")
	b.Press("Settings")
	b.AwaitText("New battery")
	checkDeviceSettings(b, acme)
	b.Click(`nav.tabs a[href*="tab=events"]`)
	b.AwaitText("Stored", "Temperature 31 °C")
	b.Press("Replay all frames of this device")
	b.AwaitText("Replay 31 events?")
	b.Press("Cancel")
	b.Press("All events")
	b.AwaitCondition("only events of the device are listed", `document.querySelectorAll(".listing button.open").length === 31 && !document.body.innerText.includes("woodshed")`)
	b.Click("#sort-Received")
	b.AwaitCondition("the events are sorted by time", `(() => {
		const times = [...document.querySelectorAll(".listing td.first time")].map((e) => Date.parse(e.dateTime));
		return times.length === 31 && times.every((t, i) => i === 0 || t >= times[i - 1]);
	})()`)
	b.Click(".listing button.open")
	b.Press("Timeline")
	b.AwaitText("Frame: ", "Received", "Reading")
	if !b.EvaluateCondition(`document.title !== "harm" && document.images.length === 0`) {
		t.Error("the console rendered the name as markup")
	}
	b.ExpectNoProblems()
}

// TestChartsDrawReadingsAtTheirTime hovers over the chart of a day, which has intervals of ten minutes: an earlier
// interval is drawn at its middle, the last one at the newest reading, where the line of the alarm is.
func TestChartsDrawReadingsAtTheirTime(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	const interval = 10 * time.Minute
	newest := time.Now().Add(-interval).UTC().Truncate(interval).Add(9 * time.Minute)
	earlier := newest.Add(-2 * time.Hour)
	for readAt, temperature := range map[time.Time]int{earlier: 21, newest: 31} {
		acme.Post("/webhooks/generic/shed?decoder_id=sent", fmt.Sprintf(`{"time":%q,"temperature":%d}`, readAt.Format(time.RFC3339), temperature)).Mentions(t, 200, "temperature")
	}
	g.AwaitProcessed()
	b := e2e.NewBrowser(t)
	b.Open(g.URL() + "/console#devices?account=1&id=" + acme.AwaitDevice("shed"))
	b.SignIn()
	b.AwaitCondition("the chart is drawn", e2e.ChartDrawn)
	for _, want := range []struct {
		position string
		at       time.Time
		value    string
	}{{"left", earlier.Truncate(interval).Add(interval / 2), "21 °C"}, {"right", newest, "31 °C"}} {
		b.AwaitCondition("the legend shows the "+want.position+" reading at its time", fmt.Sprintf(`(() => {
			const plot = document.querySelector(".u-over"), { %s: x, top: y } = plot.getBoundingClientRect();
			for (const name of ["mouseenter", "mousemove"]) plot.dispatchEvent(new MouseEvent(name, { clientX: x, clientY: y }));
			const legend = document.querySelector(".u-legend").innerText.replaceAll("\u00a0", " ");
			return legend.includes(%q) && legend.includes(%q);
		})()`, want.position, want.at.Format("2006-01-02 15:04"), want.value))
	}
	b.ExpectNoProblems()
}

// checkDeviceSettings clears the position and the decoder of the device shed in the open form, and sets them back.
func checkDeviceSettings(b *e2e.Browser, acme e2e.Client) {
	b.T.Helper()
	b.AwaitCondition("decoders are offered", `(document.querySelector("select[name=decoder_id]")?.options.length ?? 0) > 2`)
	b.AwaitCondition("a location is required", `[...document.querySelector("select[name=location_id]").options].every((o) => o.value)`)
	for _, want := range []struct{ decoder, latitude string }{{"", ""}, {"sent", "57.15"}, {"lpp", "57.16"}, {"sent", "57.15"}} {
		b.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{ // chromedp does not set an empty value
			document.querySelector("select[name=decoder_id]").value = %q;
			document.querySelector("input[name=latitude]").value = %q;
		}`, want.decoder, want.latitude)))
		b.Press("Save")
		relaytest.Eventually(b.T, fmt.Sprintf("the settings %+v are saved", want), func() (any, bool) {
			var got struct {
				DecoderID string `json:"decoder_id"`
				Latitude  string
			}
			acme.Get("/iot/devices/identifier/shed").Decode(b.T, &got)
			return got, got.DecoderID == want.decoder && got.Latitude == want.latitude
		})
	}
}

// editSource changes the source on the page of a decoder.
func editSource(b *e2e.Browser, source string) {
	b.T.Helper()
	b.Set("textarea[name=source]", source)
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("textarea[name=source]").dispatchEvent(new Event("input", { bubbles: true }))`))
}

// TestConsoleCorrectsADecoder opens a decoder that fails, corrects, tries and saves the decoder, and
// replays its frames.
func TestConsoleCorrectsADecoder(t *testing.T) {
	t.Parallel()
	b := e2e.NewBrowser(t)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	acme.Post("/webhooks/lorawan?decoder_id=torn&event=up", e2e.Fixture(t, "chirpstack/up.json")).Expect(t, 200, "")
	g.AwaitProcessed()
	openDevices(b, g)
	b.Press("Decoders")
	b.AwaitText("Parking space", "acme", "Fails", "No device uses it")
	b.Press("Parking space")
	b.AwaitText("1 frame: 1 fails.", "out of range")
	b.AwaitCondition("there is nothing to save", `[...document.querySelectorAll("button")].find((button) => button.textContent === "Save").disabled`)
	editSource(b, "temperature = bytes[")
	b.Press("Save")
	b.AwaitText("line 1, column")
	editSource(b, "temperature = bytes[1] * 1.0")
	b.Press("Test on the last frames")
	b.AwaitText("1 frame: no failures, 1 would change stored readings.", "(added)")
	b.Press("Save")
	b.AwaitText("Saved. New frames use it. Replay to correct stored readings.")
	b.Press("Preview the replay")
	b.AwaitText("Preview of the replay; nothing was changed", "1 added")
	b.Press("Replay")
	b.AwaitText("Replay 1 event?")
	b.Press("Replay 1")
	b.AwaitText("1 event is processed again.")
	relaytest.Eventually(t, "the reading is stored", func() (any, bool) {
		list := acme.LatestReadings(acme.AwaitDevice("70b3d57ed0001234"))
		return list, len(list) == 1
	})
	b.ExpectNoProblems("status of 422")
}
