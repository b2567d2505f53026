package ledger_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/relaytest"
)

// filled returns a site whose ledger "plain" has ten entries, and the credential of a token
// whose entries are 4, 6 and 8.
func filled(t *testing.T) (*site, ledger.Credential) {
	t.Helper()
	st := newSite(t)
	otherToken := st.generate("plain", ledger.NewToken{})
	for range 3 {
		st.claim(otherToken.Text, "")
	}
	d := st.generate("plain", ledger.NewToken{Metadata: json.RawMessage(`{"html":"<b>&","n":1.50}`)})
	for i := range 5 {
		text := d.Text
		if i%2 == 0 {
			text = otherToken.Text
		}
		_, err := st.s.Annotate(t.Context(), 1, text, json.RawMessage(fmt.Sprintf(`{"i":%d}`, i)))
		relaytest.NoError(t, err)
	}
	return st, ledger.Credential{Token: d.Text}
}

func faults(r ledger.Report) string {
	var texts []string
	for _, f := range r.Faults {
		texts = append(texts, f.String())
	}
	return strings.Join(texts, "; ")
}

func TestVerifyReportsChangedRows(t *testing.T) {
	for _, tc := range []struct {
		name       string
		statements []string
		want       string
	}{
		{"unchanged", nil, ""},
		{"changed byte of an entry", []string{
			"UPDATE ledger_entry SET entry = CAST(replace(CAST(entry AS TEXT), 't', 'T') AS BLOB) WHERE ledger = 'plain' AND sequence = 5",
		}, "entry 5 was changed"},
		{"deleted entry", []string{"DELETE FROM ledger_entry WHERE ledger = 'plain' AND sequence = 0"}, "entry 0 is missing"},
		{"swapped entries", []string{
			"UPDATE ledger_entry SET sequence = -2 WHERE ledger = 'plain' AND sequence = 2",
			"UPDATE ledger_entry SET sequence = 2 WHERE ledger = 'plain' AND sequence = 9",
			"UPDATE ledger_entry SET sequence = 9 WHERE ledger = 'plain' AND sequence = -2",
		}, "entry 2 was moved: entry 9 is in its place; entry 9 was moved: entry 2 is in its place"},
		{"changed stored hash", []string{
			"UPDATE ledger_tree SET hash = CAST('" + strings.Repeat("x", 32) + "' AS BLOB) WHERE ledger = 'plain' AND idx = 2",
		}, "entry 1 completes a subtree of 2 entries whose stored hash was changed"},
		{"missing head", []string{"UPDATE ledger_log SET head = '' WHERE ledger = 'plain'"},
			"the ledger's head is not signed by its key: head: signature: malformed note"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st, _ := filled(t)
			for _, statement := range tc.statements {
				if n, err := st.db.DB.Exec(t.Context(), "test", statement); err != nil || n != 1 {
					t.Fatalf("%s: %d rows, %v", statement, n, err)
				}
			}
			r, err := st.s.Verify(t.Context(), 1, "plain")
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the faults", faults(r), tc.want)
			if tc.want == "" {
				relaytest.Equal(t, "the number of entries", r.Entries, 10)
			}
		})
	}
}

func TestALedgerWithoutEntriesHasNoFaults(t *testing.T) {
	st := newSite(t)
	r, err := st.s.Verify(t.Context(), 1, "plain")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the faults", faults(r), "")
	relaytest.Equal(t, "the number of faults", r.Count, 0)
	relaytest.Equal(t, "the size after the first entry", st.history(ledger.Credential{Token: st.generate("plain", ledger.NewToken{}).Text}).Head.Size, 1)
}

func TestAHistoryIsVerifiedOffline(t *testing.T) {
	st, c := filled(t)
	h := st.history(c)
	encoded, err := json.Marshal(h)
	relaytest.NoError(t, err)
	var pretty bytes.Buffer
	relaytest.NoError(t, json.Indent(&pretty, encoded, "", "  "))
	otherSite := newSite(t)
	otherKey, err := otherSite.s.Key(t.Context(), 1, "plain")
	relaytest.NoError(t, err)
	for _, tc := range []struct {
		name, text, key, want string
	}{
		{"unchanged", string(encoded), h.Meta.Key, ""},
		{"indented", pretty.String(), h.Meta.Key, ""},
		{"verified with the embedded key", string(encoded), "", ""},
		{"changed entry", strings.Replace(string(encoded), `"i":1`, `"i":2`, 1), h.Meta.Key, "entry 6 was changed: it does not have its hash"},
		{"entry at another position", strings.Replace(string(encoded), `"sequence":6`, `"sequence":5`, 1), h.Meta.Key, "entry 5 is not in the ledger at this position"},
		{"changed tree size", strings.Replace(string(encoded), `"tree_size":10`, `"tree_size":11`, 1), h.Meta.Key, "tree_size and root_hash differ from the signed head"},
		{"another embedded key", strings.Replace(string(encoded), `"key":"`+h.Meta.Key, `"key":"`+otherKey, 1), h.Meta.Key, "meta.key is not the key that signed the history"},
		{"key of another ledger", string(encoded), otherKey, "the history is not signed by the key: head: signature: note has no verifiable signatures"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := ledger.VerifyHistory([]byte(tc.text), tc.key)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the faults", faults(r), tc.want)
			relaytest.Equal(t, "whether the key is pinned", r.Pinned, tc.key != "")
		})
	}
	if _, err := ledger.VerifyHistory([]byte(`{}`), ""); err == nil {
		t.Error("an empty object was accepted as a history")
	}
}

func TestAnExportIsVerifiedOffline(t *testing.T) {
	st, c := filled(t)
	early := st.history(c).Meta.Signature
	st.generate("plain", ledger.NewToken{})
	write, err := st.s.Export(t.Context(), 1, "plain")
	relaytest.NoError(t, err)
	var b bytes.Buffer
	relaytest.NoError(t, write(&b))
	key, err := st.s.Key(t.Context(), 1, "plain")
	relaytest.NoError(t, err)
	lines := strings.SplitAfter(b.String(), "\n") // the header, eleven entries and an empty text
	withoutLine := strings.Join(append(append([]string{}, lines[:4]...), lines[5:]...), "")
	swapped := strings.Join(append(append([]string{}, lines[:3]...), append([]string{lines[4], lines[3]}, lines[5:]...)...), "")
	withHeader := func(field, value string) string {
		var header map[string]json.RawMessage
		relaytest.NoError(t, json.Unmarshal([]byte(lines[0]), &header))
		if _, ok := header[field]; !ok {
			t.Fatalf("the header has no %s: %s", field, lines[0])
		}
		return strings.Replace(b.String(), fmt.Sprintf(`"%s":%s`, field, header[field]), fmt.Sprintf(`"%s":%q`, field, value), 1)
	}
	otherKey, err := newSite(t).s.Key(t.Context(), 1, "plain")
	relaytest.NoError(t, err)
	for _, tc := range []struct{ name, text, want string }{
		{"unchanged", b.String(), ""},
		{"another ledger in the header", withHeader("ledger", strings.Repeat("0a", 32)), "the header does not have the signed ledger"},
		{"another name in the header", withHeader("name", "Debts"), "the header does not have the signed name"},
		{"another key in the header", withHeader("key", otherKey), "the header does not have the key that signed"},
		{"duplicate name in the header", strings.Replace(b.String(), `"name"`, `"name":"Debts","name"`, 1), "the header was changed"},
		{"additional field in the header", strings.Replace(b.String(), `"name"`, `"title":"Debts","name"`, 1), "the header was changed"},
		{"changed byte", strings.Replace(b.String(), `"i":3`, `"i":4`, 1), "entry 8 was changed"},
		{"missing line", withoutLine, "entry 3 is missing"},
		{"swapped lines", swapped, "entry 2 is out of order; entry 2 is missing"},
		{"duplicate line", b.String() + lines[2], "entry 1 is out of order"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := ledger.VerifyExport(strings.NewReader(tc.text), key, early)
			relaytest.NoError(t, err)
			if !strings.Contains(faults(r), tc.want) || (tc.want == "") != (r.Count == 0) {
				t.Errorf("got %d faults: %s; want %q", r.Count, faults(r), tc.want)
			}
		})
	}
	if _, err := st.s.Export(t.Context(), relay.AccountID(2), "plain"); err == nil {
		t.Error("Export succeeded for another account")
	}
}

// FuzzVerifyExport checks that only exports pass verification.
func FuzzVerifyExport(f *testing.F) {
	f.Add([]byte("{\"head\":\"x\",\"key\":\"y\"}\nAAAA {}\n"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := ledger.VerifyExport(bytes.NewReader(text), ""); err == nil && r.Count == 0 {
			t.Fatalf("%q passed verification", text)
		}
	})
}

// FuzzVerifyHistory checks that only histories pass verification.
func FuzzVerifyHistory(f *testing.F) {
	f.Add([]byte(`{"data":[{"sequence":0,"data":{}}],"meta":{"signature":"x","key":"y","proof":[[]]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := ledger.VerifyHistory(text, ""); err == nil && r.Count == 0 {
			t.Fatalf("%q passed verification", text)
		}
	})
}
