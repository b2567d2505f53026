package ledgers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/ledger/merkle"
	"github.com/penstock/penstock/relay/relaytest"
)

// tamperedLedger is a gateway on a database that an attacker writes to. Its ledger has five entries:
// three tokens, and two claims of the first token.
type tamperedLedger struct {
	*e2e.Gateway
	db     *db.DB
	acme   e2e.Client
	tokens []string
}

func newTamperedLedger(t *testing.T, settings ...string) *tamperedLedger {
	t.Helper()
	database := dbtest.Shared(t).NewDatabase(t)
	tl := startTamperedLedger(t, append(settings, "PENSTOCK_DATABASE_URL="+database)...)
	tl.db = dbtest.Open(t, db.Options{URL: database})
	return tl
}

// startTamperedLedger starts a tamperedLedger without opening the database for the attacker.
func startTamperedLedger(t *testing.T, settings ...string) *tamperedLedger {
	t.Helper()
	callback := e2e.NewLedgerCallback(t)
	settings = append(settings, "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "ledgers.yaml", "CALLBACK", callback.URL), settings...)
	tl := &tamperedLedger{Gateway: g, acme: g.WithToken("acme-all-0123456")}
	for range 3 {
		tl.tokens = append(tl.tokens, tl.createToken())
	}
	tl.claim(tl.tokens[0])
	tl.claim(tl.tokens[0])
	return tl
}

// asset is the body of a request for a token with a redirect.
const asset = `{"metadata":{"serial":"A-17"},"redirect_url":"https://example.com/asset"}`

// createToken creates a token and returns it.
func (tl *tamperedLedger) createToken() string { return tl.acme.CreateToken("assets", asset) }

// requestToken requests a token and returns the job.
func (tl *tamperedLedger) requestToken() (job string) {
	tl.T.Helper()
	tl.acme.Post("/ledgers/assets/tokens", asset).Decode(tl.T, &job)
	return job
}

func (tl *tamperedLedger) claim(token string) {
	tl.T.Helper()
	var job struct{ JobID string }
	tl.acme.Post("/ledgers/tokens/claim", `{"token":"`+token+`"}`).Decode(tl.T, &job)
	tl.AwaitLedgerJob(tl.acme, job.JobID, nil)
}

// write executes statements, as an attacker with access to the database but without the master key.
func (tl *tamperedLedger) write(statements ...string) {
	tl.T.Helper()
	for _, s := range statements {
		if _, err := tl.db.Exec(tl.T.Context(), "test", s); err != nil {
			tl.T.Fatal(err)
		}
	}
}

// tables returns the tables of ledgers and of jobs: a waiting job would continue after restore.
func (tl *tamperedLedger) tables() []string {
	return []string{"job", "ledger", "ledger_log", "ledger_entry", "ledger_tree", "ledger_token", "ledger_home", "ledger_sealed"}
}

// save copies the tables, and restore restores the copies.
func (tl *tamperedLedger) save() {
	for _, name := range tl.tables() {
		tl.write("CREATE TABLE saved_" + name + " AS SELECT * FROM " + name)
	}
}

func (tl *tamperedLedger) restore() {
	for _, name := range tl.tables() {
		tl.write("DELETE FROM "+name, "INSERT INTO "+name+" SELECT * FROM saved_"+name)
	}
}

// rehash replaces the stored tree by the tree of the stored entries.
func (tl *tamperedLedger) rehash() {
	tl.T.Helper()
	entries, err := db.Values[[]byte](tl.T.Context(), tl.db, "test", "SELECT entry FROM ledger_entry WHERE account = 1 AND ledger = 'assets' ORDER BY sequence")
	relaytest.NoError(tl.T, err)
	var fold merkle.Fold
	for i, e := range entries {
		for k, h := range fold.Add(merkle.LeafHash(e)) {
			_, err := tl.db.Exec(tl.T.Context(), "test", "UPDATE ledger_tree SET hash = $1 WHERE account = 1 AND ledger = 'assets' AND idx = $2", h[:], merkle.StoredAt(int64(i))+int64(k))
			relaytest.NoError(tl.T, err)
		}
	}
}

// verify runs `penstock ledger verify`.
func (tl *tamperedLedger) verify(args ...string) e2e.Result {
	return e2e.RunCommand(tl.Env, "", append([]string{"ledger", "verify"}, args...)...)
}

// awaitAlarm waits until /readyz contains a text. It fails the test if a job is completed before, because
// the gateway has then signed the changed ledger. job may be empty.
func (tl *tamperedLedger) awaitAlarm(job, want string) {
	tl.T.Helper()
	relaytest.Eventually(tl.T, "/readyz contains: "+want, func() (any, bool) {
		if job != "" && strings.Contains(tl.acme.Get("/ledgers/jobs/"+job).Body, `"completed"`) {
			tl.T.Fatal("the job is completed: the gateway has signed the changed ledger")
		}
		resp := tl.Admin().Get("/readyz")
		return resp.Body, resp.Status == 503 && strings.Contains(resp.Body, want)
	})
}

const changeEntry = `UPDATE ledger_entry SET entry = convert_to(replace(convert_from(entry, 'UTF8'), 'A-17', 'A-18'), 'UTF8')
WHERE account = 1 AND ledger = 'assets' AND sequence = 1`

// TestChangedEntriesAreNotSigned changes entries of a ledger in the database without the master key, and
// then sends requests to the gateway.
func TestChangedEntriesAreNotSigned(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		change     func(tl *tamperedLedger)
		wantAlarm  string // in /readyz
		wantOutput string // in the output of ledger verify
	}{
		{"an entry and the hashes of the tree are changed", func(tl *tamperedLedger) { tl.write(changeEntry); tl.rehash() },
			"its stored tree does not match its signed head", "the first 5 entries do not match the signed head"},
		{"the head is removed", func(tl *tamperedLedger) {
			tl.write(changeEntry, "UPDATE ledger_log SET head = '', sealed = 0", "DELETE FROM ledger_tree")
		}, "its signed head is missing", "the ledger's head is not signed by its key"},
		{"the head and the keys are removed", func(tl *tamperedLedger) {
			tl.write(changeEntry, "UPDATE ledger_log SET head = '', sealed = 0", "DELETE FROM ledger_tree", "DELETE FROM ledger_sealed WHERE kind = 'secret'")
		}, "its signed head is missing", "the ledger's head is not signed by its key"},
		{"everything is removed", func(tl *tamperedLedger) {
			tl.write("UPDATE ledger_log SET head = '', sealed = 0, entries = 0", "DELETE FROM ledger_tree", "DELETE FROM ledger_entry", "DELETE FROM ledger_token", "DELETE FROM ledger_sealed WHERE account <> 0")
		}, "its signed head is missing", "the ledger's head is not signed by its key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tl := newTamperedLedger(t)
			tc.change(tl)
			tl.awaitAlarm(tl.requestToken(), tc.wantAlarm)
			tl.verify().Mentions(t, e2e.ExitFailed, tc.wantOutput)
		})
	}
}

// TestEarlierHeadIsAnAlarm restores an earlier state of a ledger with its signed head, while the gateway
// runs and while it is stopped.
func TestEarlierHeadIsAnAlarm(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprint("stopped: ", stopped), func(t *testing.T) {
			tl := newTamperedLedger(t)
			tl.write("CREATE TABLE old_log AS SELECT * FROM ledger_log")
			tl.createToken()
			if stopped {
				relaytest.NoError(t, tl.Stop())
			}
			tl.write("DELETE FROM ledger_log", "INSERT INTO ledger_log SELECT * FROM old_log", "DELETE FROM ledger_entry WHERE sequence = 5", "DELETE FROM ledger_tree WHERE idx > 7")
			if stopped {
				tl.Run()
			}
			tl.awaitAlarm(tl.requestToken(), "its head goes back from 6 entries to 5")
			tl.verify().Mentions(t, e2e.ExitFailed, "entries 5 to 5 are missing: the signed head has 6")
		})
	}
}

// TestTokensThatDifferFromTheLogAreRefused changes stored tokens so that they differ from the log.
func TestTokensThatDifferFromTheLogAreRefused(t *testing.T) {
	t.Parallel()
	tl := newTamperedLedger(t)
	tl.save()
	for _, tc := range []struct {
		name, statement string
		wantOutput      string // in the output of ledger verify
		refused         bool   // whether requests for the first token are refused
	}{
		{"a claim is rolled back", "UPDATE ledger_token SET claimed = 1 WHERE claimed = 2", "it counts 1 claims, but its entries in the ledger count 2", true},
		{"a redirect is changed", "UPDATE ledger_token SET doc = replace(doc, 'example.com', 'example.org')", "and differs from entry 0: redirect_url", true},
		{"an expiry is postponed", "UPDATE ledger_token SET doc = replace(doc, '\"expires_at\":\"20', '\"expires_at\":\"21')", "and differs from entry 0: expires_at", true},
		{"a limit is raised", "UPDATE ledger_token SET doc = replace(doc, '\"limit\":3', '\"limit\":9')", "and differs from entry 0: claims", true},
		{"the documents of two tokens are swapped", `UPDATE ledger_token SET id = 'x' WHERE id = '{0}'; UPDATE ledger_token SET id = '{0}', claimed = 2 WHERE id = '{1}'; UPDATE ledger_token SET id = '{1}', claimed = 0 WHERE id = 'x'`, "its document belongs to another token", true},
		{"two tokens are swapped", `UPDATE ledger_token SET id = 'x' WHERE id = '{0}'; UPDATE ledger_token SET id = '{0}' WHERE id = '{1}'; UPDATE ledger_token SET id = '{1}' WHERE id = 'x'; UPDATE ledger_entry SET token = 'x' WHERE token = '{0}'; UPDATE ledger_entry SET token = '{0}' WHERE token = '{1}'; UPDATE ledger_entry SET token = '{1}' WHERE token = 'x'`, "was not written by a gateway", true},
		{"a claim before the last is removed", "DELETE FROM ledger_entry WHERE sequence = 3", "entry 3 is missing", true},
		{"a claim is listed under another token", "UPDATE ledger_entry SET token = 'x' WHERE sequence = 4", "entry 4 was not written by a gateway", true},
		{"a claim is removed from the list of its token", "UPDATE ledger_entry SET token = 'x' WHERE sequence = 4; UPDATE ledger_token SET claimed = 1 WHERE claimed = 2", "entry 4 was not written by a gateway", false},
		{"a link leads to another account", "UPDATE ledger_home SET account = 2", "its link leads to another account or is missing", false},
		{"a token is removed", "DELETE FROM ledger_token WHERE claimed = 2", "it is missing, although entry 0 generated it", true},
		{"a ledger is removed", "DELETE FROM ledger WHERE account = 1", "it is no longer declared, its log has 5 entries", false},
		{"a ledger gets another hash", "UPDATE ledger_log SET hash = 'aa' WHERE account = 1", "its hash was changed", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer tl.restore()
			statement := strings.NewReplacer("{0}", ledger.TokenID(tl.tokens[0]), "{1}", ledger.TokenID(tl.tokens[1])).Replace(tc.statement)
			tl.write(strings.Split(statement, "; ")...)
			tl.verify().Mentions(t, e2e.ExitFailed, tc.wantOutput)
			for _, resp := range []e2e.Response{
				tl.acme.Post("/ledgers/tokens/validate", `{"token":"`+tl.tokens[0]+`"}`), tl.WithToken("").Get("/t/" + tl.tokens[0]),
			} {
				if tc.refused && resp.Status < 400 {
					t.Errorf("answer for the changed token = %v, want an error", resp)
				}
			}
		})
	}
	tl.verify().Mentions(t, e2e.ExitDone)
	tl.acme.Post("/ledgers/tokens/validate", `{"token":"`+tl.tokens[0]+`"}`).Mentions(t, 200, `"valid":true`)
	relaytest.Eventually(t, "/readyz has no alarm", func() (any, bool) {
		resp := tl.Admin().Get("/readyz")
		return resp.Body, resp.Status == 200
	})
}

// TestChangedRowOfAKeyIsReported changes the rows of keys while the gateway is stopped, and checks that
// ledger verify and the gateway name the row.
func TestChangedRowOfAKeyIsReported(t *testing.T) {
	t.Parallel()
	tl := newTamperedLedger(t)
	relaytest.NoError(t, tl.Stop())
	tl.save()
	for _, tc := range []struct {
		name, statement string
		row             string // name of the row in the messages
	}{
		{"the keyset of the gateway has an end", "UPDATE ledger_sealed SET expires = 1 WHERE account = 0", "account 0, kind 'keyset' and name '' was changed: expires is 1, set it to 0"},
		{"the keyset of the gateway is empty", "UPDATE ledger_sealed SET sealed = '' WHERE account = 0", "account 0, kind 'keyset' and name '' was changed: sealed is empty"},
		{"the keyset of the account has an end", "UPDATE ledger_sealed SET expires = 1 WHERE account = 1 AND kind = 'keyset'", "account 1, kind 'keyset' and name '' was changed"},
		{"the key of the ledger has an end", "UPDATE ledger_sealed SET expires = 1 WHERE kind = 'secret'", "account 1, kind 'secret' and name 'signer assets' was changed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer tl.restore()
			tl.write(tc.statement)
			tl.verify().Mentions(t, e2e.ExitFailed, tc.row)
			gateway, err := tl.Open()
			if err != nil {
				if !strings.Contains(err.Error(), tc.row) {
					t.Errorf("error of the start = %v, want the row", err)
				}
				return
			}
			tl.Serve(gateway)
			relaytest.Eventually(t, "the log names the row", func() (any, bool) {
				return tl.Logs.Tail(20), strings.Contains(tl.Logs.String(), tc.row)
			})
			relaytest.NoError(t, tl.Stop())
		})
	}
}

// TestAuditFindsARemovedLastClaim removes the last claim of a token and decrements its counter in the
// database. The token can be used until the next start of the gateway, when the audit finds the fault.
func TestAuditFindsARemovedLastClaim(t *testing.T) {
	t.Parallel()
	tl := newTamperedLedger(t)
	tl.save()
	tl.write("DELETE FROM ledger_entry WHERE sequence = 4", "UPDATE ledger_token SET claimed = 1 WHERE claimed = 2")
	tl.acme.Post("/ledgers/tokens/validate", `{"token":"`+tl.tokens[0]+`"}`).Mentions(t, 200, `"remaining_claims":2`)
	tl.verify().Mentions(t, e2e.ExitFailed, "acme/assets: entry 4 is missing")
	relaytest.NoError(t, tl.Stop())
	tl.Run()
	tl.awaitAlarm("", "ledger assets of account 1: the audit found faults, the first: entry 4 is missing")
	tl.AwaitMetric("penstock_ledger_audit_faults", 1)
	if !strings.Contains(tl.Logs.String(), "ALARM: the audit of the ledgers found faults") {
		t.Errorf("log = %s, want an alarm", tl.Logs.Tail(20))
	}
	relaytest.NoError(t, tl.Stop())
	tl.restore()
	tl.Run()
	tl.AwaitReady()
}

// TestIncompleteHistoryIsReported verifies histories that lack some entries and their proofs.
func TestIncompleteHistoryIsReported(t *testing.T) {
	t.Parallel()
	tl := newTamperedLedger(t)
	var history struct {
		Data []json.RawMessage          `json:"data"`
		Meta map[string]json.RawMessage `json:"meta"`
	}
	tl.acme.Get("/ledgers/tokens/"+tl.tokens[0]+"/history").Decode(t, &history)
	var proofs []json.RawMessage
	relaytest.NoError(t, json.Unmarshal(history.Meta["proof"], &proofs))
	name := filepath.Join(tl.Dir, "history.json")
	for _, tc := range []struct {
		remaining []int // indices of the entries that remain
		want      string
	}{
		{[]int{0, 1, 2}, "3 entries match their signatures, all that token"},
		{[]int{0, 2}, "the history has 2 of the 3 entries of its token"},
		{[]int{0, 1}, "the history has 2 of the 3 entries of its token"},
		{[]int{1, 2}, "the history has 2 of the 3 entries of its token"},
		{nil, "the history has 0 of the 3 entries of its token"},
	} {
		data, proof := []json.RawMessage{}, []json.RawMessage{}
		for _, i := range tc.remaining {
			data, proof = append(data, history.Data[i]), append(proof, proofs[i])
		}
		meta := map[string]any{"proof": proof}
		for key, value := range history.Meta {
			if key != "proof" {
				meta[key] = value
			}
		}
		text, err := json.Marshal(map[string]any{"data": data, "meta": meta})
		relaytest.NoError(t, err)
		relaytest.NoError(t, os.WriteFile(name, text, 0o600))
		code := e2e.ExitFailed
		if len(tc.remaining) == 3 {
			code = e2e.ExitDone
		}
		tl.verify(name).Mentions(t, code, tc.want)
	}
}

// TestExportIsVerifiedWithAPublishedHead publishes heads, and verifies an export and a history with an
// earlier head.
func TestExportIsVerifiedWithAPublishedHead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tl := newTamperedLedger(t, "PENSTOCK_LEDGER_CHECKPOINT_DIR="+dir)
	files, err := filepath.Glob(filepath.Join(dir, "*", "checkpoint"))
	if err != nil || len(files) != 1 {
		t.Fatalf("published heads = %q, error = %v, want one head", files, err)
	}
	export, history := filepath.Join(tl.Dir, "ledger.txt"), filepath.Join(tl.Dir, "history.json")
	tl.createToken()
	earlyHead, err := os.ReadFile(files[0])
	relaytest.NoError(t, err)
	if lines := strings.Split(string(earlyHead), "\n"); lines[1] != "6" {
		t.Errorf("published head = %q, want 6 entries", earlyHead)
	}
	savedHead := filepath.Join(tl.Dir, "head")
	relaytest.NoError(t, os.WriteFile(savedHead, earlyHead, 0o600))
	tl.createToken()
	relaytest.NoError(t, os.WriteFile(export, []byte(tl.acme.Get("/ledgers/assets/export").Body), 0o600))
	relaytest.NoError(t, os.WriteFile(history, []byte(tl.acme.Get("/ledgers/tokens/"+tl.tokens[0]+"/history").Body), 0o600))
	for _, tc := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"--ledger", "assets", "--head", savedHead, export}, "7 entries match their signatures, the whole ledger, entries 0 to 6", e2e.ExitDone},
		{[]string{"--head", files[0], history}, "3 entries match their signatures", e2e.ExitDone},
		{[]string{"--head", savedHead, history}, "a history does not prove that the ledger begins with the earlier head of 6 entries", e2e.ExitFailed},
		{[]string{"--ledger", "none"}, `no account has a ledger "none"`, e2e.ExitFailed},
	} {
		tl.verify(tc.args...).Mentions(t, tc.code, tc.want)
	}
}
