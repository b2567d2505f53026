package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// browser is a Chromium with the console of a gateway in it.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// newBrowser starts Chromium. A machine without it fails the test, or skips it
// when PENSTOCK_TEST_SKIP_REAL=1 says so.
func newBrowser(t *testing.T) *browser { t.Helper(); return browserFor(t, 2*patience) }

// browserFor starts one that ends after some time.
func browserFor(t *testing.T, life time.Duration) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
		t.Skip("skipped: no chromium on the path, and PENSTOCK_TEST_SKIP_REAL=1")
	}
	if err != nil {
		t.Fatal("no chromium on the path; make test installs it, PENSTOCK_TEST_SKIP_REAL=1 leaves it out")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which root has none of
	}
	ctx, cancel := context.WithTimeout(context.Background(), life)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, leave := chromedp.NewContext(ctx)
	t.Cleanup(leave)
	b := &browser{t: t, ctx: ctx}
	b.do(chromedp.EmulateViewport(1280, 900))
	must(t, chromedp.Listen(ctx, b.heard))
	_, err = chromedp.Call(ctx, log.Enable, struct{}{})
	must(t, err)
	return b
}

// heard collects what a browser complains of: exceptions, errors on its console,
// violations of the policy, answers that are no success.
func (b *browser) heard(event any) {
	problem := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			problem = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		problem = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			problem += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		problem = "console." + string(e.Type)
	}
	if problem != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.problems = append(b.problems, problem)
	}
}

// complaints are those so far, without those that hold one of some words.
func (b *browser) complaints(expected ...string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.problems), func(p string) bool {
		return slices.ContainsFunc(expected, func(word string) bool { return strings.Contains(p, word) })
	})
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	must(b.t, chromedp.Do(b.ctx, steps...))
}

func (b *browser) click(selector string) { b.t.Helper(); b.do(chromedp.Click(chromedp.CSS(selector))) }
func (b *browser) write(selector, text string) {
	b.t.Helper()
	b.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// press clicks a button, a link or a summary by what it says.
func (b *browser) press(text string) {
	b.t.Helper()
	const find = `(() => { const it = [...document.querySelectorAll("button, a, summary")].find((e) => e.textContent === %q && e.checkVisibility() && !e.disabled && !e.hasAttribute("aria-busy")); if (it) it.click(); return !!it })()`
	eventually(b.t, "there is "+text+" to press", func() (any, bool) {
		pressed, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](fmt.Sprintf(find, text)))
		return err, pressed
	})
}

// choose applies a filter of a list.
func (b *browser) choose(filter, word string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS("select[name="+filter+"]"), word))
	b.press("Show")
}

// text is what the reader sees.
func (b *browser) text() string {
	b.t.Helper()
	seen, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))
	must(b.t, err)
	return seen
}

// shows waits until the page shows all of some words.
func (b *browser) shows(words ...string) {
	b.t.Helper()
	eventually(b.t, fmt.Sprintf("the page shows %q", words), func() (any, bool) {
		seen := b.text()
		return seen, !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(seen, w) })
	})
}

// holds evaluates a condition in the page.
func (b *browser) holds(condition string) bool {
	b.t.Helper()
	answer, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](condition))
	must(b.t, err)
	return answer
}

// markup is a text that would do harm as markup; the endpoint sends it back.
const markup = `<img src=x onerror=document.title='harm'><b>Gate</b>`

// TestConsoleShowsExplainsAndReplays drives the console as an operator does.
func TestConsoleShowsExplainsAndReplays(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	var mended atomic.Bool
	k := newSink(t, func(w http.ResponseWriter, h hit, _ int) {
		if strings.HasPrefix(h.path, "/get/") && !mended.Load() {
			http.Error(w, "no: "+h.query.Get("m"), http.StatusNotFound)
		}
	})
	g := start(t, &site{name: "embedded"}, fixture(t, "relays.yaml", "SINK", k.url, "MAILBOX", "ops@example.com", "name: acme", "name: acme\n    credit: 10"))
	for _, m := range [][2]string{{"447800055501", markup}, {"447800020001", "This one arrives"}, {"4490", "Nobody takes " + markup}} {
		g.as("acme-all-0123456").post("/inbound/sms/json", fmt.Sprintf(`{"id":"to-%s","from":"447700900123","to":"%s","text":"%s"}`, m[0], m[0], m[1])).mentions(t, 200, "id")
	}
	dead := g.reach("g-get", "dead").ID
	g.reach("v-post", "delivered")
	g.settled()

	b.do(chromedp.Navigate(g.url() + "/console"))
	b.signIn()
	b.openDead(dead)
	mended.Store(true)
	b.replay(k, dead)
	b.events()
	b.explainAndTry()
	b.rulesAndAlarms(g)
	b.accounts(g)
	if !b.holds(`document.title !== "harm" && document.images.length === 0`) {
		t.Error("the message became markup")
	}
	if wrong := b.complaints("status of 401", "status of 422"); len(wrong) > 0 {
		t.Errorf("the browser complains: %q", wrong)
	}
}

// signIn is refused with a wrong token, and sees the back ends with the right one.
func (b *browser) signIn() {
	b.write("#token", "wrong"+kb.Enter)
	b.shows("The gateway refused the token.")
	b.write("#token", adminToken+kb.Enter)
	b.shows("Back ends ready", "Simulated: carrier simulator, lookup, mail, operator.", "journal sms", "sink", "Dead deliveries", "Open breakers", "Delivery queue")
	if !b.holds(`sessionStorage.length === 1 && localStorage.length === 0 && document.cookie === ""`) {
		b.t.Error("the token is kept elsewhere than in the tab")
	}
}

// openDead finds the dead delivery, sees its attempt, also after a reload, and its
// whole way.
func (b *browser) openDead(id string) {
	b.press("Deliveries")
	b.choose("state", "dead")
	b.shows("g-get")
	if strings.Contains(b.text(), "v-post") {
		b.t.Error("what arrived is among the dead")
	}
	b.click("#open-" + id)
	b.shows("Attempts", "404", "answered 404 Not Found", "no: "+markup)
	b.do(chromedp.Reload())
	b.shows("Attempts", "no: "+markup)
	b.press("The whole way of its message")
	b.shows("The way of it", "received", "routed", "attempt 1: ", `"text":"`+markup)
	b.do(chromedp.NavigateBack())
	b.shows("Replay this delivery")
}

// replay sends it again, now that the endpoint works, and sees it arrive; what
// has arrived is not sent a second time without a word.
func (b *browser) replay(k *sink, id string) {
	b.press("Replay all dead that match")
	b.shows("Send 1 delivery again?", "everything dead that matches the filters")
	b.press("Cancel")
	b.press("Replay this delivery")
	b.shows("Send 1 delivery again?")
	b.press("Cancel")
	b.press("Replay this delivery")
	b.shows("Send 1 delivery again?")
	b.press("Replay 1")
	b.shows("1 delivery is back at work.", "No delivery matches.")
	if again := k.await(b.t, "/get/447700900123/in", 2); again.query.Get("m") != markup {
		b.t.Errorf("the endpoint got %q", again.query.Get("m"))
	}
	b.press("Clear")
	row := fmt.Sprintf(`document.getElementById("open-%s")?.closest("tr").innerText.includes("delivered") ?? false`, id)
	eventually(b.t, "the delivery is shown as delivered", func() (any, bool) { b.press("Refresh"); return b.text(), b.holds(row) })
	b.click("#all")
	b.press("Replay selected (2)")
	b.shows("Send 2 deliveries again?", "2 of them have arrived already")
	b.press("Cancel")
	if n := len(k.at("/get/447700900123/in")); n != 2 {
		b.t.Errorf("the endpoint was asked %d times", n)
	}
}

// events shows the unrouted event, reports a mistake in a filter, and replays.
func (b *browser) events() {
	b.press("Events")
	b.shows("Select all on this page")
	b.write("input[name=account]", "x"+kb.Enter)
	b.shows("The given data was invalid.", "account: want an account's name or id")
	b.press("Clear")
	b.choose("state", "unrouted")
	b.shows("no relay of account 1 for 4490")
	b.click("button.open")
	b.shows("Nobody takes " + markup)
	b.click("#all")
	b.press("Replay selected (1)")
	b.shows("Replay 1 event?")
	b.press("Cancel")
	b.press("Replay all that match")
	b.shows("Replay 1 event?")
	b.press("Replay 1")
	b.shows("1 event is processed again.")
}

// explainAndTry asks which relay takes a number, and what a payload says.
func (b *browser) explainAndTry() {
	b.press("Explain")
	b.write("input[name=to]", "447800055501"+kb.Enter)
	b.shows("Taken by the geo relay g-get of account acme (1): it has the prefix 4478000.", "GET request", "/get/447700900123/in?m=Test")
	b.do(chromedp.Reload())
	b.shows("Taken by the geo relay g-get of account acme (1)")
	b.press("Try")
	b.do(chromedp.SetValue(chromedp.CSS("select[name=codec]"), "cayenne_lpp"))
	b.write("textarea[name=payload]", "01 67 01 10")
	b.click("#go")
	b.shows("temperature_1", "27.2")
}

// warmed has a device raise an alarm of a rule. Names of rules are the account's, so
// they may hold markup as well.
func (g *gateway) warmed() {
	g.t.Helper()
	g.admin().put("/admin/inventory", `{"sensor_types":[{"id":"temperature","name":"Temperature","metric_units":"°C"}],"accounts":[{"name":"acme",
		"locations":[{"id":"arrivals","name":"Arrivals","imported":true}],
		"decoders":[{"id":"sent","name":"Sent","type":"other","sensors":[{"sensor_type_id":"temperature","key":"temperature"}]}],
		"rules":[{"id":"warm","name":"`+strings.ReplaceAll(markup, `"`, `'`)+`","on":"reading","when":"values.temperature > 30",
			"actions":[{"action":"email","parameters":["ops@example.com"]}]}]}]}`).mentions(g.t, 200, "acme")
	acme := g.as("acme-all-0123456")
	acme.post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":31}`).mentions(g.t, 200, "31")
	g.settled()
}

// rulesAndAlarms finds the alarm that a rule raised, acknowledges it with a note, and
// tries the rule.
func (b *browser) rulesAndAlarms(g *gateway) {
	g.warmed()
	b.press("Rules")
	b.shows("values.temperature > 30", "enabled", "<b>Gate</b>", "acme (1)")
	b.click("#open-1-warm")
	b.shows("ops@example.com", "Its alarms", "never")
	b.press("Its alarms")
	b.shows("raised", "shed", "temperature 31 °C")
	b.click("button.open")
	b.shows("Readings of the uplink that raised it", "31 °C")
	b.write("input[name=note]", "The window is open")
	b.press("Acknowledge")
	b.shows("1 alarm is acknowledged.", "operator", "The window is open", "Acknowledge again")
	var list struct {
		Data []struct {
			Note string
			By   string `json:"acknowledged_by"`
		}
	}
	g.as("acme-all-0123456").get("/iot/alarms").into(b.t, &list)
	if len(list.Data) != 1 || list.Data[0].Note != "The window is open" || list.Data[0].By != "operator" {
		b.t.Errorf("over REST: %+v", list.Data)
	}
	b.press("Try its rule")
	b.shows("What would happen", "raised", "when holds", "Mail to ops@example.com")
	b.do(chromedp.SetValue(chromedp.CSS("textarea[name=rule]"), "{"))
	b.click("#go")
	b.shows("A rule is a JSON object")
}

// accounts shows what one has sent and what was declared, and ends.
func (b *browser) accounts(g *gateway) {
	g.as("").with("X-Auth-Token", "acme-all-0123456").post("/v2/sms/send", `{"destinations":["447700909001"],"message":"Hello"}`).mentions(b.t, 200, "id")
	b.press("Messages")
	b.shows("Give an account's name or id")
	b.write("input[name=account]", "1"+kb.Enter)
	b.shows("447700909001", "Hello", "9 credits")
	b.click("button.open")
	b.shows("the only one", "GSM alphabet (7 bits)", "acme (1)")
	b.press("Credit")
	b.shows("Credit", "What changed it")
	b.press("What changed it")
	b.shows("message sent", "first credit, from the inventory", "No. 2")
	b.press("Relays")
	b.shows("4478000", "g-get", "/get/%o/in?m=%m")
	b.press("Inventory")
	b.shows("acme (1)", "globex (2)")
	b.click("details:first-of-type summary")
	b.shows("g-get", "masked:")
	b.press("Sign out")
	b.shows("Admin token")
	if !b.holds(`sessionStorage.length === 0`) {
		b.t.Error("the token is kept after signing out")
	}
}
