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

// tamperedLedger is a gateway on a database that an attacker writes to. Its ledger has three
// tokens, of which the first is claimed twice: five entries.
type tamperedLedger struct {
	*e2e.Gateway
	db     *db.DB
	acme   e2e.Client
	tokens []string
}

func newTamperedLedger(t *testing.T, settings ...string) *tamperedLedger {
	t.Helper()
	database := dbtest.Shared(t).NewDatabase(t)
	x := startTamperedLedger(t, append(settings, "PENSTOCK_DATABASE_URL="+database)...)
	x.db = dbtest.Open(t, db.Options{URL: database})
	return x
}

// startTamperedLedger starts a tamperedLedger without opening the database for the attacker.
func startTamperedLedger(t *testing.T, settings ...string) *tamperedLedger {
	t.Helper()
	callback := e2e.NewLedgerCallback(t)
	settings = append(settings, "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "ledgers.yaml", "CALLBACK", callback.URL), settings...)
	x := &tamperedLedger{Gateway: g, acme: g.As("acme-all-0123456")}
	for range 3 {
		x.tokens = append(x.tokens, x.minted())
	}
	x.claim(x.tokens[0])
	x.claim(x.tokens[0])
	return x
}

// asset is the body of a request for a token with a redirect.
const asset = `{"metadata":{"serial":"A-17"},"redirect_url":"https://example.com/asset"}`

// minted creates a token.
func (x *tamperedLedger) minted() string { return x.acme.CreateToken("assets", asset) }

// mintingJob requests a token and returns the job.
func (x *tamperedLedger) mintingJob() (job string) {
	x.T.Helper()
	x.acme.Post("/ledgers/assets/tokens", asset).Decode(x.T, &job)
	return job
}

func (x *tamperedLedger) claim(token string) {
	x.T.Helper()
	var job struct{ JobID string }
	x.acme.Post("/ledgers/tokens/claim", `{"token":"`+token+`"}`).Decode(x.T, &job)
	x.AwaitLedgerJob(x.acme, job.JobID, nil)
}

// write executes statements, as an attacker with access to the database but without the master key.
func (x *tamperedLedger) write(statements ...string) {
	x.T.Helper()
	for _, s := range statements {
		if _, err := x.db.Exec(x.T.Context(), "test", s); err != nil {
			x.T.Fatal(err)
		}
	}
}

// tables returns the tables of ledgers, and that of jobs: a job that waits would continue after putBack.
func (x *tamperedLedger) tables() []string {
	return []string{"job", "ledger", "ledger_log", "ledger_entry", "ledger_tree", "ledger_token", "ledger_home", "ledger_sealed"}
}

// save copies the tables, and putBack restores the copies.
func (x *tamperedLedger) save() {
	for _, name := range x.tables() {
		x.write("CREATE TABLE saved_" + name + " AS SELECT * FROM " + name)
	}
}

func (x *tamperedLedger) putBack() {
	for _, name := range x.tables() {
		x.write("DELETE FROM "+name, "INSERT INTO "+name+" SELECT * FROM saved_"+name)
	}
}

// rehash replaces the stored tree by the tree of the stored entries.
func (x *tamperedLedger) rehash() {
	x.T.Helper()
	entries, err := db.Values[[]byte](x.T.Context(), x.db, "test", "SELECT entry FROM ledger_entry WHERE account = 1 AND ledger = 'assets' ORDER BY sequence")
	relaytest.NoError(x.T, err)
	var fold merkle.Fold
	for i, e := range entries {
		for k, h := range fold.Add(merkle.LeafHash(e)) {
			_, err := x.db.Exec(x.T.Context(), "test", "UPDATE ledger_tree SET hash = $1 WHERE account = 1 AND ledger = 'assets' AND idx = $2", h[:], merkle.StoredAt(int64(i))+int64(k))
			relaytest.NoError(x.T, err)
		}
	}
}

// verify runs `penstock ledger verify`.
func (x *tamperedLedger) verify(args ...string) e2e.Result {
	return e2e.RunCommand(x.Env, "", append([]string{"ledger", "verify"}, args...)...)
}

// awaitAlarm waits until /readyz contains a text. It fails the test if the job, if any, is
// completed before: the gateway would have signed the changed ledger.
func (x *tamperedLedger) awaitAlarm(job, want string) {
	x.T.Helper()
	relaytest.Eventually(x.T, "/readyz contains: "+want, func() (any, bool) {
		if job != "" && strings.Contains(x.acme.Get("/ledgers/jobs/"+job).Body, `"completed"`) {
			x.T.Fatal("the job is completed: the gateway has signed the changed ledger")
		}
		a := x.Admin().Get("/readyz")
		return a.Body, a.Status == 503 && strings.Contains(a.Body, want)
	})
}

const rewrite = `UPDATE ledger_entry SET entry = convert_to(replace(convert_from(entry, 'UTF8'), 'A-17', 'A-18'), 'UTF8')
WHERE account = 1 AND ledger = 'assets' AND sequence = 1`

// TestARewrittenPastIsNotSigned changes entries of a ledger in the database without the master
// key, and then sends requests to the gateway.
func TestARewrittenPastIsNotSigned(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(x *tamperedLedger)
		want   string // in /readyz
		named  string // in the output of ledger verify
	}{
		{"an entry and every hash above it", func(x *tamperedLedger) { x.write(rewrite); x.rehash() },
			"its stored tree is not the one of its signed head", "the first 5 entries are not those of the head that was signed"},
		{"the head is removed", func(x *tamperedLedger) {
			x.write(rewrite, "UPDATE ledger_log SET head = '', sealed = 0", "DELETE FROM ledger_tree")
		}, "its signed head is missing", "the ledger has no head that its key has signed"},
		{"the head and the keys are removed", func(x *tamperedLedger) {
			x.write(rewrite, "UPDATE ledger_log SET head = '', sealed = 0", "DELETE FROM ledger_tree", "DELETE FROM ledger_sealed WHERE kind = 'secret'")
		}, "its signed head is missing", "the ledger has no head that its key has signed"},
		{"everything is removed", func(x *tamperedLedger) {
			x.write("UPDATE ledger_log SET head = '', sealed = 0, entries = 0", "DELETE FROM ledger_tree", "DELETE FROM ledger_entry", "DELETE FROM ledger_token", "DELETE FROM ledger_sealed WHERE account <> 0")
		}, "its signed head is missing", "the ledger has no head that its key has signed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := newTamperedLedger(t)
			tc.change(x)
			x.awaitAlarm(x.mintingJob(), tc.want)
			x.verify().Mentions(t, e2e.ExitFailed, tc.named)
		})
	}
}

// TestAHeadThatGoesBackIsAnAlarm restores an earlier state of a ledger with its signed head,
// while the gateway runs and while it is stopped.
func TestAHeadThatGoesBackIsAnAlarm(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprint("stopped: ", stopped), func(t *testing.T) {
			x := newTamperedLedger(t)
			x.write("CREATE TABLE old_log AS SELECT * FROM ledger_log")
			x.minted()
			if stopped {
				relaytest.NoError(t, x.Stop())
			}
			x.write("DELETE FROM ledger_log", "INSERT INTO ledger_log SELECT * FROM old_log", "DELETE FROM ledger_entry WHERE sequence = 5", "DELETE FROM ledger_tree WHERE idx > 7")
			if stopped {
				x.Run()
			}
			x.awaitAlarm(x.mintingJob(), "its head goes back from 6 entries to 5")
			x.verify().Mentions(t, e2e.ExitFailed, "entries 5 to 5 are missing: the signed head has 6")
		})
	}
}

// TestATokenDoesWhatTheLogSays changes stored tokens, so that they disagree with the log.
func TestATokenDoesWhatTheLogSays(t *testing.T) {
	t.Parallel()
	x := newTamperedLedger(t)
	x.save()
	for _, tc := range []struct {
		name, statement string
		named           string // in the output of ledger verify
		refused         bool   // whether requests for the first token are refused
	}{
		{"a claim is rolled back", "UPDATE ledger_token SET claimed = 1 WHERE claimed = 2", "it counts 1 claims, the ledger has 2", true},
		{"a redirect is changed", "UPDATE ledger_token SET doc = replace(doc, 'example.com', 'example.org')", "says otherwise: redirect_url", true},
		{"an expiry is put off", "UPDATE ledger_token SET doc = replace(doc, '\"expires_at\":\"20', '\"expires_at\":\"21')", "says otherwise: expires_at", true},
		{"a limit is lifted", "UPDATE ledger_token SET doc = replace(doc, '\"limit\":3', '\"limit\":9')", "says otherwise: claims", true},
		{"two tokens have their documents swapped", `UPDATE ledger_token SET id = 'x' WHERE id = '{0}'; UPDATE ledger_token SET id = '{0}', claimed = 2 WHERE id = '{1}'; UPDATE ledger_token SET id = '{1}', claimed = 0 WHERE id = 'x'`, "it has the document of another token", true},
		{"two tokens are swapped", `UPDATE ledger_token SET id = 'x' WHERE id = '{0}'; UPDATE ledger_token SET id = '{0}' WHERE id = '{1}'; UPDATE ledger_token SET id = '{1}' WHERE id = 'x'; UPDATE ledger_entry SET token = 'x' WHERE token = '{0}'; UPDATE ledger_entry SET token = '{0}' WHERE token = '{1}'; UPDATE ledger_entry SET token = '{1}' WHERE token = 'x'`, "was not written by a gateway", true},
		{"a claim before the last is removed", "DELETE FROM ledger_entry WHERE sequence = 3", "entry 3 is missing", true},
		{"a claim is listed under another token", "UPDATE ledger_entry SET token = 'x' WHERE sequence = 4", "entry 4 was not written by a gateway", true},
		{"a claim is taken out of the list of its token", "UPDATE ledger_entry SET token = 'x' WHERE sequence = 4; UPDATE ledger_token SET claimed = 1 WHERE claimed = 2", "entry 4 was not written by a gateway", false},
		{"a link leads to another account", "UPDATE ledger_home SET account = 2", "its link leads to another account", false},
		{"a token is removed", "DELETE FROM ledger_token WHERE claimed = 2", "it is gone, entry 0 generated it", true},
		{"a ledger is removed", "DELETE FROM ledger WHERE account = 1", "it is no longer declared, its log has 5 entries", false},
		{"a ledger gets another hash", "UPDATE ledger_log SET hash = 'aa' WHERE account = 1", "its hash was changed", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer x.putBack()
			statement := strings.NewReplacer("{0}", ledger.TokenID(x.tokens[0]), "{1}", ledger.TokenID(x.tokens[1])).Replace(tc.statement)
			x.write(strings.Split(statement, "; ")...)
			x.verify().Mentions(t, e2e.ExitFailed, tc.named)
			for _, a := range []e2e.Response{
				x.acme.Post("/ledgers/tokens/validate", `{"token":"`+x.tokens[0]+`"}`), x.As("").Get("/t/" + x.tokens[0]),
			} {
				if tc.refused && a.Status < 400 {
					t.Errorf("the changed token is accepted: %v", a)
				}
			}
		})
	}
	x.verify().Mentions(t, e2e.ExitDone)
	x.acme.Post("/ledgers/tokens/validate", `{"token":"`+x.tokens[0]+`"}`).Mentions(t, 200, `"valid":true`)
	relaytest.Eventually(t, "/readyz has no alarm", func() (any, bool) {
		a := x.Admin().Get("/readyz")
		return a.Body, a.Status == 200
	})
}

// TestAChangedRowOfAKeyIsNamed changes the rows of keys while the gateway is stopped, and checks that ledger verify and the gateway name the row.
func TestAChangedRowOfAKeyIsNamed(t *testing.T) {
	t.Parallel()
	x := newTamperedLedger(t)
	relaytest.NoError(t, x.Stop())
	x.save()
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
			defer x.putBack()
			x.write(tc.statement)
			x.verify().Mentions(t, e2e.ExitFailed, tc.row)
			gateway, err := x.Open()
			if err != nil {
				if !strings.Contains(err.Error(), tc.row) {
					t.Errorf("the gateway does not start: %v", err)
				}
				return
			}
			x.Serve(gateway)
			relaytest.Eventually(t, "the log names the row", func() (any, bool) {
				return x.Logs.Tail(20), strings.Contains(x.Logs.String(), tc.row)
			})
			relaytest.NoError(t, x.Stop())
		})
	}
}

// TestTheAuditFindsARemovedTail removes the last claim of a token and its counter from the
// database. The token can be used until the gateway's next start, when the audit finds the
// fault.
func TestTheAuditFindsARemovedTail(t *testing.T) {
	t.Parallel()
	x := newTamperedLedger(t)
	x.save()
	x.write("DELETE FROM ledger_entry WHERE sequence = 4", "UPDATE ledger_token SET claimed = 1 WHERE claimed = 2")
	x.acme.Post("/ledgers/tokens/validate", `{"token":"`+x.tokens[0]+`"}`).Mentions(t, 200, `"remaining_claims":2`)
	x.verify().Mentions(t, e2e.ExitFailed, "acme/assets: entry 4 is missing")
	relaytest.NoError(t, x.Stop())
	x.Run()
	x.awaitAlarm("", "ledger assets of account 1: the audit found faults, the first: entry 4 is missing")
	x.AwaitMetric("penstock_ledger_audit_faults", 1)
	if !strings.Contains(x.Logs.String(), "ALARM: the audit of the ledgers found faults") {
		t.Errorf("the log has no alarm: %s", x.Logs.Tail(20))
	}
	relaytest.NoError(t, x.Stop())
	x.putBack()
	x.Run()
	x.AwaitReady()
}

// TestACutHistoryIsNotWhole verifies histories without some of the entries and their proofs.
func TestACutHistoryIsNotWhole(t *testing.T) {
	t.Parallel()
	x := newTamperedLedger(t)
	var history struct {
		Data []json.RawMessage          `json:"data"`
		Meta map[string]json.RawMessage `json:"meta"`
	}
	x.acme.Get("/ledgers/tokens/"+x.tokens[0]+"/history").Decode(t, &history)
	var proofs []json.RawMessage
	relaytest.NoError(t, json.Unmarshal(history.Meta["proof"], &proofs))
	name := filepath.Join(x.Dir, "history.json")
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
		x.verify(name).Mentions(t, code, tc.want)
	}
}

// TestPublishedHeadsShowARewrittenPast publishes heads and verifies an export and a history by
// an earlier head.
func TestPublishedHeadsShowARewrittenPast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := newTamperedLedger(t, "PENSTOCK_LEDGER_CHECKPOINT_DIR="+dir)
	files, err := filepath.Glob(filepath.Join(dir, "*", "checkpoint"))
	if err != nil || len(files) != 1 {
		t.Fatalf("published: %q, %v", files, err)
	}
	export, history := filepath.Join(x.Dir, "ledger.txt"), filepath.Join(x.Dir, "history.json")
	x.minted()
	earlyHead, err := os.ReadFile(files[0])
	relaytest.NoError(t, err)
	if lines := strings.Split(string(earlyHead), "\n"); lines[1] != "6" {
		t.Errorf("the published head does not have 6 entries: %q", earlyHead)
	}
	savedHead := filepath.Join(x.Dir, "kept")
	relaytest.NoError(t, os.WriteFile(savedHead, earlyHead, 0o600))
	x.minted()
	relaytest.NoError(t, os.WriteFile(export, []byte(x.acme.Get("/ledgers/assets/export").Body), 0o600))
	relaytest.NoError(t, os.WriteFile(history, []byte(x.acme.Get("/ledgers/tokens/"+x.tokens[0]+"/history").Body), 0o600))
	for _, tc := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"--ledger", "assets", "--head", savedHead, export}, "7 entries match their signatures, the whole ledger from 0 to 6", e2e.ExitDone},
		{[]string{"--head", files[0], history}, "3 entries match their signatures", e2e.ExitDone},
		{[]string{"--head", savedHead, history}, "a history does not prove that the ledger begins with the earlier head of 6 entries", e2e.ExitFailed},
		{[]string{"--ledger", "none"}, `no account has a ledger "none"`, e2e.ExitFailed},
	} {
		x.verify(tc.args...).Mentions(t, tc.code, tc.want)
	}
}
