package documents

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/carrier"
	"github.com/penstock/penstock/ingest/cdr"
	"github.com/penstock/penstock/ingest/console"
	"github.com/penstock/penstock/ingest/iotapi"
	"github.com/penstock/penstock/ingest/ledgerapi"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/restv2"
	"github.com/penstock/penstock/ingest/restv3"
	"github.com/penstock/penstock/ingest/soap"
	"github.com/penstock/penstock/ingest/uplink"
	"github.com/penstock/penstock/relay/relaytest"
)

// apiPages returns the pages of docs/api with commands that the tests run. A page has headings for the
// operations of its contracts.
func apiPages() map[string][][]byte {
	return map[string][][]byte{
		"iot": {iotapi.OpenAPI()}, "webhooks": {uplink.OpenAPI()}, "carriers": {carrier.OpenAPI()},
		"ledger": {ledgerapi.OpenAPI()}, "soap": {soap.OpenAPI()},
		"admin": {admin.OpenAPI(), openapi.OpenAPI(), console.OpenAPI()}, "messaging": {restv2.OpenAPI(), cdr.OpenAPI()}, "sims": {restv3.OpenAPI(), cdr.OpenAPI()},
	}
}

// isOnPage reports whether a page must show a path of its contracts. Relays are on the page relays, call
// records are on the page messaging, and SIM records are on the page sims.
func isOnPage(name, path string) bool {
	switch name {
	case "messaging":
		return !strings.HasPrefix(path, "/v2/sms-relay/") && path != "/inbound/cdr/sim"
	case "sims":
		return path != "/inbound/cdr/sip"
	}
	return true
}

func TestAPIPagesShowEveryOperation(t *testing.T) {
	t.Parallel()
	for name, contracts := range apiPages() {
		t.Run(name, func(t *testing.T) {
			var want, got []string
			for _, source := range contracts {
				doc, err := openapi.Load(source)
				relaytest.NoError(t, err)
				for path, item := range doc.Paths.Map() {
					if !isOnPage(name, path) {
						continue
					}
					for method := range item.Operations() {
						want = append(want, method+" "+path)
					}
				}
			}
			for _, heading := range regexp.MustCompile("(?m)^## `.*`$").FindAllString(e2e.APIPage(t, name), -1) {
				for _, operation := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(heading, -1) {
					got = append(got, operation[1])
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("headings of docs/api/%s.md = %q\nwant the operations of the contract: %q", name, got, want)
			}
		})
	}
}

// TestAPIPagesKeepTheirPromises runs the commands of each page on a gateway without configuration, and
// compares the output with the page.
func TestAPIPagesKeepTheirPromises(t *testing.T) {
	t.Parallel()
	for name := range apiPages() {
		t.Run(name, func(t *testing.T) {
			blocks := readConsole(t, e2e.APIPage(t, name))
			if len(blocks) < 2 {
				t.Fatalf("docs/api/%s.md has %d ```console blocks, want at least 2", name, len(blocks))
			}
			r := newReader(t)
			r.start(nil)
			r.runBlocks(blocks)
		})
	}
}

// sendMessage selects the section of an operation on the page of the API reference.
const sendMessage = `section[id$="POST/v2/sms/send"]`

// TestReferenceHasNavigationSearchAndSamples uses the navigation, the code samples and the
// search of the API reference.
func TestReferenceHasNavigationSearchAndSamples(t *testing.T) {
	t.Parallel()
	b := e2e.NewBrowser(t)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	b.Open(g.URL() + "/docs")
	b.AwaitText("Authentication", "Errors", "Pagination", "Webhooks", "Messaging", "SIMs", "Devices", "Ledgers", "Administration")

	press(b, "aside button, aside a", "Messages")
	press(b, "aside a", "Send a message")
	b.AwaitCondition("the operation is shown", `document.querySelector('`+sendMessage+`')?.getBoundingClientRect().top < innerHeight`)
	for option, want := range map[string]string{
		"Curl": "--header 'Authorization: Bearer ", "NewRequest": "http.NewRequest(", "Requests": "requests.post(",
		"TypeScript": "const response = await fetch(gateway",
	} {
		b.Click(sendMessage + ` button[aria-label^="Change code sample language"]`)
		press(b, `[role="option"]`, option)
		b.AwaitCondition("the sample in "+option, fmt.Sprintf("document.querySelector('%s').textContent.includes(%q)", sendMessage, want))
	}

	press(b, "aside button", "Search")
	b.Write(`input[role="combobox"]`, "replay events")
	b.AwaitCondition("the first result", `document.querySelector('[role="listbox"] a')?.textContent.includes("Replay events")`)

	b.Do(chromedp.Reload())
	b.AwaitText("Authentication")
	b.Inspect("docs", e2e.Axe(t), "Authentication")
	checkSameOrigin(b)
}

// TestReferenceSendsRequests sends a request from the page of the API reference.
func TestReferenceSendsRequests(t *testing.T) {
	t.Parallel()
	const token = "acme-all-0123456"
	b := e2e.NewBrowser(t)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	b.Open(g.URL() + "/docs#tag/messages/POST/v2/sms/send")
	b.Click(sendMessage + " .show-api-client-button")
	press(b, `[role="dialog"] button`, "Authentication")
	b.Write(`[role="dialog"] input[placeholder="Token"]`, token)
	press(b, `[role="dialog"] button`, "Send post request")
	b.AwaitText("200 OK", `"destination"`)
	if b.EvaluateCondition(`JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]).includes("` + token + `")`) {
		t.Error("the page stores the token, want it only in memory")
	}
	checkSameOrigin(b)
}

// press clicks the first visible element of a selector that contains a text.
func press(b *e2e.Browser, selector, text string) {
	b.T.Helper()
	b.AwaitCondition(text+" is clicked", fmt.Sprintf(`(() => {
		const found = [...document.querySelectorAll(%q)].find((e) => e.textContent.includes(%q) && e.checkVisibility());
		found?.click();
		return found !== undefined;
	})()`, selector, text))
}

// checkSameOrigin checks that the page loaded no resources from other hosts, and that the browser reported
// no problem, such as a violation of the content security policy.
func checkSameOrigin(b *e2e.Browser) {
	b.T.Helper()
	names, err := chromedp.Run(b.Ctx, chromedp.Evaluate[string](
		`performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith(location.origin + "/") && !n.startsWith("data:")).join(" ")`))
	relaytest.NoError(b.T, err)
	relaytest.Equal(b.T, "the resources of other hosts", names, "")
	b.ExpectNoProblems("console.info") // the page logs the name of its renderer
}
