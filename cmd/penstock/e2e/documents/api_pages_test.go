package documents

import (
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

// apiPages are the pages of docs/api that are run, and the contracts whose
// operations each has a heading for.
func apiPages() map[string][][]byte {
	return map[string][][]byte{
		"iot": {iotapi.OpenAPI()}, "webhooks": {uplink.OpenAPI()}, "carriers": {carrier.OpenAPI()},
		"ledger": {ledgerapi.OpenAPI()}, "soap": {soap.OpenAPI()},
		"admin": {admin.OpenAPI(), openapi.OpenAPI(), console.OpenAPI()}, "messaging": {restv2.OpenAPI(), cdr.OpenAPI()}, "sims": {restv3.OpenAPI(), cdr.OpenAPI()},
	}
}

// ofPage reports whether a page of ours shows a path of its contract: relays have
// a page with commands for one's own relays, relays.md, and records of calls and
// of SIMs stand with what becomes of them.
func ofPage(name, path string) bool {
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
					if !ofPage(name, path) {
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
				t.Errorf("docs/api/%s.md shows\n%q\nand the contract has\n%q", name, got, want)
			}
		})
	}
}

// TestAPIPagesKeepTheirPromises runs each page's commands on a gateway with
// nothing configured, as the README's are run.
func TestAPIPagesKeepTheirPromises(t *testing.T) {
	t.Parallel()
	for name := range apiPages() {
		t.Run(name, func(t *testing.T) {
			blocks := readConsole(t, e2e.APIPage(t, name))
			if len(blocks) < 2 {
				t.Fatalf("docs/api/%s.md has no ```console blocks to run", name)
			}
			r := newReader(t)
			r.start(nil)
			r.followAll(blocks)
		})
	}
}

// TestDocumentationSendsRequests opens /docs as somebody does who tries operations there.
// Loading the page and opening an operation send none of them; Send does, and shows the
// answer.
func TestDocumentationSendsRequests(t *testing.T) {
	t.Parallel()
	b := e2e.NewBrowser(t)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	b.Open(g.URL() + "/docs#sendMessage")
	b.Write("#token", "acme-all-0123456")
	tries(b, "sendMessage", "POST")
	fetched(b, "openapi.json")
	b.AwaitCondition("the body is that of the example", `document.querySelector("#sendMessage textarea").value.includes('"destinations": [')`)
	b.Set("#sendMessage textarea", `{"destinations":["447700900123"],"message":"From the page"}`)
	b.Click("#sendMessage .try > button")
	b.AwaitText("POST /v2/sms/send 200 OK", "x-request-id: ", `"data": "From the page"`)
	fetched(b, "openapi.json", "send")

	visits(b, "getDecoder")
	tries(b, "getDecoder", "GET")
	b.Click("#getDecoder .try > button")
	b.AwaitText("Nothing was answered: decoder_id is required.")
	b.Write("#getDecoder input[name=decoder_id]", "lpp/../sent")
	b.Click("#getDecoder .try > button")
	b.AwaitText("GET /iot/decoders/lpp%2F..%2Fsent 404 Not Found")
	b.Set("#getDecoder input[name=decoder_id]", "lpp")
	b.Click("#getDecoder .try > button")
	b.AwaitText("GET /iot/decoders/lpp 200 OK")
	b.AwaitCondition("the answer's body is shown", `document.querySelector("#getDecoder .answer").textContent.includes('"name": "Field tester"')`)

	b.Set("#token", "nobody")
	visits(b, "listGeographicRelays")
	tries(b, "listGeographicRelays", "GET")
	b.Set("#listGeographicRelays input[name=per_page]", "2")
	b.Click("#listGeographicRelays .try > button")
	b.AwaitText("per_page=2 401 Unauthorized", "Unauthenticated.")

	if !b.Holds(`localStorage.length + sessionStorage.length === 0 && document.cookie === ""`) {
		t.Error("the page keeps something")
	}
	b.Inspect("docs", e2e.Axe(t))
	b.Do(chromedp.Reload())
	b.AwaitCondition("the token is gone after the page was loaded again", `document.getElementById("token")?.value === ""`)
	b.ExpectNoComplaints("404 (Not Found)", "401 (Unauthorized)")
}

// visits goes to an operation on the page.
func visits(b *e2e.Browser, id string) {
	b.T.Helper()
	b.Do(chromedp.Evaluate[chromedp.Void](`location.hash = "` + id + `"; undefined`))
}

// tries opens the fields of an operation.
func tries(b *e2e.Browser, id, method string) {
	b.T.Helper()
	b.Click("#" + id + " details > button")
	b.AwaitText("Send " + method)
}

// fetched holds which addresses the page has sent requests to.
func fetched(b *e2e.Browser, names ...string) {
	b.T.Helper()
	got, err := chromedp.Run(b.Ctx, chromedp.Evaluate[string](`performance.getEntriesByType("resource").map((e) => e.name.split("/").at(-1)).join(" ")`))
	relaytest.NoError(b.T, err)
	if got != strings.Join(names, " ") {
		b.T.Errorf("the page has asked for %q, want %q", got, names)
	}
}
