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

// Browser is a window of Chromium that shows the console of a gateway.
type Browser struct {
	T   *testing.T
	Ctx context.Context

	mu       sync.Mutex
	problems []string
}

// chromium is the browser that the tests of a package share, as a context of chromedp. Main ends
// the browser.
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
		options = append(options, chromedp.NoSandbox) // the sandbox of Chromium does not work for root
	}
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	chromium.ctx, _ = chromedp.NewContext(ctx)
	chromium.end = func() { _ = chromedp.Cancel(chromium.ctx); end(); _ = os.RemoveAll(dir) }
	chromium.err = chromedp.Do(chromium.ctx)
}

// NewBrowser opens a window of Chromium with its own cookies and storage. Without Chromium
// it fails the test, or skips it if PENSTOCK_TEST_SKIP_REAL=1.
func NewBrowser(t *testing.T) *Browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
		t.Skip("skipped: no chromium on the path, and PENSTOCK_TEST_SKIP_REAL=1")
	}
	if err != nil {
		t.Fatal("no chromium on the path; make deps installs it, PENSTOCK_TEST_SKIP_REAL=1 skips the test")
	}
	chromium.Do(func() { startChromium(path) })
	relaytest.NoError(t, chromium.err)
	b := &Browser{T: t}
	ctx, closeWindow := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.record))
	t.Cleanup(closeWindow)
	b.Ctx = ctx
	b.Do(chromedp.EmulateViewport(1280, 900))
	_, err = chromedp.Call(ctx, log.Enable, struct{}{})
	relaytest.NoError(t, err)
	return b
}

// record collects the problems that the browser reports: exceptions, calls of the console
// API, and log entries of level error or warning, such as violations of the content security
// policy and failed requests.
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

// Do runs steps in the page and ends the test at the first failure. A step is repeated if
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

// Click waits for a visible, enabled element that matches a CSS selector and clicks it.
func (b *Browser) Click(selector string) {
	b.T.Helper()
	b.clickFirst(selector, fmt.Sprintf(`document.querySelectorAll(%q)`, selector), "true")
}

// Write types a text into the first element that matches a CSS selector.
func (b *Browser) Write(selector, text string) {
	b.T.Helper()
	b.Do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Set sets the value of the first element that matches a CSS selector.
func (b *Browser) Set(selector, value string) {
	b.T.Helper()
	b.Do(chromedp.SetValue(chromedp.CSS(selector), value))
}

// Open navigates to a URL.
func (b *Browser) Open(url string) { b.T.Helper(); b.Do(chromedp.Navigate(url)) }

// SignIn enters the admin token in the console's sign-in page.
func (b *Browser) SignIn() { b.T.Helper(); b.Write("#token", AdminToken+kb.Enter) }

// Press clicks a button, a link or a summary by its text.
func (b *Browser) Press(text string) {
	b.T.Helper()
	b.clickFirst(text, `document.querySelectorAll("button, a, summary")`, fmt.Sprintf("e.textContent === %q", text))
}

// clickFirst waits until an element can be clicked and clicks the element in the same script, so that
// a redraw of the page cannot move the element in between. If the click changes the fragment of the
// address, clickFirst waits for hashchange: the console has then replaced the old view by the new
// view.
func (b *Browser) clickFirst(label, elements, condition string) {
	b.T.Helper()
	const click = `(() => {
		const found = [...%s].find((e) => %s && e.checkVisibility() && !e.disabled && !e.hasAttribute("aria-busy"));
		if (!found) return false;
		const address = location.hash;
		found.click();
		if (location.hash === address) return true;
		return new Promise((resolve) => { // the timer is for replaceState, which sends no hashchange
			addEventListener("hashchange", () => resolve(true), { once: true });
			setTimeout(() => resolve(true), 2000);
		});
	})()`
	relaytest.Eventually(b.T, label+" can be clicked", func() (any, bool) {
		clicked, err := chromedp.Run(b.Ctx, chromedp.Evaluate[bool](fmt.Sprintf(click, elements, condition), chromedp.EvalAwaitPromise))
		return err, clicked
	})
}

// Text returns the visible text of the page.
func (b *Browser) Text() string {
	b.T.Helper()
	text, err := chromedp.Run(b.Ctx, chromedp.Evaluate[string](`document.body.innerText.replaceAll("\u00a0", " ")`))
	relaytest.NoError(b.T, err)
	return text
}

// AwaitText waits until the page shows all words.
func (b *Browser) AwaitText(words ...string) {
	b.T.Helper()
	relaytest.Eventually(b.T, fmt.Sprintf("the page shows %q", words), func() (any, bool) {
		text := b.Text()
		return text, !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	})
}

// AwaitCondition waits until a JavaScript condition holds in the page. event names the
// condition in failure messages.
func (b *Browser) AwaitCondition(event, condition string) {
	b.T.Helper()
	relaytest.Eventually(b.T, event, func() (any, bool) {
		if b.EvaluateCondition(condition) {
			return nil, true
		}
		return b.Text(), false
	})
}

// EvaluateCondition evaluates a JavaScript condition in the page once, without waiting. AwaitCondition
// waits until a condition holds.
func (b *Browser) EvaluateCondition(condition string) bool {
	b.T.Helper()
	answer, err := chromedp.Run(b.Ctx, chromedp.Evaluate[bool](condition))
	relaytest.NoError(b.T, err)
	return answer
}

// ExpectNoProblems fails the test if the browser reported a problem that contains none of
// the expected words.
func (b *Browser) ExpectNoProblems(expected ...string) {
	b.T.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	unexpected := slices.DeleteFunc(slices.Clone(b.problems), func(p string) bool {
		return slices.ContainsFunc(expected, func(word string) bool { return strings.Contains(p, word) })
	})
	if len(unexpected) > 0 {
		b.T.Errorf("problems in the browser = %q, want none but %q", unexpected, expected)
	}
}

// ChartDrawn is a JavaScript condition that holds once a chart has a line or a point in the colour of
// the minimum, the mean or the maximum. The axes have other colours.
const ChartDrawn = `[...document.querySelectorAll("figure.chart canvas")].some((c) => { const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
	const lines = [[0x17, 0x60, 0x87], [0xb4, 0x53, 0x1a], [0x2e, 0x7d, 0x4f]];
	for (let i = 0, n = 0; i < d.length; i += 4) if (d[i + 3] > 200 && lines.some((l) => Math.abs(d[i] - l[0]) + Math.abs(d[i + 1] - l[1]) + Math.abs(d[i + 2] - l[2]) < 40) && ++n > 5) return true; return false })`
