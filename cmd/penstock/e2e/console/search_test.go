package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// TestConsoleContinuesASearch searches the events for the oldest message. Each request of the
// search has a millisecond, so that the search takes many requests.
func TestConsoleContinuesASearch(t *testing.T) {
	t.Parallel()
	b, sink := e2e.NewBrowser(t), e2e.NewSink(t, nil)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", "ops@example.com"))
	acme := g.WithToken("acme-all-0123456")
	for i := range 30 {
		text := map[bool]string{true: "the oldest", false: strings.Repeat("later ", i)}[i == 0]
		acme.Post("/inbound/sms/json", fmt.Sprintf(`{"id":"m%d","from":"447700900123","to":"449200000001","text":"%s"}`, i, text)).Mentions(t, 200, "id")
	}
	g.AwaitProcessed()

	b.Open(g.URL() + "/console#events")
	b.SignIn()
	b.AwaitText("the account has no relay for 449200000001")
	b.AwaitCondition("requests are changed", `(() => {
		const send = window.fetch;
		window.searches = 0;
		window.fetch = (url, options) => {
			if (url.includes("q=the+oldest")) window.searches++;
			return send(url.replace("search_ms=200", "search_ms=1"), options);
		};
		return true;
	})()`)
	b.Set("[name=q]", "the oldest")
	b.Press("Apply")
	b.AwaitCondition("the message is found", `document.querySelectorAll(".listing button.open").length === 1 && !document.body.innerText.includes("Searching, now at")`)
	b.AwaitCondition("the search took several requests", `window.searches > 2`)
	b.ExpectNoProblems()
}
