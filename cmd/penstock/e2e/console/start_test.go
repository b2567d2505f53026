package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestStartPageLeadsToAChart begins without an account. It sends a reading with the command on the page,
// and ends with a chart of the reading.
func TestStartPageLeadsToAChart(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), "accounts: []")
	w := &worker{Browser: e2e.NewBrowser(t)}
	w.Open(g.URL() + "/")
	w.SignIn()
	w.AwaitText("From an empty gateway to the first reading.")
	w.Press("Add account")
	w.Write("dialog input[name=name]", "acme")
	w.submit()
	w.AwaitText("Programs and network servers send it with each request.")
	w.Press("Add API token")
	w.submit()
	w.AwaitText("Copy it now. It is not shown again.")
	w.Press("Close")
	w.AwaitText("It turns payloads into readings.")
	w.Press("Use an example")
	w.AwaitText("Add it here, or let its first frame create it.", "To send a reading, run this command on this machine.")

	command := `document.querySelector('pre[aria-label="Command that sends a reading"]').textContent`
	commandPart := func(pattern string) string {
		return relaytest.Must(chromedp.Run(w.Ctx, chromedp.Evaluate[string](fmt.Sprintf(`%s.match(%s)[1]`, command, pattern))))(t)
	}
	token, path := commandPart(`/Bearer (.+?)"/`), commandPart("/(\\/webhooks\\/generic\\/.+?)\"/")
	g.WithToken(token).Post(path, `{"temperature":21.5}`).Mentions(t, 200, "21.5")
	w.AwaitText("All steps are done. Received from my-device.")
	w.Press("my-device")
	w.AwaitText("21.5 °C")
	w.AwaitCondition("the reading is in a chart", e2e.ChartDrawn)
	if inventory := g.Admin().Get("/admin/inventory").Body; strings.Contains(inventory, "acme") || strings.Contains(inventory, "temperature") {
		t.Errorf("inventory = %s, want no declared records", inventory)
	}
	w.ExpectNoProblems()
}
