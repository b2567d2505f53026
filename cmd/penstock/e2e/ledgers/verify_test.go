package ledgers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestVerifyNamesTheChangedEntry changes one byte of a ledger in the store and in an export, and checks
// that ledger verify names the changed entry.
func TestVerifyNamesTheChangedEntry(t *testing.T) {
	t.Parallel()
	database := dbtest.Shared(t).NewDatabase(t)
	callback := e2e.NewLedgerCallback(t)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "ledgers.yaml", "CALLBACK", callback.URL), "PENSTOCK_DATABASE_URL="+database, "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	acme := g.WithToken("acme-all-0123456")
	for range 3 {
		acme.CreateToken("assets", `{"metadata":{"serial":"A-17"}}`)
	}
	verify := func(args ...string) e2e.Result {
		return e2e.RunCommand(g.Env, "", append([]string{"ledger", "verify"}, args...)...)
	}
	export := filepath.Join(g.Dir, "ledger.txt")
	text := acme.Get("/ledgers/assets/export").Body
	relaytest.NoError(t, os.WriteFile(export, []byte(text), 0o600))
	for _, args := range [][]string{nil, {export}} { // the store, and an export
		verify(args...).Mentions(t, e2e.ExitDone, ": 3 entries match their signatures")
	}
	records := recordstest.OpenURL(t, database)
	changed, err := records.DB.Exec(t.Context(), "test", `UPDATE ledger_entry SET entry = convert_to(replace(convert_from(entry, 'UTF8'), 'A-17', 'A-18'), 'UTF8')
WHERE account = 1 AND ledger = 'assets' AND sequence = 1`)
	if err != nil || changed != 1 {
		t.Fatalf("changed entries = %d, error = %v, want 1 without an error", changed, err)
	}
	relaytest.NoError(t, os.WriteFile(export, []byte(strings.Replace(text, "A-17", "A-18", 1)), 0o600))
	for want, args := range map[string][]string{"acme/assets: entry 1 was changed\n": nil, "ledger.txt: entry 0 was changed\n": {export}} {
		verify(args...).Mentions(t, e2e.ExitFailed, want)
	}
	key := regexp.MustCompile(`"key":"([^"]*)"`).FindStringSubmatch(text)[1]
	for want, edited := range map[string]string{
		"the header does not have the signed name": strings.Replace(text, `"name":"Assets"`, `"name":"Debts"`, 1), "the header does not have the signed ledger": strings.Replace(text, `{"ledger":"`, `{"ledger":"0a`, 1),
	} {
		relaytest.NoError(t, os.WriteFile(export, []byte(edited), 0o600))
		verify("--key", key, export).Mentions(t, e2e.ExitFailed, want)
	}
	verify("--key", "x", export).Mentions(t, e2e.ExitFailed, "the ledger's head is not signed by its key")
	verify(filepath.Join(g.Dir, "none")).Mentions(t, e2e.ExitFailed, "none")
}
