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

// forgery returns SQL statements of an attacker without the master key. Forged entries have
// copies of the MACs of other entries.
type forgery struct{ tokens []string }

// entry adds an entry at the end of the log, with the MAC of the previous entry.
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

// copied adds the last claim again with another job.
func (forgery) copied() []string {
	return []string{
		`INSERT INTO ledger_entry (account, ledger, sequence, token, job, metadata, position, claims, entry, mac)
SELECT account, ledger, 5, token, 'copied', metadata, position, claims, entry, mac FROM ledger_entry WHERE sequence = 4`,
		"UPDATE ledger_log SET entries = 6 WHERE account = 1 AND ledger = 'assets'",
	}
}

// TestAWriterOfTheDatabaseGetsNothingSigned adds tokens, claims and metadata to the database as
// an attacker without the master key, and then sends requests to the gateway.
func TestAWriterOfTheDatabaseGetsNothingSigned(t *testing.T) {
	t.Parallel()
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			options, settings := db.Options{}, []string(nil)
			if database == "PostgreSQL" {
				options.URL = dbtest.Shared(t).NewDatabase(t)
				settings = []string{"PENSTOCK_DATABASE_URL=" + options.URL}
			}
			x := startTamperedLedger(t, settings...)
			if database == "SQLite" {
				options.Dir = x.DataDir()
			}
			// attack stops the gateway and calls do with the database open: SQLite has one user at a time.
			attack := func(do func()) {
				relaytest.NoError(t, x.Stop())
				var err error
				x.db, err = db.Open(t.Context(), options)
				relaytest.NoError(t, err)
				do()
				relaytest.NoError(t, x.db.Close())
			}
			response := x.acme.Get("/ledgers/tokens/" + x.tokens[0] + "/history")
			var history struct{ Meta struct{ Key string } }
			response.Decode(t, &history)
			attack(x.save)
			x.Run()
			forged := forgery{x.tokens}
			for _, tc := range []struct {
				name       string
				statements []string
				token      string // the token in the requests
			}{
				{"a token with a redirect", forged.token(), forgedToken},
				{"a claim", forged.claim(), x.tokens[1]},
				{"metadata", forged.metadata(), x.tokens[1]},
				{"a copied claim", forged.copied(), x.tokens[0]},
			} {
				t.Run(tc.name, func(t *testing.T) {
					attack(func() { x.write(tc.statements...) })
					x.Run()
					for path, a := range map[string]e2e.Response{
						"validate": x.acme.Post("/ledgers/tokens/validate", `{"token":"`+tc.token+`"}`),
						"claim":    x.acme.Post("/ledgers/tokens/claim", `{"token":"`+tc.token+`"}`),
						"history":  x.acme.Get("/ledgers/tokens/" + tc.token + "/history"),
						"redirect": x.As("").Get("/t/" + tc.token),
						"export":   x.acme.Get("/ledgers/assets/export"),
					} {
						if a.Status < 400 {
							t.Errorf("%s: the gateway answers %d %s", path, a.Status, a.Body)
						}
					}
					x.awaitAlarm(x.mintingJob(), "entry 5 was not written by a gateway")
					if a := x.Admin().Get("/admin/ledgers?account=acme"); !strings.Contains(a.Body, `"signed":5`) {
						t.Errorf("the signed head does not have 5 entries: %s", a.Body)
					}
					attack(func() {})
					x.verify("--key", history.Meta.Key).Mentions(t, e2e.ExitFailed, "entry 5 was not written by a gateway")
					attack(x.putBack)
					x.Run()
				})
			}
			x.acme.Post("/ledgers/tokens/validate", `{"token":"`+x.tokens[0]+`"}`).Mentions(t, 200, `"valid":true`)
			x.claim(x.tokens[1])
			export := filepath.Join(x.Dir, "ledger.txt")
			relaytest.NoError(t, os.WriteFile(export, []byte(x.acme.Get("/ledgers/assets/export").Body), 0o600))
			x.verify("--key", history.Meta.Key, export).Mentions(t, e2e.ExitDone, "entries match their signatures")
		})
	}
}
