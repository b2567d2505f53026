package inventory

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestStore(t *testing.T) {
	dbtest.Each(t, NewStore, map[string]func(*testing.T, *Store){
		"an inventory replaces the one it was merged into": inventoryIsSaved,
		"SIMs are found by their values":                   simsAreDeclared,
		"secrets are sealed":                               secretsAreSealed,
		"a SIM that does not open ends no list":            otherSIMsOpen,
		"one of many is saved":                             func(t *testing.T, s *Store) { putAtOnce(t, s, s) },
	})
}

func TestOneOfTwoGatewaysSavesAnInventory(t *testing.T) {
	gateways := dbtest.Two(t, NewStore)
	putAtOnce(t, gateways[0], gateways[1])
}

// putAtOnce saves inventories at two gateways concurrently.
func putAtOnce(t *testing.T, a, b *Store) {
	var running sync.WaitGroup
	var saved atomic.Int64
	for i := range 20 {
		s := []*Store{a, b}[i%2]
		running.Go(func() {
			err := s.Put(t.Context(), nil, fmt.Append(nil, i), SIMChanges{})
			switch {
			case err == nil:
				saved.Add(1)
			case relay.KindOf(err) != relay.KindConflict:
				t.Error(err)
			}
		})
	}
	running.Wait()
	relaytest.Equal(t, "the number of saved inventories", saved.Load(), 1)
}

// secretsAreSealed saves and loads secrets, which the database has only in sealed form.
func secretsAreSealed(t *testing.T, s *Store) {
	ctx := t.Context()
	s.db.SetSealer(dbtest.Sealer{})
	document := []byte(`{"secret":"whsec_new"}`)
	sim := SIMRow{ICCID: "1", Declared: `{"puk":"signs"}`}
	for _, base := range [][]byte{nil, document} {
		relaytest.NoError(t, s.Put(ctx, base, document, SIMChanges{Put: []SIMRow{sim}}))
		relaytest.Equal(t, "the document", string(relaytest.Must(s.Merged(ctx))(t)), string(document))
		relaytest.Equal(t, "the SIMs", relaytest.Must(s.SIMs(ctx, SIMSelection{All: true}))(t), []SIMRow{sim})
	}
	for table, secret := range map[string]string{"inventory": "whsec_new", "declared_sim": "signs"} {
		doc, err := db.Value[[]byte](ctx, s.db, table, "SELECT doc FROM "+table)
		relaytest.NoError(t, err)
		if strings.Contains(string(doc), secret) {
			t.Errorf("the table %s shows %s", table, secret)
		}
	}
}

func otherSIMsOpen(t *testing.T, s *Store) {
	s.db.SetSealer(dbtest.Sealer{})
	relaytest.NoError(t, s.Put(t.Context(), nil, []byte("{}"), SIMChanges{Put: []SIMRow{{ICCID: "1", Declared: `{}`}, {ICCID: "2", Declared: `{}`}}}))
	dbtest.Tamper(t, s.db, "declared_sim", "doc", "iccid = '1'")
	sims := relaytest.Must(s.SIMs(t.Context(), SIMSelection{All: true}))(t)
	relaytest.Equal(t, "the SIMs", sims, []SIMRow{{ICCID: "1", Unopened: true}, {ICCID: "2", Declared: `{}`}})
}

func inventoryIsSaved(t *testing.T, s *Store) {
	none, err := s.Merged(t.Context())
	if none != nil || err != nil {
		t.Fatalf("%q, %v", none, err)
	}
	dbtest.WantKind(t, s.Put(t.Context(), []byte("zero"), []byte("one"), SIMChanges{}), relay.KindConflict)
	for range 2 { // the second changes nothing
		relaytest.NoError(t, s.Put(t.Context(), nil, []byte("one"), SIMChanges{}))
	}
	dbtest.WantKind(t, s.Put(t.Context(), nil, []byte("raced"), SIMChanges{}), relay.KindConflict)
	for range 2 {
		relaytest.NoError(t, s.Put(t.Context(), []byte("one"), []byte("two\x00\xff"), SIMChanges{}))
	}
	dbtest.WantKind(t, s.Put(t.Context(), []byte("one"), []byte("raced"), SIMChanges{}), relay.KindConflict)
	if got, err := s.Merged(t.Context()); string(got) != "two\x00\xff" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// simsAreDeclared saves the SIMs of an inventory in one transaction with it, and finds them by each
// of their values.
func simsAreDeclared(t *testing.T, s *Store) {
	ctx := t.Context()
	one := SIMRow{ICCID: "1", IMSI: "i1", MSISDN: "m1", Document: "a", Account: "acme", Declared: `{"pin":"1234"}`}
	two := SIMRow{ICCID: "2", Document: "a", Account: "globex", Declared: `{}`}
	three := SIMRow{ICCID: "3", IMSI: "i3", MSISDN: "m3", Document: "b", Account: "acme", Declared: `{}`}
	relaytest.NoError(t, s.Put(ctx, nil, []byte("1"), SIMChanges{Put: []SIMRow{three, one, two}}))
	dbtest.WantKind(t, s.Put(ctx, nil, []byte("2"), SIMChanges{Delete: []SIMRow{one, two, three}}), relay.KindConflict)
	for range 2 { // the second changes nothing
		for name, tc := range map[string]struct {
			selection SIMSelection
			want      []SIMRow
		}{
			"none":                  {SIMSelection{}, nil},
			"all":                   {SIMSelection{All: true}, []SIMRow{one, two, three}},
			"by ICCID":              {SIMSelection{ICCIDs: []string{"2", "4", "2"}}, []SIMRow{two}},
			"by IMSI":               {SIMSelection{IMSIs: []string{"i3", ""}}, []SIMRow{three}},
			"by MSISDN":             {SIMSelection{MSISDNs: []string{"m1", ""}}, []SIMRow{one}},
			"of a document":         {SIMSelection{Documents: []string{"a"}}, []SIMRow{one, two}},
			"of an account":         {SIMSelection{Accounts: []string{"acme"}}, []SIMRow{one, three}},
			"by several, each once": {SIMSelection{ICCIDs: []string{"3"}, MSISDNs: []string{"m3"}, Documents: []string{"b"}}, []SIMRow{three}},
		} {
			relaytest.Equal(t, name+": result of SIMs", relaytest.Must(s.SIMs(ctx, tc.selection))(t), tc.want)
		}
		relaytest.NoError(t, s.Put(ctx, nil, []byte("1"), SIMChanges{Put: []SIMRow{three, one, two}}))
	}
	two.MSISDN, two.Document, two.Declared = "m2", "b", `{"msisdn":"m2"}`
	relaytest.NoError(t, s.Put(ctx, []byte("1"), []byte("2"), SIMChanges{Put: []SIMRow{two}, Delete: []SIMRow{one, {ICCID: "3", Account: "globex"}}}))
	relaytest.Equal(t, "result of SIMs", relaytest.Must(s.SIMs(ctx, SIMSelection{All: true}))(t), []SIMRow{two, three})
}
