package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestDocumentationSendsRequests opens /docs as somebody does who tries operations there.
// Loading the page and opening an operation send none of them; Send does, and shows the
// answer.
func TestDocumentationSendsRequests(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	g := start(t, &site{name: "embedded"}, fixture(t, "contract.yaml"))
	b.do(chromedp.Navigate(g.url() + "/docs#sendMessage"))
	b.write("#token", "acme-all-0123456")
	b.tries("sendMessage", "POST")
	b.fetched("openapi.json")
	if !b.holds(`document.querySelector("#sendMessage textarea").value.includes('"destinations": [')`) {
		t.Error("the body is not that of the example")
	}
	b.do(chromedp.SetValue(chromedp.CSS("#sendMessage textarea"), `{"destinations":["447700900123"],"message":"From the page"}`))
	b.click("#sendMessage .try > button")
	b.shows("POST /v2/sms/send 200 OK", "x-request-id: ", `"data": "From the page"`)
	b.fetched("openapi.json", "send")

	b.visits("getDecoder")
	b.tries("getDecoder", "GET")
	b.click("#getDecoder .try > button")
	b.shows("Nothing was answered: decoder_id is required.")
	b.write("#getDecoder input[name=decoder_id]", "lpp/../sent")
	b.click("#getDecoder .try > button")
	b.shows("GET /iot/decoders/lpp%2F..%2Fsent 404 Not Found")
	b.do(chromedp.SetValue(chromedp.CSS("#getDecoder input[name=decoder_id]"), "lpp"))
	b.click("#getDecoder .try > button")
	b.shows("GET /iot/decoders/lpp 200 OK")
	if !b.holds(`document.querySelector("#getDecoder .answer").textContent.includes('"name": "Field tester"')`) {
		t.Error("the answer's body is not shown")
	}

	b.do(chromedp.SetValue(chromedp.CSS("#token"), "nobody"))
	b.visits("listGeographicRelays")
	b.tries("listGeographicRelays", "GET")
	b.do(chromedp.SetValue(chromedp.CSS("#listGeographicRelays input[name=per_page]"), "2"))
	b.click("#listGeographicRelays .try > button")
	b.shows("per_page=2 401 Unauthorized", "Unauthenticated.")

	if !b.holds(`localStorage.length + sessionStorage.length === 0 && document.cookie === ""`) {
		t.Error("the page keeps something")
	}
	axe, err := os.ReadFile(filepath.Join("..", "..", "..", ".tools", "node", "node_modules", "axe-core", "axe.min.js"))
	if err == nil { // TestEveryViewIsAccessible says when it is missing
		b.inspect("docs", string(axe))
	}
	b.do(chromedp.Reload())
	if !b.holds(`document.getElementById("token").value === ""`) {
		t.Error("the token is there after the page was loaded again")
	}
	b.quiet("404 (Not Found)", "401 (Unauthorized)")
}

// visits goes to an operation on the page.
func (b *browser) visits(id string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`location.hash = "` + id + `"; undefined`))
}

// tries opens the fields of an operation.
func (b *browser) tries(id, method string) {
	b.t.Helper()
	b.click("#" + id + " details > button")
	b.shows("Send " + method)
}

// fetched holds which addresses the page has sent requests to.
func (b *browser) fetched(names ...string) {
	b.t.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`performance.getEntriesByType("resource").map((e) => e.name.split("/").at(-1)).join(" ")`))
	must(b.t, err)
	if got != strings.Join(names, " ") {
		b.t.Errorf("the page has asked for %q, want %q", got, names)
	}
}
