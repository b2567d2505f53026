package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/penstock/penstock/relay/relaytest"
)

var screenshots = flag.String("screenshots", "", "a folder to which TestEveryViewIsAccessible writes a picture of every view")

// shape is a size and a colour scheme of the screen.
type shape struct {
	name, scheme string
	width        int64
}

// shapes returns a large light screen and a small dark screen; for screenshots and in a soak, both
// sizes in both colour schemes.
func shapes() []shape {
	list := []shape{{"desktop-light", "light", 1280}, {"phone-dark", "dark", 390}}
	if Soak() || *screenshots != "" {
		list = append(list, shape{"phone-light", "light", 390}, shape{"desktop-dark", "dark", 1280})
	}
	return list
}

// Axe returns the script of the accessibility checks that Inspect runs. If the script is not
// installed, Axe fails the test, or skips the test if PENSTOCK_TEST_SKIP_REAL=1.
func Axe(t *testing.T) string {
	t.Helper()
	axe, err := os.ReadFile(filepath.Join(Root(t), ".tools", "node", "node_modules", "axe-core", "axe.min.js"))
	if err != nil && os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
		t.Skip("skipped: no axe-core, and PENSTOCK_TEST_SKIP_REAL=1")
	}
	if err != nil {
		t.Fatalf("no axe-core: %v; make deps installs it, PENSTOCK_TEST_SKIP_REAL=1 skips the test", err)
	}
	return string(axe)
}

// Inspect checks the width of the current view and of its tables, its texts and the accessibility, in every
// shape, and writes screenshots if -screenshots is set. name names the view in messages and files. Inspect loads
// the view again if the width changes, and waits for wantTexts, of which a phone may hide some.
func (b *Browser) Inspect(name, axe string, wantTexts ...string) {
	b.T.Helper()
	for _, s := range shapes() {
		if !b.EvaluateCondition(fmt.Sprintf("innerWidth === %d", s.width)) {
			b.Do(chromedp.EmulateViewport(s.width, 900), chromedp.Reload())
			for _, text := range wantTexts {
				b.AwaitCondition(name+" has loaded in "+s.name, fmt.Sprintf(`document.body.textContent.replaceAll("\u00a0", " ").includes(%q)`, strings.ReplaceAll(text, "\n", "")))
			}
		}
		if !b.EvaluateCondition(`"axe" in window`) {
			b.Do(chromedp.Evaluate[chromedp.Void](axe + "; undefined"))
		}
		b.emulate(s.scheme)
		b.AwaitCondition(name+" has tables that fit into their frames in "+s.name, `[...document.querySelectorAll(".scroll:has(> table)")].every((frame) => frame.scrollWidth <= frame.clientWidth)`)
		b.AwaitCondition(name+" shows whole texts in "+s.name, `[...document.querySelectorAll("header button, .listing td .long")].every((e) => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight + 1)`)
		b.AwaitCondition(name+" fits into "+s.name, fmt.Sprintf("innerWidth === %d && document.documentElement.scrollWidth <= innerWidth", s.width))
		relaytest.Eventually(b.T, "axe finds no serious problem in "+name+", "+s.name, func() (any, bool) {
			violations, err := chromedp.Run(b.Ctx, chromedp.Evaluate[string](`axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.filter((v) => v.impact === "serious" || v.impact === "critical")
				.map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 4).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join(" | ")).join("\n"))`, chromedp.EvalAwaitPromise))
			relaytest.NoError(b.T, err)
			return violations, violations == ""
		})
		if *screenshots != "" {
			b.screenshot(filepath.Join(*screenshots, name+"-"+s.name+".png"))
		}
	}
}

// emulate sets the colour scheme that the browser reports as preferred: light or dark.
func (b *Browser) emulate(scheme string) {
	b.T.Helper()
	feature := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme}
	_, err := chromedp.Call(b.Ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{feature}})
	relaytest.NoError(b.T, err)
}

// screenshot writes a PNG of the whole page, including the parts outside the viewport.
func (b *Browser) screenshot(path string) {
	b.T.Helper()
	png, err := chromedp.Run(b.Ctx, chromedp.FullScreenshot(100))
	relaytest.NoError(b.T, err)
	relaytest.NoError(b.T, os.WriteFile(path, png, 0o644))
}
