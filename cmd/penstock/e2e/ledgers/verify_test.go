package ledgers

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/app"
	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sqlstore/recordstest"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

// TestVerifyNamesWhatWasChanged changes one byte of what the store and an export
// hold of a ledger.
func TestVerifyNamesWhatWasChanged(t *testing.T) {
	t.Parallel()
	database := sqltest.StartPostgres(t).NewDatabase(t)
	told := e2e.NewLedgerCallback(t)
	g := e2e.Start(t, &e2e.Site{Name: "embedded"}, e2e.Fixture(t, "ledgers.yaml", "CALLBACK", told.URL), "PENSTOCK_DATABASE_URL="+database, "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	acme := g.As("acme-all-0123456")
	var job string
	for range 3 {
		acme.Post("/ledgers/assets/tokens", `{"metadata":{"serial":"A-17"}}`).Decode(t, &job)
		g.AwaitLedgerJob(acme, job, nil)
	}
	verify := func(args ...string) (string, int) {
		var out bytes.Buffer
		code := app.Run(append([]string{"ledger", "verify"}, args...), app.Environment{Context: t.Context(), Variables: g.Env, Stdin: nil, Stdout: &out, Stderr: &out, Version: "test"})
		return out.String(), code
	}
	export := filepath.Join(g.Dir, "ledger.txt")
	text := acme.Get("/ledgers/assets/export").Body
	relaytest.NoError(t, os.WriteFile(export, []byte(text), 0o600))
	for name, args := range map[string][]string{"the store": nil, "an export": {export}} {
		if out, code := verify(args...); code != e2e.ExitDone || !strings.Contains(out, ": 3 entries are as they were signed") {
			t.Errorf("%s: exit code %d\n%s", name, code, out)
		}
	}
	records := recordstest.OpenURL(t, database)
	changed, err := records.DB.Exec(t.Context(), "test", `UPDATE ledger_entry SET entry = convert_to(replace(convert_from(entry, 'UTF8'), 'A-17', 'A-18'), 'UTF8')
WHERE account = 1 AND ledger = 'assets' AND sequence = 1`)
	if err != nil || changed != 1 {
		t.Fatal(changed, err)
	}
	relaytest.NoError(t, os.WriteFile(export, []byte(strings.Replace(text, "A-17", "A-18", 1)), 0o600))
	for want, args := range map[string][]string{"acme/assets: entry 1 was changed\n": nil, "ledger.txt: entry 0 was changed\n": {export}} {
		if out, code := verify(args...); code != e2e.ExitFailed || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want 1 and %q\n%s", code, want, out)
		}
	}
	if out, code := verify("--key", "x", export); code != e2e.ExitFailed || !strings.Contains(out, "has no head that its key has signed") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if out, code := verify(filepath.Join(g.Dir, "none")); code != e2e.ExitFailed || !strings.Contains(out, "none") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
