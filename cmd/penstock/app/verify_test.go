package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/sqlstore/recordstest"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

// TestVerifyNamesWhatWasChanged changes one byte of what the store and an export
// hold of a ledger.
func TestVerifyNamesWhatWasChanged(t *testing.T) {
	t.Parallel()
	database := sqltest.StartPostgres(t).NewDatabase(t)
	told := newCallbacks(t)
	g := start(t, &site{name: "embedded"}, fixture(t, "ledgers.yaml", "CALLBACK", told.url), "PENSTOCK_DATABASE_URL="+database, "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	acme := g.as("acme-all-0123456")
	var job string
	for range 3 {
		acme.post("/ledgers/assets/tokens", `{"metadata":{"serial":"A-17"}}`).into(t, &job)
		g.jobDone(acme, job, nil)
	}
	verify := func(args ...string) (string, int) {
		var out bytes.Buffer
		code := Run(append([]string{"ledger", "verify"}, args...), Environment{t.Context(), g.env, nil, &out, &out, "test"})
		return out.String(), code
	}
	export := filepath.Join(g.dir, "ledger.txt")
	text := acme.get("/ledgers/assets/export").body
	must(t, os.WriteFile(export, []byte(text), 0o600))
	for name, args := range map[string][]string{"the store": nil, "an export": {export}} {
		if out, code := verify(args...); code != exitDone || !strings.Contains(out, ": 3 entries are as they were signed") {
			t.Errorf("%s: exit code %d\n%s", name, code, out)
		}
	}
	records := recordstest.OpenURL(t, database)
	changed, err := records.DB.Exec(t.Context(), "test", `UPDATE ledger_entry SET entry = convert_to(replace(convert_from(entry, 'UTF8'), 'A-17', 'A-18'), 'UTF8')
WHERE account = 1 AND ledger = 'assets' AND sequence = 1`)
	if err != nil || changed != 1 {
		t.Fatal(changed, err)
	}
	must(t, os.WriteFile(export, []byte(strings.Replace(text, "A-17", "A-18", 1)), 0o600))
	for want, args := range map[string][]string{"acme/assets: entry 1 was changed\n": nil, "ledger.txt: entry 0 was changed\n": {export}} {
		if out, code := verify(args...); code != exitFailed || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want 1 and %q\n%s", code, want, out)
		}
	}
	if out, code := verify("--key", "x", export); code != exitFailed || !strings.Contains(out, "has no head that its key has signed") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if out, code := verify(filepath.Join(g.dir, "none")); code != exitFailed || !strings.Contains(out, "none") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
