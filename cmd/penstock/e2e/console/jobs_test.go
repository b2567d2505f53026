package console

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/relaytest"
)

// Limits for the clicks of a job from the navigation to the visible effect, without the sign-in: the
// median of all jobs, and the largest number. A choice from a list counts as one click, typing does not
// count.
const (
	maxMedianClicks = 6
	maxClicks       = 8
)

// jobCount is the number of the jobs of operators that the test covers.
const jobCount = 17

// sensorTypesOffered is the condition that a decoder's page offers sensor types.
const sensorTypesOffered = `(document.querySelector("select[name=sensor_type_id]")?.options.length ?? 0) > 1`

// worker does jobs in the console and counts its clicks.
type worker struct {
	*e2e.Browser
	clicks      int
	clicksByJob map[int]int // largest number of clicks of the parts of a job
}

func (w *worker) Press(text string)     { w.T.Helper(); w.clicks++; w.Browser.Press(text) }
func (w *worker) Click(selector string) { w.T.Helper(); w.clicks++; w.Browser.Click(selector) }

// selectOption selects an option from a list.
func (w *worker) selectOption(selector, value string) {
	w.T.Helper()
	w.clicks++
	w.Set(selector, value)
	w.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).dispatchEvent(new Event("change", { bubbles: true }))`, selector)))
}

// submit sends the form of the open dialog.
func (w *worker) submit() { w.T.Helper(); w.Click("dialog button[type=submit]") }

// confirm confirms the open dialog.
func (w *worker) confirm() { w.T.Helper(); w.Click("dialog button[value=yes]") }

// runJob runs a job, or a part of a job, as a subtest. number is the number of the job; 0 for steps that
// are not part of a job.
func (w *worker) runJob(t *testing.T, number int, name string, job func(w *worker)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		w.T, w.clicks = t, 0
		job(w)
		if number > 0 && w.clicks > maxClicks {
			t.Errorf("clicks = %d, want at most %d", w.clicks, maxClicks)
		}
		w.clicksByJob[number] = max(w.clicksByJob[number], w.clicks)
	})
}

// checkClicks compares the clicks of all jobs with the limit.
func (w *worker) checkClicks(t *testing.T) {
	t.Helper()
	delete(w.clicksByJob, 0)
	relaytest.Equal(t, "the number of jobs", len(w.clicksByJob), jobCount)
	if counts := slices.Sorted(maps.Values(w.clicksByJob)); counts[len(counts)/2] > maxMedianClicks {
		t.Errorf("clicks by job = %v, want a median of at most %d", w.clicksByJob, maxMedianClicks)
	}
}

// TestOperatorsNeedFewClicks does the daily jobs of operators in the console.
func TestOperatorsNeedFewClicks(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	acme := g.WithToken("acme-all-0123456")
	acme.Post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":21}`).Mentions(t, 200, "21")
	g.AwaitProcessed()
	token := ledger.TokenID(g.MintToken().Token)
	acme.Do("PATCH", "/iot/decoders/per-key", `{"source":"temperature = bytes[9] * 1.0"}`).Mentions(t, 200, "per-key")
	acme.Post("/webhooks/lorawan?decoder_id=per-key&event=up", e2e.Fixture(t, "chirpstack/up.json")).Expect(t, 200, "")
	acme.Post("/inbound/sms/json", `{"id":"m1","from":"447700900777","to":"447800012345","text":"Hello"}`).Mentions(t, 200, "id")
	postUsage(g)
	g.AwaitProcessed()
	w := &worker{Browser: e2e.NewBrowser(t), clicksByJob: map[int]int{}}
	w.Open(g.URL() + "/")
	w.SignIn()
	w.AwaitText("Back ends ready")

	w.runJob(t, 1, "find the reason why a frame has no reading", func(w *worker) {
		w.Press("Devices")
		w.Press("Probe 7")
		w.Click(`nav.tabs a[href*="tab=events"]`)
		w.AwaitText("Fails", "out of range", "Fix the decoder")
	})
	w.runJob(t, 2, "correct a decoder and its mapping, and replay its frames", func(w *worker) {
		w.Press("Decoders")
		w.Press("An expression per key")
		w.AwaitText("out of range")
		editSource(w.Browser, "level = bytes[1] * 1.0")
		w.Press("Save")
		w.AwaitText("Saved. New frames use it.")
		w.Write("input[name=key]", "level")
		w.AwaitCondition("sensor types are offered", sensorTypesOffered)
		w.selectOption("select[name=sensor_type_id]", "temperature")
		w.Press("Map key")
		w.AwaitText("level is mapped.")
		w.Press("Replay")
		w.confirm()
		w.AwaitText("1 event is processed again.")
		relaytest.Eventually(w.T, "the reading is stored", func() (any, bool) {
			list := acme.LatestReadings(acme.AwaitDevice("70b3d57ed0001234"))
			return list, len(list) == 1
		})
	})
	w.runJob(t, 0, "replay the frames of a decoder", func(w *worker) {
		w.Press("Events")
		w.Press("Replay…")
		w.AwaitCondition("decoders are offered", `(document.querySelector("dialog select[name=decoder]")?.options.length ?? 0) > 1`)
		w.selectOption("dialog select[name=decoder]", "per-key")
		w.submit()
		w.AwaitText("Replay 1 event?", "Readings: 1 unchanged.", "Run rules")
		w.confirm()
		w.AwaitText("1 event is processed again.", "Readings: 1 unchanged.")
	})
	w.runJob(t, 10, "create a user with a role", func(w *worker) {
		w.Press("Users")
		w.Press("Add user")
		w.Write("dialog input[name=name]", "olga")
		w.selectOption("dialog select[name=role]", "operator")
		w.Write("dialog input[name=password]", e2e.UserPassword)
		w.submit()
		w.AwaitText("olga may sign in as operator.")
	})
	w.runJob(t, 11, "find a message by its number", func(w *worker) {
		w.Press("Messages")
		w.Write("input[name=number]", "447700900777"+kb.Enter)
		w.AwaitCondition("the message is found", `document.querySelectorAll(".listing tbody tr:not(.detail)").length === 1 && document.querySelector(".listing").innerText.includes("447800012345")`)
	})
	w.runJob(t, 14, "see the usage of a SIM", func(w *worker) {
		w.Press("SIMs")
		w.Press(e2e.ActiveSIM)
		w.AwaitText("Data per day", "SMS per day", "By month")
		w.AwaitCondition("the usage is drawn", e2e.ChartDrawn)
	})

	w.runJob(t, 17, "create an account and its token", func(w *worker) {
		w.Press("Accounts")
		w.Press("Add account")
		w.Write("dialog input[name=name]", "initech")
		w.submit()
		w.AwaitText("initech", "No tokens yet.")
		w.Press("Add API token")
		w.submit()
		w.AwaitText("Copy it now. It is not shown again.")
		w.AwaitCondition("the token is shown", `document.getElementById("new-token").textContent.length >= 16`)
		w.Browser.Press("Close")
		w.AwaitText("Permits", "Everything")
	})
	w.runJob(t, 0, "refuse a credit that is not a number, and a name that is in use", func(w *worker) {
		w.Press("Accounts")
		w.Press("Add account")
		w.Write("dialog input[name=name]", "initech")
		w.Set("dialog input[name=credit]", "1,000")
		w.submit()
		w.AwaitCondition("a number is required", `document.querySelector("dialog input[name=credit]:invalid") !== null`)
		w.Set("dialog input[name=credit]", "1000")
		w.submit()
		w.AwaitText("initech")
		w.AwaitCondition("the refusal is shown in the dialog", `document.querySelector("dialog .wrong, dialog .problem") !== null`)
		w.Press("Cancel")
		w.AwaitText("Leave without saving?")
		w.confirm()
		w.AwaitCondition("no dialog is open", `document.querySelector("dialog") === null`)
	})
	w.runJob(t, 16, "top up credit with a reason", func(w *worker) {
		w.Press("Accounts")
		w.Press("acme")
		w.Press("Credit")
		w.Press("Change credit")
		w.Write("dialog input[name=amount]", "250")
		w.Write("dialog input[name=reason]", "invoice 17")
		w.submit()
		w.AwaitText("+250", "Changed by an admin", "invoice 17")
	})
	w.runJob(t, 0, "see the differences from the inventory", func(w *worker) {
		w.Press("Inventory")
		w.AwaitText("Differences from the inventory", "credit", "1250", "by admin", "--reset credit")
		w.Press("Accounts")
		w.Press("acme")
		w.Press("Settings")
		w.AwaitText("Differences from the inventory", "1250")
	})
	w.runJob(t, 3, "add a device", func(w *worker) {
		w.Press("Devices")
		w.Press("Add device")
		w.AwaitCondition("decoders are offered", `Boolean(document.querySelector("dialog select[name=decoder_id]")?.value)`)
		w.Write("dialog input[name=identifier]", "wrong")
		w.Write("dialog input[name=name]", "Cold room 4")
		w.submit()
		w.AwaitText("Not saved. See the marked fields.")
		w.Set("dialog input[name=identifier]", "70b3d57ed000abcd")
		w.submit()
		w.AwaitText("Cold room 4", "Readings", "Settings")
	})
	w.runJob(t, 4, "rename a device and log its frames", func(w *worker) {
		w.Press("Settings")
		w.AwaitText("Frame logging")
		w.Set("input[name=name]", "Cold room 5")
		w.Set("input[name=latitude]", "57.15")
		w.Set("input[name=longitude]", "-2.09")
		w.Click("input[name=frame_logging]")
		w.Press("Save")
		w.AwaitText("Saved.")
		w.AwaitCondition("the heading has the name", `document.querySelector("h1").textContent === "Cold room 5"`)
		acme.Get("/iot/devices").Mentions(w.T, 200, `"Cold room 5"`)
	})
	w.runJob(t, 4, "add a marker to a device", func(w *worker) {
		w.Press("Settings")
		w.Write(`form[aria-label="Add marker"] input[name=comment]`, "New battery")
		w.Press("Add marker")
		w.AwaitCondition("the marker is listed", `document.querySelector('table[aria-label="Markers"]')?.innerText.includes("New battery") ?? false`)
	})
	w.runJob(t, 4, "delete a device", func(w *worker) {
		w.Press("Delete device")
		w.confirm()
		w.AwaitText("A device is silent if it was not heard for 24 hours.", "shed")
		w.AwaitCondition("the device is deleted", `!document.body.innerText.includes("Cold room 5")`)
	})
	w.runJob(t, 0, "sort and export a list", func(w *worker) {
		w.Press("Devices")
		w.Click("#sort-Device")
		w.AwaitCondition("the column and the address show the sort order",
			`document.querySelector('th[aria-sort="ascending"]') !== null && location.hash.includes("sort=Device")`)
		w.Do(chromedp.Evaluate[chromedp.Void](`{ const make = URL.createObjectURL;
			URL.createObjectURL = (file) => { file.text().then((text) => { document.body.dataset.file = text; }); return make.call(URL, file); }; }`))
		w.Press("Export CSV")
		w.AwaitCondition("the file has the device", `(document.body.dataset.file ?? "").startsWith("Device,State,Last heard") && document.body.dataset.file.includes("shed,")`)
	})
	w.runJob(t, 9, "create a rule", func(w *worker) {
		w.Press("Rules")
		w.Press("Add rule")
		w.Write("input[name=name]", "Too warm")
		w.Write("input[name=key]", "temperature")
		w.Write("input[name=limit]", "30")
		w.Write("textarea[name=parameters]", "ops@example.com")
		w.AwaitCondition("devices are offered", `Boolean(document.querySelector("select[name=trial_device]")?.value)`)
		w.Press("Test on the last 10 frames")
		w.AwaitText("The condition is met by 0 of 1 frame.", "Temperature 21 °C")
		w.Press("Add rule")
		w.AwaitText("Rule added.", "Delete rule")
	})
	w.runJob(t, 9, "edit a rule", func(w *worker) {
		w.Set("input[name=limit]", "25")
		w.Press("Save")
		w.AwaitText("Saved.")
		acme.Get("/iot/rules").Mentions(w.T, 200, `"values.temperature > 25"`)
	})
	w.runJob(t, 0, "compare a value whose key has a dot", func(w *worker) {
		w.Set("input[name=key]", "air.temperature")
		w.Press("Save")
		w.AwaitText("Saved.")
		acme.Get("/iot/rules").Mentions(w.T, 200, `"values[\"air.temperature\"] > 25"`)
		w.Press("Rules")
		w.Press("Too warm")
		w.AwaitCondition("the form shows the key", `document.querySelector("input[name=key]")?.value === "air.temperature"`)
		w.Set("input[name=key]", "temperature")
		w.Press("Save")
		w.AwaitText("Saved.")
	})
	w.runJob(t, 0, "keep the devices of a rule that the form cannot show", func(w *worker) {
		var rules struct{ Data []struct{ ID string } }
		acme.Get("/iot/rules").Decode(w.T, &rules)
		acme.Do("PATCH", "/iot/rules/"+rules.Data[0].ID, `{"devices":{"name":"she*"}}`).Mentions(w.T, 200, "she*")
		w.Press("Rules")
		w.Press("Too warm")
		w.AwaitCondition("the form shows the devices", `document.querySelector("select[name=scope]")?.selectedOptions[0].text === "name she*"`)
		w.Set("input[name=limit]", "26")
		w.Press("Save")
		w.AwaitText("Saved.")
		acme.Get("/iot/rules").Mentions(w.T, 200, `"values.temperature > 26"`, `"name":"she*"`)
	})
	w.runJob(t, 9, "disable and enable a rule", func(w *worker) {
		w.Press("Rules")
		w.Click("button[role=switch]")
		w.AwaitText("Too warm is disabled.")
		w.AwaitCondition("the switch is off", `document.querySelector("button[role=switch]").getAttribute("aria-checked") === "false"`)
		w.Click("button[role=switch]")
		w.AwaitText("Too warm is enabled.")
	})
	w.runJob(t, 9, "disable and enable a rule on its page", func(w *worker) {
		w.Press("Rules")
		w.Press("Too warm")
		w.Click("button[role=switch]")
		w.AwaitText("Too warm is disabled.")
		w.Press("Save")
		w.AwaitText("Saved.")
		acme.Get("/iot/rules").Mentions(w.T, 200, `"enabled":false`)
		w.Click("button[role=switch]")
		w.AwaitText("Too warm is enabled.")
	})
	acme.Post("/webhooks/generic/shed", `{"temperature":31}`).Mentions(t, 200, "31")
	g.AwaitProcessed()
	w.runJob(t, 7, "acknowledge an alarm", func(w *worker) {
		w.Press("Alarms")
		w.AwaitText("Too warm", "Temperature 31 °C")
		w.Press("Acknowledge")
		w.AwaitText("1 alarm is acknowledged.")
		acme.Get("/iot/alarms").Mentions(w.T, 200, `"acknowledged_by":"operator"`)
	})
	w.runJob(t, 8, "mute a rule for an hour", func(w *worker) {
		w.Press("Alarms")
		w.Click(`button[aria-label="Mute Too warm of shed"]`)
		w.selectOption("dialog select[name=scope]", "rule")
		w.submit()
		w.AwaitText("Muted until ", "Muted", "Unmute")
		w.Press("Unmute")
		w.AwaitText("The mute is ended.")
	})
	w.runJob(t, 8, "mute the alarms of a device", func(w *worker) {
		w.Press("Devices")
		w.Press("shed")
		w.Click(`nav.tabs a[href*="tab=alarms"]`)
		w.Click(`button[aria-label="Mute Too warm of shed"]`)
		w.submit()
		w.AwaitText("Muted until ", "Unmute")
		w.Press("Unmute")
		w.AwaitText("The mute is ended.")
		w.Click(`main tbody a[href^="#rules"]`)
		w.AwaitText("Delete rule")
	})
	w.runJob(t, 5, "add a relay", func(w *worker) {
		w.Press("Relays")
		w.Press("Add relay")
		w.AwaitCondition("actions are offered", `(document.querySelector("dialog select[name=action]")?.options.length ?? 0) > 2`)
		w.Write("dialog input[name=number]", "447860000777")
		w.Set("dialog textarea[name=parameters]", "http://10.0.0.1/in")
		w.submit()
		w.AwaitText("Not saved. See the marked fields.", "10.0.0.1 is not public")
		w.Set("dialog textarea[name=parameters]", "https://example.com/in")
		w.submit()
		w.AwaitText("Relay 447860000777", "Settings")
		w.AwaitCondition("the form has the URL", `document.querySelector("textarea[name=parameters]")?.value === "https://example.com/in"`)
	})
	w.runJob(t, 6, "send a test message to a relay", func(w *worker) {
		w.Press("Send a test")
		w.AwaitText("It is delivered as a message from 447700900123 to:", "https://example.com/in")
		w.confirm()
		w.AwaitText("Sent. Its deliveries show the result.")
	})
	w.runJob(t, 6, "delete a relay", func(w *worker) {
		w.Press("Delete relay")
		w.confirm()
		w.AwaitText("Inbound messages go to the relay of their number", "4478000")
		w.AwaitCondition("the relay is deleted", `!document.body.innerText.includes("447860000777")`)
	})
	w.runJob(t, 0, "add a decoder, map a key and delete it", func(w *worker) {
		w.Press("Decoders")
		w.Press("Add decoder")
		w.Write("dialog input[name=name]", "Meter")
		w.submit()
		w.AwaitText("Meter", "No key is mapped")
		w.Write("input[name=key]", "total")
		w.AwaitCondition("sensor types are offered", sensorTypesOffered)
		w.Press("Map key")
		w.AwaitCondition("a sensor type is required", `document.querySelector("select[name=sensor_type_id]:invalid") !== null`)
		w.selectOption("select[name=sensor_type_id]", "temperature")
		w.Press("Map key")
		w.AwaitText("total is mapped.")
		w.Click(`button[aria-label="Remove the key total"]`)
		w.AwaitText("Stored readings stay.")
		w.confirm()
		w.AwaitText("total is no longer mapped.", "No key is mapped")
		w.Press("Delete decoder")
		w.confirm()
		w.AwaitText("Decoders turn payloads into readings.")
	})
	w.runJob(t, 13, "limit a SIM", func(w *worker) {
		w.Press("SIMs")
		w.Click(fmt.Sprintf(`button[aria-label="Set limit of SIM %s"]`, e2e.ActiveSIM))
		w.Set("dialog input[name=limit]", "10")
		w.submit()
		w.AwaitText("The limit of "+e2e.ActiveSIM+" is set.", "of 10 MB")
	})
	w.runJob(t, 13, "suspend a SIM", func(w *worker) {
		w.Press("SIMs")
		w.Click(fmt.Sprintf(`button[aria-label="Suspend SIM %s"]`, e2e.ActiveSIM))
		w.confirm()
		w.AwaitText("Suspend requested for "+e2e.ActiveSIM+".", "Suspended")
		w.AwaitCondition("the SIM can be resumed", fmt.Sprintf(`document.querySelector('button[aria-label="Resume SIM %s"]') !== null`, e2e.ActiveSIM))
	})
	w.runJob(t, 13, "assign a SIM to a new subscriber", func(w *worker) {
		w.Click(fmt.Sprintf(`button[aria-label="Assign to… a subscriber: SIM %s"]`, e2e.ActiveSIM))
		for name, value := range map[string]string{"forename": "Ada", "surname": "Byron", "address": "1 Quay", "post_code": "AB1", "contact_no": "447700900555"} {
			w.Write("dialog input[name="+name+"]", value)
		}
		w.submit()
		w.AwaitText("Assignment of " + e2e.ActiveSIM + " requested.")
	})
	w.runJob(t, 15, "find a ledger token and its history", func(w *worker) {
		w.Press("Ledgers")
		w.Click(`table[aria-label="Ledgers"] a`)
		w.AwaitText("Generated")
		w.Write("input[name=q]", token[:12]+kb.Enter)
		w.AwaitCondition("one token is found", `document.querySelectorAll('table[aria-label="Tokens"] tbody tr').length === 1`)
		w.Click(`table[aria-label="Tokens"] a`)
		w.AwaitText("Verified in this browser: the head is signed", "generated")
	})
	w.runJob(t, 0, "generate, claim and annotate a ledger token", func(w *worker) {
		w.Press("Ledgers")
		w.Click(`table[aria-label="Ledgers"] a`)
		w.Press("Generate token")
		w.Write("dialog textarea[name=metadata]", `{"serial": `)
		w.submit()
		w.AwaitText("Enter a JSON object")
		w.Set("dialog textarea[name=metadata]", `{"serial": "A-17"}`)
		w.submit()
		w.AwaitText("Copy it now. Ledgers store its SHA-256 only.")
		private := relaytest.Must(chromedp.Run(w.Ctx, chromedp.Evaluate[string](`document.getElementById("private-token").textContent`)))(w.T)
		w.Press("Show the history")
		w.AwaitText("A-17", "Claims used\n0")
		w.Press("Claim")
		w.Write("dialog input[name=private_token]", private)
		w.submit()
		w.AwaitText("The token is claimed.", "Claims used\n1")
		w.Press("Add metadata")
		w.Write("dialog textarea[name=metadata]", `{"place": "yard"}`)
		w.submit()
		w.AwaitText("The metadata is added.", "yard")
	})
	w.runJob(t, 12, "find the reason why a message was not delivered", func(w *worker) {
		e2e.CustomerOf(g).Post("/v2/sms/send", `{"destinations":["447700909001"],"message":"Hello"}`).Mentions(w.T, 200, "id")
		w.Press("Messages")
		w.Write("input[name=number]", "447700909001"+kb.Enter)
		w.AwaitText("Rejected")
		w.Click("button.open")
		w.AwaitText("Not delivered: simulated: numbers that end in 9001 are rejected", "It is sent as a new message and charged.")
		w.Press("Send again as a new message")
		w.confirm()
		w.AwaitText("The message is sent again as a new one.")
	})
	w.T = t
	w.checkClicks(t)
	w.ExpectNoProblems("status of 422", "status of 409", "status of 404")
}
