package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock/penstock/relay/relaytest"
)

// Browser is a window of Chromium with the console of a gateway in it.
type Browser struct {
	T   *testing.T
	Ctx context.Context

	mu       sync.Mutex
	problems []string
}

// chromium is the browser that the tests of a folder share, as a context of chromedp. Main
// ends it.
var chromium struct {
	sync.Once
	ctx context.Context
	end context.CancelFunc
	err error
}

func startChromium(path string) {
	dir, err := os.MkdirTemp("", "penstock-test-chromium")
	if err != nil {
		chromium.err = err
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(dir),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-gpu", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which root has none of
	}
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	chromium.ctx, _ = chromedp.NewContext(ctx)
	chromium.end = func() { _ = chromedp.Cancel(chromium.ctx); end(); _ = os.RemoveAll(dir) }
	chromium.err = chromedp.Do(chromium.ctx)
}

// NewBrowser opens a window of Chromium with cookies and a storage of its own. A machine
// without Chromium fails the test, or skips it when PENSTOCK_TEST_SKIP_REAL=1 says so.
func NewBrowser(t *testing.T) *Browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
		t.Skip("skipped: no chromium on the path, and PENSTOCK_TEST_SKIP_REAL=1")
	}
	if err != nil {
		t.Fatal("no chromium on the path; make test installs it, PENSTOCK_TEST_SKIP_REAL=1 leaves it out")
	}
	chromium.Do(func() { startChromium(path) })
	relaytest.NoError(t, chromium.err)
	b := &Browser{T: t}
	ctx, leave := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.record))
	t.Cleanup(leave)
	b.Ctx = ctx
	b.Do(chromedp.EmulateViewport(1280, 900))
	_, err = chromedp.Call(ctx, log.Enable, struct{}{})
	relaytest.NoError(t, err)
	return b
}

// record collects complaints of the browser: exceptions, errors on its console,
// violations of the content security policy, answers without success.
func (b *Browser) record(event any) {
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

// Do runs steps in the page and ends the test at the first that fails. A step is repeated if
// the page replaced its element after the element was found.
func (b *Browser) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	for _, step := range steps {
		relaytest.Eventually(b.T, "the element stays in the page", func() (any, bool) {
			err := chromedp.Do(b.Ctx, step)
			if err != nil && strings.Contains(err.Error(), "Could not find node with given id") {
				return err, false
			}
			relaytest.NoError(b.T, err)
			return nil, true
		})
	}
}

// Click clicks the first element that a CSS selector finds.
func (b *Browser) Click(selector string) {
	b.T.Helper()
	b.clickFirst(selector, fmt.Sprintf(`document.querySelectorAll(%q)`, selector), "true")
}

// Write types a text into the first element that a CSS selector finds.
func (b *Browser) Write(selector, text string) {
	b.T.Helper()
	b.Do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Set gives the first element that a CSS selector finds a value.
func (b *Browser) Set(selector, value string) {
	b.T.Helper()
	b.Do(chromedp.SetValue(chromedp.CSS(selector), value))
}

// Open goes to an address.
func (b *Browser) Open(url string) { b.T.Helper(); b.Do(chromedp.Navigate(url)) }

// SignIn writes the admin token into the page of the console that requests it.
func (b *Browser) SignIn() { b.T.Helper(); b.Write("#token", AdminToken+kb.Enter) }

// Press clicks a button, a link or a summary by what it says.
func (b *Browser) Press(text string) {
	b.T.Helper()
	b.clickFirst(text, `document.querySelectorAll("button, a, summary")`, fmt.Sprintf("e.textContent === %q", text))
}

// clickFirst waits for an element that can be clicked and clicks it in the same step of the
// page: a list that is drawn again cannot move it from under the pointer meanwhile. If the
// click changes the part of the address behind "#", clickFirst returns once the console has
// removed the old view, so that what is read afterwards is of the new one.
func (b *Browser) clickFirst(label, elements, condition string) {
	b.T.Helper()
	const click = `(() => {
		const found = [...%s].find((e) => %s && e.checkVisibility() && !e.disabled && !e.hasAttribute("aria-busy"));
		if (!found) return false;
		const address = location.hash;
		found.click();
		if (location.hash === address) return true;
		return new Promise((resolve) => { // the timer is for changes without an event, by replaceState
			addEventListener("hashchange", () => resolve(true), { once: true });
			setTimeout(() => resolve(true), 2000);
		});
	})()`
	relaytest.Eventually(b.T, "there is "+label+" to press", func() (any, bool) {
		pressed, err := chromedp.Run(b.Ctx, chromedp.Evaluate[bool](fmt.Sprintf(click, elements, condition), chromedp.EvalAwaitPromise))
		return err, pressed
	})
}

// Text is what the reader sees.
func (b *Browser) Text() string {
	b.T.Helper()
	seen, err := chromedp.Run(b.Ctx, chromedp.Evaluate[string](`document.body.innerText`))
	relaytest.NoError(b.T, err)
	return seen
}

// AwaitText waits until the page shows all of some words.
func (b *Browser) AwaitText(words ...string) {
	b.T.Helper()
	relaytest.Eventually(b.T, fmt.Sprintf("the page shows %q", words), func() (any, bool) {
		seen := b.Text()
		return seen, !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(seen, w) })
	})
}

// AwaitCondition waits until a condition holds in the page; what names it.
func (b *Browser) AwaitCondition(event, condition string) {
	b.T.Helper()
	relaytest.Eventually(b.T, event, func() (any, bool) {
		if b.Holds(condition) {
			return nil, true
		}
		return b.Text(), false
	})
}

// Holds evaluates a condition in the page, once: for what must not be there. What appears
// later than the page does needs AwaitCondition.
func (b *Browser) Holds(condition string) bool {
	b.T.Helper()
	answer, err := chromedp.Run(b.Ctx, chromedp.Evaluate[bool](condition))
	relaytest.NoError(b.T, err)
	return answer
}

// ExpectNoComplaints fails the test if the browser complained of anything without one of
// the expected words.
func (b *Browser) ExpectNoComplaints(expected ...string) {
	b.T.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	wrong := slices.DeleteFunc(slices.Clone(b.problems), func(p string) bool {
		return slices.ContainsFunc(expected, func(word string) bool { return strings.Contains(p, word) })
	})
	if len(wrong) > 0 {
		b.T.Errorf("the browser complains: %q", wrong)
	}
}

// ChartDrawn is a condition that holds once a chart has a line or a point in one of the
// colours of minimum, mean and maximum; axes have others.
const ChartDrawn = `[...document.querySelectorAll("figure.chart canvas")].some((c) => { const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
	const lines = [[0x17, 0x60, 0x87], [0xb4, 0x53, 0x1a], [0x2e, 0x7d, 0x4f]];
	for (let i = 0, n = 0; i < d.length; i += 4) if (d[i + 3] > 200 && lines.some((l) => Math.abs(d[i] - l[0]) + Math.abs(d[i + 1] - l[1]) + Math.abs(d[i + 2] - l[2]) < 40) && ++n > 5) return true; return false })`
