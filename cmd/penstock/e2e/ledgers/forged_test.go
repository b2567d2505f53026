package ledgers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/relaytest"
)

// forgedToken is the text of a token that no gateway created.
const forgedToken = "attackersattackersattacker"

// forgery returns SQL statements of an attacker without the master key. Forged entries have the MACs of
// other entries.
type forgery struct{ tokens []string }

// entry returns the statements that add an entry at the end of the log, with the MAC of the previous
// entry.
func (f forgery) entry(token, job, metadata, position, claims, leaf string) []string {
	return []string{
		fmt.Sprintf(`INSERT INTO ledger_entry (account, ledger, sequence, token, job, metadata, position, claims, entry, mac)
SELECT 1, 'assets', 5, '%s', '%s', '%s', %s, %s, CAST('%s' AS {bytea}), mac FROM ledger_entry WHERE sequence = 4`, token, job, metadata, position, claims, leaf),
		"UPDATE ledger_log SET entries = 6 WHERE account = 1 AND ledger = 'assets'",
	}
}

func (f forgery) token() []string {
	id := ledger.TokenID(forgedToken)
	return append(f.entry(id, "", "", "0", "0", `{"at":"2026-11-27 00:00:00","data":{"claims":0,"created_at":"2026-11-27 00:00:00","job":"forged","redirect_url":"https://attacker.example/","token":"`+id+`"},"type":"generated"}`),
		`INSERT INTO ledger_token (account, id, claimed, doc) VALUES (1, '`+id+`', 0, '{"id":"`+id+`","ledger":"assets","created_at":"2026-11-27T00:00:00Z","redirect_url":"https://attacker.example/"}')`,
		`INSERT INTO ledger_home (token, account) VALUES ('`+id+`', 1)`)
}

func (f forgery) claim() []string {
	id := ledger.TokenID(f.tokens[1])
	return append(f.entry(id, "forged", "", "1", "1", `{"at":"2026-11-27 00:00:00","data":{"claim":1,"job":"forged","token":"`+id+`"},"type":"claimed"}`),
		`UPDATE ledger_token SET claimed = 1 WHERE id = '`+id+`'`)
}

func (f forgery) metadata() []string {
	id := ledger.TokenID(f.tokens[1])
	return f.entry(id, "forged", `{"a":1}`, "1", "0", `{"at":"2026-11-27 00:00:00","data":{"job":"forged","metadata":{"a":1},"token":"`+id+`"},"type":"metadata"}`)
}

// copiedClaim returns the statements that add the last claim again with another job.
func (forgery) copiedClaim() []string {
	return []string{
		`INSERT INTO ledger_entry (account, ledger, sequence, token, job, metadata, position, claims, entry, mac)
SELECT account, ledger, 5, token, 'copied', metadata, position, claims, entry, mac FROM ledger_entry WHERE sequence = 4`,
		"UPDATE ledger_log SET entries = 6 WHERE account = 1 AND ledger = 'assets'",
	}
}

// TestForgedEntriesAreNotSigned adds tokens, claims and metadata to the database like an attacker
// without the master key, and then sends requests to the gateway.
func TestForgedEntriesAreNotSigned(t *testing.T) {
	t.Parallel()
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			options, settings := db.Options{}, []string(nil)
			if database == "PostgreSQL" {
				options.URL = dbtest.Shared(t).NewDatabase(t)
				settings = []string{"PENSTOCK_DATABASE_URL=" + options.URL}
			}
			tl := startTamperedLedger(t, settings...)
			if database == "SQLite" {
				options.Dir = tl.DataDir()
			}
			// attack stops the gateway, opens the database and calls change: SQLite has one user at a time.
			attack := func(change func()) {
				relaytest.NoError(t, tl.Stop())
				var err error
				tl.db, err = db.Open(t.Context(), options)
				relaytest.NoError(t, err)
				change()
				relaytest.NoError(t, tl.db.Close())
			}
			response := tl.acme.Get("/ledgers/tokens/" + tl.tokens[0] + "/history")
			var history struct{ Meta struct{ Key string } }
			response.Decode(t, &history)
			attack(tl.save)
			tl.Run()
			f := forgery{tl.tokens}
			for _, tc := range []struct {
				name       string
				statements []string
				token      string // the token in the requests
			}{
				{"a token with a redirect", f.token(), forgedToken},
				{"a claim", f.claim(), tl.tokens[1]},
				{"metadata", f.metadata(), tl.tokens[1]},
				{"a copied claim", f.copiedClaim(), tl.tokens[0]},
			} {
				t.Run(tc.name, func(t *testing.T) {
					attack(func() { tl.write(tc.statements...) })
					tl.Run()
					for path, resp := range map[string]e2e.Response{
						"validate": tl.acme.Post("/ledgers/tokens/validate", `{"token":"`+tc.token+`"}`),
						"claim":    tl.acme.Post("/ledgers/tokens/claim", `{"token":"`+tc.token+`"}`),
						"history":  tl.acme.Get("/ledgers/tokens/" + tc.token + "/history"),
						"redirect": tl.WithToken("").Get("/t/" + tc.token),
						"export":   tl.acme.Get("/ledgers/assets/export"),
					} {
						if resp.Status < 400 {
							t.Errorf("%s: %d %s, want an error", path, resp.Status, resp.Body)
						}
					}
					tl.awaitAlarm(tl.requestToken(), "entry 5 was not written by a gateway")
					if resp := tl.Admin().Get("/admin/ledgers?account=acme"); !strings.Contains(resp.Body, `"signed":5`) {
						t.Errorf("ledgers = %s, want a signed head of 5 entries", resp.Body)
					}
					attack(func() {})
					tl.verify("--key", history.Meta.Key).Mentions(t, e2e.ExitFailed, "entry 5 was not written by a gateway")
					attack(tl.restore)
					tl.Run()
				})
			}
			tl.acme.Post("/ledgers/tokens/validate", `{"token":"`+tl.tokens[0]+`"}`).Mentions(t, 200, `"valid":true`)
			tl.claim(tl.tokens[1])
			export := filepath.Join(tl.Dir, "ledger.txt")
			relaytest.NoError(t, os.WriteFile(export, []byte(tl.acme.Get("/ledgers/assets/export").Body), 0o600))
			tl.verify("--key", history.Meta.Key, export).Mentions(t, e2e.ExitDone, "entries match their signatures")
		})
	}
}
