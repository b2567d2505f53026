package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// tamper runs statements as an attacker who can write the database but lacks the master key.
func (st *site) tamper(statements ...string) {
	st.t.Helper()
	for _, statement := range statements {
		if _, err := st.db.DB.Exec(st.t.Context(), "test", statement); err != nil {
			st.t.Fatal(err)
		}
	}
}

func TestCheckReportsTamperedHeads(t *testing.T) {
	for _, tc := range []struct{ name, statement, want string }{
		{"missing signed head", "UPDATE ledger_log SET head = ''", "its signed head is missing"},
		{"signed head of another ledger", "UPDATE ledger_log SET head = (SELECT head FROM ledger_log WHERE ledger = 'locked')", "its stored head is not signed by its key"},
		{"missing sealed head", "UPDATE ledger_log SET sealed_head = ''", "its sealed head is missing"},
		{"sealed head of another ledger", "UPDATE ledger_log SET sealed_head = (SELECT sealed_head FROM ledger_log WHERE ledger = 'locked')", "its sealed head differs from its head"},
		{"smaller count of signed entries", "UPDATE ledger_log SET sealed = 3", "its log has 10 entries, 3 of them signed, and its signed head has 10"},
		{"smaller count of entries", "UPDATE ledger_log SET entries = 3", "its log has 3 entries, 10 of them signed, and its signed head has 10"},
		{"missing signing key", "DELETE FROM ledger_sealed WHERE name = 'signer plain'", "the key that signs its heads is missing"},
		{"signing key of another ledger", "UPDATE ledger_sealed SET sealed = (SELECT sealed FROM ledger_sealed WHERE name = 'signer locked') WHERE name = 'signer plain'", "the key that signs its heads cannot be decrypted"},
		{"changed ledger hash", "UPDATE ledger_log SET hash = 'aa'", "its hash was changed"},
		{"missing log", "DELETE FROM ledger_log WHERE ledger = 'plain'", "its log is gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st, c := filled(t)
			st.generate("locked", ledger.NewToken{})
			relaytest.NoError(t, st.s.Check(t.Context()))
			st.heads = ledger.HeadsOf(st.heads.All()) // as a restarted gateway loads them
			st.s = st.open()
			statement := tc.statement
			if strings.HasPrefix(statement, "UPDATE ledger_log") {
				statement += " WHERE ledger = 'plain'"
			}
			st.tamper(statement)
			err := st.s.Check(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Check: error %v, want %q", err, tc.want)
			}
			if _, err := st.s.History(t.Context(), 1, c); err == nil {
				t.Error("History returned a history of a tampered ledger")
			}
			if _, err := st.s.History(t.Context(), 1, c); tc.name != "missing log" && relay.KindOf(err) != relay.KindUnavailable {
				t.Errorf("History: error %v, want kind unavailable", err)
			}
		})
	}
}

// TestCheckStoresHeadsOfOtherGateways deletes the rows of a ledger that this gateway has
// checked but never written: the next check reports the loss.
func TestCheckStoresHeadsOfOtherGateways(t *testing.T) {
	st, _ := filled(t)
	st.heads = ledger.HeadsOf(nil)
	secondService := st.open()
	relaytest.NoError(t, secondService.Check(t.Context()))
	st.tamper("DELETE FROM ledger_log", "DELETE FROM ledger_entry", "DELETE FROM ledger_tree", "DELETE FROM ledger_token")
	if err := secondService.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "its log is gone") {
		t.Errorf("Check: error %v, want \"its log is gone\"", err)
	}
}

// TestAJobOfAnotherKindIsRefused runs a generation job with the annotation runner, which
// could parse the input of the job.
func TestAJobOfAnotherKindIsRefused(t *testing.T) {
	st := newSite(t)
	d := st.generate("plain", ledger.NewToken{})
	id, err := st.s.Generate(t.Context(), 1, "plain", ledger.NewToken{})
	relaytest.NoError(t, err)
	j, err := st.db.Jobs.Get(t.Context(), 1, id)
	relaytest.NoError(t, err)
	j.Kind = ledger.KindAnnotate
	if _, err := st.s.Runners()[j.Kind](t.Context(), j); err == nil || !strings.Contains(err.Error(), "cannot be decrypted") {
		t.Errorf("run: error %v, want \"cannot be decrypted\"", err)
	}
	relaytest.Equal(t, "the size of the tree", st.history(ledger.Credential{Token: d.Text}).Head.Size, 2)
}

// TestAppendedMetadataIsReadFromSignedEntries changes the stored metadata that a job has
// appended to a token.
func TestAppendedMetadataIsReadFromSignedEntries(t *testing.T) {
	for _, tc := range []struct{ name, statement, want string }{
		{"changed metadata column", `UPDATE ledger_entry SET metadata = '{"place":"other"}' WHERE metadata <> ''`, "map[place:yard]"},
		{"changed entry", `UPDATE ledger_entry SET entry = CAST(replace(CAST(entry AS TEXT), 'yard', 'dock') AS BLOB) WHERE metadata <> ''`, "differs from the signed entry"},
		{"metadata added to another entry of the token", `UPDATE ledger_entry SET metadata = '{}' WHERE sequence = 2`, "does not append metadata to it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st := newSite(t)
			d := st.generate("plain", ledger.NewToken{})
			jobID, err := st.s.Annotate(t.Context(), 1, d.Text, json.RawMessage(`{"place":"yard"}`))
			relaytest.NoError(t, err)
			if got := fmt.Sprint(st.finished(jobID).Token.AllMetadata()); got != "map[place:yard]" {
				t.Fatal(got)
			}
			st.claim(d.Text, "")
			st.claim(d.Text, "")
			st.tamper(tc.statement)
			got, err := st.s.Job(t.Context(), 1, jobID)
			result := fmt.Sprint(err)
			if err == nil {
				result = fmt.Sprint(got.Token.AllMetadata())
			}
			if !strings.Contains(result, tc.want) {
				t.Errorf("got %s, want %s", result, tc.want)
			}
		})
	}
}

// TestAHeadIsCheckedAgainstTheStoredHead restores an earlier state of a ledger, to which
// another gateway then appends an entry.
func TestAHeadIsCheckedAgainstTheStoredHead(t *testing.T) {
	st, c := filled(t)
	storedHeads := st.heads
	st.tamper("CREATE TABLE old AS SELECT * FROM ledger_log")
	st.generate("plain", ledger.NewToken{})
	st.tamper("DELETE FROM ledger_entry WHERE sequence = 10", "DELETE FROM ledger_tree WHERE idx > 17", "DELETE FROM ledger_log", "INSERT INTO ledger_log SELECT * FROM old")
	st.heads = ledger.HeadsOf(nil)
	st.s = st.open() // the other gateway
	st.generate("plain", ledger.NewToken{})
	st.heads = storedHeads
	st.s = st.open()
	if err := st.s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "its first 11 entries do not match the last head that this gateway stored") {
		t.Errorf("Check: error %v, want \"its first 11 entries do not match the last head that this gateway stored\"", err)
	}
	if _, err := st.s.History(t.Context(), 1, c); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("History: error %v, want kind unavailable", err)
	}
	accepted, err := st.s.AcceptHeads(t.Context())
	if err != nil || len(accepted) != 1 {
		t.Errorf("accepted %q, error %v; want one ledger", accepted, err)
	}
	if err := st.s.Check(t.Context()); err != nil {
		t.Errorf("Check after Accept: %v", err)
	}
}

func TestAnAcceptedRestoredLedgerCanBeExtended(t *testing.T) {
	st, _ := filled(t)
	st.tamper("CREATE TABLE old AS SELECT * FROM ledger_log")
	st.generate("plain", ledger.NewToken{})
	st.tamper("DELETE FROM ledger_entry WHERE sequence = 10", "DELETE FROM ledger_tree WHERE idx > 17", "DELETE FROM ledger_log", "INSERT INTO ledger_log SELECT * FROM old")
	if err := st.s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "its head goes back from 11 entries to 10") {
		t.Fatalf("Check: error %v, want \"its head goes back from 11 entries to 10\"", err)
	}
	accepted, err := st.s.AcceptHeads(t.Context())
	if err != nil || fmt.Sprint(accepted) != "[ledger plain of account 1: its head goes back from 11 entries to 10]" {
		t.Errorf("accepted %q, error %v; want ledger plain of account 1", accepted, err)
	}
	relaytest.NoError(t, st.s.Check(t.Context()))
	st.generate("plain", ledger.NewToken{})
	if accepted, err := st.s.AcceptHeads(t.Context()); err != nil || len(accepted) != 0 {
		t.Errorf("second Accept: accepted %q, error %v; want none", accepted, err)
	}
}

func TestAnUnsealedLedgerIsSealedWithItsNextEntry(t *testing.T) {
	st, c := filled(t)
	st.tamper("UPDATE ledger_log SET sealed_head = ''")
	st.heads = ledger.HeadsOf(nil)
	st.s = st.open()
	st.history(c)
	st.generate("plain", ledger.NewToken{})
	r, err := st.s.Verify(t.Context(), 1, "plain")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the faults", faults(r), "")
	relaytest.Equal(t, "the numbers of faults and entries", []int64{int64(r.Count), r.Entries}, []int64{0, 11})
}

// failingNotifier fails every call of Notify while down is set.
type failingNotifier struct {
	*site
	down bool
}

func (n *failingNotifier) Notify(ctx context.Context, acct relay.AccountID, e outbox.Event) error {
	if n.down {
		return errors.New("down")
	}
	return n.site.Notify(ctx, acct, e)
}

func TestHeadsAreSentToTheCallback(t *testing.T) {
	st := newSite(t)
	st.notifyHeads = true
	events := &failingNotifier{site: st, down: true}
	st.events = events
	st.s = st.open()
	if _, err := st.s.Generate(t.Context(), 1, "plain", ledger.NewToken{}); err == nil {
		t.Error("Generate succeeded although the event of the head was not saved")
	}
	events.down = false
	st.generate("plain", ledger.NewToken{})
	sizes := map[string]bool{}
	for _, e := range st.sent {
		if e.Type != ledger.EventHead {
			continue
		}
		data := e.Data.(map[string]any)
		if data["ledger"] != "plain" || !strings.HasPrefix(data["checkpoint"].(string), "penstock/ledger/") {
			t.Errorf("event of a head: ledger %v, checkpoint %q", data["ledger"], data["checkpoint"])
		}
		sizes[strings.Split(data["checkpoint"].(string), "\n")[1]] = true
	}
	if fmt.Sprint(sizes) != "map[0:true 1:true]" {
		t.Errorf("sizes of the published heads = %v, want 0 and 1", sizes)
	}
}
