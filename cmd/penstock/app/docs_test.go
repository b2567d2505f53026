package app

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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

func apiPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "api", name+".md"))
	must(t, err)
	return string(text)
}

func TestAPIPagesShowEveryOperation(t *testing.T) {
	t.Parallel()
	for name, contracts := range apiPages() {
		t.Run(name, func(t *testing.T) {
			var want, got []string
			for _, source := range contracts {
				doc, err := openapi.Load(source)
				must(t, err)
				for path, item := range doc.Paths.Map() {
					if !ofPage(name, path) {
						continue
					}
					for method := range item.Operations() {
						want = append(want, method+" "+path)
					}
				}
			}
			for _, heading := range regexp.MustCompile("(?m)^## `.*`$").FindAllString(apiPage(t, name), -1) {
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
			blocks := readConsole(t, apiPage(t, name))
			if len(blocks) < 2 {
				t.Fatalf("docs/api/%s.md has no ```console blocks to run", name)
			}
			r := newReader(t)
			r.start(nil)
			for _, b := range blocks {
				for _, st := range b.steps {
					r.follow(st)
				}
			}
		})
	}
}
