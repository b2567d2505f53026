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

// write runs statements as an attacker with the database but not the master key.
func (st *site) write(statements ...string) {
	st.t.Helper()
	for _, s := range statements {
		if _, err := st.db.DB.Exec(st.t.Context(), "test", s); err != nil {
			st.t.Fatal(err)
		}
	}
}

func TestWhatIsWrongWithAHeadIsAnAlarm(t *testing.T) {
	for _, tc := range []struct{ name, statement, want string }{
		{"the head is missing", "UPDATE ledger_log SET head = ''", "its signed head is missing"},
		{"another signed head", "UPDATE ledger_log SET head = (SELECT head FROM ledger_log WHERE ledger = 'locked')", "its stored head is not one that its key has signed"},
		{"the sealed head is missing", "UPDATE ledger_log SET sealed_head = ''", "its sealed head is missing"},
		{"another sealed head", "UPDATE ledger_log SET sealed_head = (SELECT sealed_head FROM ledger_log WHERE ledger = 'locked')", "its sealed head is not its head"},
		{"a smaller log", "UPDATE ledger_log SET sealed = 3", "its log has 10 entries, 3 of them sealed, and its signed head has 10"},
		{"fewer entries", "UPDATE ledger_log SET entries = 3", "its log has 3 entries, 10 of them sealed, and its signed head has 10"},
		{"the key is missing", "DELETE FROM ledger_sealed WHERE name = 'signer plain'", "the key that signs its heads is missing"},
		{"the key is another one", "UPDATE ledger_sealed SET sealed = (SELECT sealed FROM ledger_sealed WHERE name = 'signer locked') WHERE name = 'signer plain'", "the key that signs its heads does not open"},
		{"the hash is another one", "UPDATE ledger_log SET hash = 'aa'", "its hash was changed"},
		{"the log is gone", "DELETE FROM ledger_log WHERE ledger = 'plain'", "its log is gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st, c := filled(t)
			st.generate("locked", ledger.NewToken{})
			relaytest.NoError(t, st.s.Check(t.Context()))
			st.heads = ledger.HeadsOf(st.heads.All()) // as after a restart
			st.s = st.open()
			statement := tc.statement
			if strings.HasPrefix(statement, "UPDATE ledger_log") {
				statement += " WHERE ledger = 'plain'"
			}
			st.write(statement)
			err := st.s.Check(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if _, err := st.s.History(t.Context(), 1, c); err == nil {
				t.Error("its history is handed out")
			}
			if _, err := st.s.History(t.Context(), 1, c); tc.name != "the log is gone" && relay.KindOf(err) != relay.KindUnavailable {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestAGatewayKeepsTheHeadsThatOthersSigned has a gateway that never used a ledger
// notice that its rows are gone.
func TestAGatewayKeepsTheHeadsThatOthersSigned(t *testing.T) {
	st, _ := filled(t)
	st.heads = ledger.HeadsOf(nil)
	other := st.open()
	relaytest.NoError(t, other.Check(t.Context()))
	st.write("DELETE FROM ledger_log", "DELETE FROM ledger_entry", "DELETE FROM ledger_tree", "DELETE FROM ledger_token")
	if err := other.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "its log is gone") {
		t.Errorf("%v", err)
	}
}

// TestAJobOfAnotherKindIsNotRun runs a generation job with the runner of annotations, which
// could parse the input of a generation.
func TestAJobOfAnotherKindIsNotRun(t *testing.T) {
	st := newSite(t)
	d := st.generate("plain", ledger.NewToken{})
	id, err := st.s.Generate(t.Context(), 1, "plain", ledger.NewToken{})
	relaytest.NoError(t, err)
	j, err := st.db.Jobs.Get(t.Context(), 1, id)
	relaytest.NoError(t, err)
	j.Kind = ledger.KindAnnotate
	if _, err := st.s.Runners()[j.Kind](t.Context(), j); err == nil || !strings.Contains(err.Error(), "does not open") {
		t.Errorf("the error of the run: %v", err)
	}
	relaytest.Equal(t, "the size of the tree", st.history(ledger.Credential{Token: d.Text}).Head.Size, 2)
}

// TestAppendedMetadataIsThatOfSignedEntries changes what the database says of the
// metadata that a job appended.
func TestAppendedMetadataIsThatOfSignedEntries(t *testing.T) {
	for _, tc := range []struct{ name, statement, want string }{
		{"the column of the metadata", `UPDATE ledger_entry SET metadata = '{"place":"other"}' WHERE metadata <> ''`, "map[place:yard]"},
		{"the entry", `UPDATE ledger_entry SET entry = CAST(replace(CAST(entry AS TEXT), 'yard', 'dock') AS BLOB) WHERE metadata <> ''`, "is not the one that was signed"},
		{"another entry of the token", `UPDATE ledger_entry SET metadata = '{}' WHERE sequence = 2`, "appends no metadata to it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st := newSite(t)
			d := st.generate("plain", ledger.NewToken{})
			job, err := st.s.Annotate(t.Context(), 1, d.Text, json.RawMessage(`{"place":"yard"}`))
			relaytest.NoError(t, err)
			if got := fmt.Sprint(st.finished(job).Token.AllMetadata()); got != "map[place:yard]" {
				t.Fatal(got)
			}
			st.claim(d.Text, "")
			st.claim(d.Text, "")
			st.write(tc.statement)
			got, err := st.s.Job(t.Context(), 1, job)
			shown := fmt.Sprint(err)
			if err == nil {
				shown = fmt.Sprint(got.Token.AllMetadata())
			}
			if !strings.Contains(shown, tc.want) {
				t.Errorf("got %s, want %s", shown, tc.want)
			}
		})
	}
}

// TestAHeadIsCheckedAgainstTheLastOne restores an earlier state, on which another gateway
// goes on.
func TestAHeadIsCheckedAgainstTheLastOne(t *testing.T) {
	st, c := filled(t)
	kept := st.heads
	st.write("CREATE TABLE old AS SELECT * FROM ledger_log")
	st.generate("plain", ledger.NewToken{})
	st.write("DELETE FROM ledger_entry WHERE sequence = 10", "DELETE FROM ledger_tree WHERE idx > 17", "DELETE FROM ledger_log", "INSERT INTO ledger_log SELECT * FROM old")
	st.heads = ledger.HeadsOf(nil)
	st.s = st.open() // the other gateway
	st.generate("plain", ledger.NewToken{})
	st.heads = kept
	st.s = st.open()
	if err := st.s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "its first 11 entries are not those of the head that this gateway kept") {
		t.Error(err)
	}
	if _, err := st.s.History(t.Context(), 1, c); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("%v", err)
	}
	accepted, err := st.s.Accept(t.Context())
	if err != nil || len(accepted) != 1 {
		t.Errorf("%q, %v", accepted, err)
	}
	if err := st.s.Check(t.Context()); err != nil {
		t.Errorf("after it was accepted: %v", err)
	}
}

func TestARestoredLedgerGoesOnWhenItIsAccepted(t *testing.T) {
	st, _ := filled(t)
	st.write("CREATE TABLE old AS SELECT * FROM ledger_log")
	st.generate("plain", ledger.NewToken{})
	st.write("DELETE FROM ledger_entry WHERE sequence = 10", "DELETE FROM ledger_tree WHERE idx > 17", "DELETE FROM ledger_log", "INSERT INTO ledger_log SELECT * FROM old")
	if err := st.s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "its head goes back from 11 entries to 10") {
		t.Fatal(err)
	}
	accepted, err := st.s.Accept(t.Context())
	if err != nil || fmt.Sprint(accepted) != "[ledger plain of account 1: its head goes back from 11 entries to 10]" {
		t.Errorf("%q, %v", accepted, err)
	}
	relaytest.NoError(t, st.s.Check(t.Context()))
	st.generate("plain", ledger.NewToken{})
	if again, err := st.s.Accept(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("%q, %v", again, err)
	}
}

func TestALedgerOfAnEarlierBuildIsSealedWithItsNextEntry(t *testing.T) {
	st, c := filled(t)
	st.write("UPDATE ledger_log SET sealed_head = ''")
	st.heads = ledger.HeadsOf(nil)
	st.s = st.open()
	st.history(c)
	st.generate("plain", ledger.NewToken{})
	r, err := st.s.Verify(t.Context(), 1, "plain")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the faults", faults(r), "")
	relaytest.Equal(t, "the number of faults and of entries", []int64{int64(r.Count), r.Entries}, []int64{0, 11})
}

// deaf is an Events whose Notify fails while down is set.
type deaf struct {
	*site
	down bool
}

func (d *deaf) Notify(ctx context.Context, acct relay.AccountID, e outbox.Event) error {
	if d.down {
		return errors.New("down")
	}
	return d.site.Notify(ctx, acct, e)
}

func TestHeadsAreSentToTheCallback(t *testing.T) {
	st := newSite(t)
	st.notifyHeads = true
	events := &deaf{site: st, down: true}
	st.events = events
	st.s = st.open()
	if _, err := st.s.Generate(t.Context(), 1, "plain", ledger.NewToken{}); err == nil {
		t.Error("a head whose event was not saved counts as published")
	}
	events.down = false
	st.generate("plain", ledger.NewToken{})
	sizes := map[string]bool{} // of the published heads
	for _, e := range st.sent {
		if e.Type != ledger.EventHead {
			continue
		}
		data := e.Data.(map[string]any)
		if data["ledger"] != "plain" || !strings.HasPrefix(data["checkpoint"].(string), "penstock/ledger/") {
			t.Errorf("the event of a head names the ledger %v and the checkpoint %q", data["ledger"], data["checkpoint"])
		}
		sizes[strings.Split(data["checkpoint"].(string), "\n")[1]] = true
	}
	if fmt.Sprint(sizes) != "map[0:true 1:true]" {
		t.Errorf("sizes of the published heads: %v, want 0 and 1", sizes)
	}
}
