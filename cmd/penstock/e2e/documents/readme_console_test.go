package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestReadmeLeadsToAChart runs the beginning of the README without configuration and with an empty data
// directory, and opens the chart of the reading in the browser.
func TestReadmeLeadsToAChart(t *testing.T) {
	t.Parallel()
	document, _, found := strings.Cut(e2e.RepositoryFile(t, "README.md"), "\n### Relay an SMS\n")
	if !found || !strings.Contains(document, "<http://127.0.0.1:8080/console>") || !strings.Contains(document, "choose Devices, then\nboiler-1.") {
		t.Fatal("README.md does not describe the console after the first frame")
	}
	b, r := e2e.NewBrowser(t), newReader(t)
	r.runBlocks(readConsole(t, document))
	token := relaytest.Must(os.ReadFile(filepath.Join(r.dir, "data", "admin-token")))(t)
	b.Open(r.replaceAddress("http://127.0.0.1:8080/console"))
	b.Write("#token", strings.TrimSpace(string(token))+kb.Enter)
	b.AwaitText("Back ends ready")
	b.Press("Devices")
	b.AwaitText("boiler-1", "Cold store 1", "demo")
	b.Press("boiler-1")
	b.AwaitText("64.5 °C", "minimum to maximum")
	b.AwaitCondition("the chart is drawn", e2e.ChartDrawn)
	b.ExpectNoProblems()
}
