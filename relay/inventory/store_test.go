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
		"an inventory replaces its base":                      inventoryIsSaved,
		"SIMs are found by their values":                      simsAreDeclared,
		"secrets are sealed":                                  secretsAreSealed,
		"a SIM that cannot be decrypted does not fail a list": otherSIMsAreListed,
		"one of many concurrent inventories is saved":         func(t *testing.T, s *Store) { putAtOnce(t, s, s) },
	})
}

func TestOneOfTwoGatewaysSavesAnInventory(t *testing.T) {
	gateways := dbtest.TwoGateways(t, NewStore)
	putAtOnce(t, gateways[0], gateways[1])
}

// putAtOnce saves inventories through two stores concurrently: one of them is saved.
func putAtOnce(t *testing.T, a, b *Store) {
	var wg sync.WaitGroup
	var savedCount atomic.Int64
	for i := range 20 {
		s := []*Store{a, b}[i%2]
		wg.Go(func() {
			err := s.Put(t.Context(), nil, fmt.Append(nil, i), SIMChanges{})
			switch {
			case err == nil:
				savedCount.Add(1)
			case relay.KindOf(err) != relay.KindConflict:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	relaytest.Equal(t, "the number of saved inventories", savedCount.Load(), 1)
}

// secretsAreSealed saves and loads secrets, which the database contains in sealed form only.
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
			t.Errorf("table %s contains the secret %s", table, secret)
		}
	}
}

func otherSIMsAreListed(t *testing.T, s *Store) {
	s.db.SetSealer(dbtest.Sealer{})
	relaytest.NoError(t, s.Put(t.Context(), nil, []byte("{}"), SIMChanges{Put: []SIMRow{{ICCID: "1", Declared: `{}`}, {ICCID: "2", Declared: `{}`}}}))
	dbtest.Tamper(t, s.db, "declared_sim", "doc", "iccid = '1'")
	sims := relaytest.Must(s.SIMs(t.Context(), SIMSelection{All: true}))(t)
	relaytest.Equal(t, "the SIMs", sims, []SIMRow{{ICCID: "1", Undecryptable: true}, {ICCID: "2", Declared: `{}`}})
}

func inventoryIsSaved(t *testing.T, s *Store) {
	merged, err := s.Merged(t.Context())
	if merged != nil || err != nil {
		t.Fatalf("Merged of an empty store: %q, error %v", merged, err)
	}
	dbtest.WantKind(t, s.Put(t.Context(), []byte("zero"), []byte("one"), SIMChanges{}), relay.KindConflict)
	for range 2 { // the second call changes nothing
		relaytest.NoError(t, s.Put(t.Context(), nil, []byte("one"), SIMChanges{}))
	}
	dbtest.WantKind(t, s.Put(t.Context(), nil, []byte("raced"), SIMChanges{}), relay.KindConflict)
	for range 2 {
		relaytest.NoError(t, s.Put(t.Context(), []byte("one"), []byte("two\x00\xff"), SIMChanges{}))
	}
	dbtest.WantKind(t, s.Put(t.Context(), []byte("one"), []byte("raced"), SIMChanges{}), relay.KindConflict)
	if got, err := s.Merged(t.Context()); string(got) != "two\x00\xff" || err != nil {
		t.Errorf("Merged: %q, error %v; want two", got, err)
	}
}

// simsAreDeclared saves an inventory and its SIMs in one transaction and finds the SIMs by each
// of their values.
func simsAreDeclared(t *testing.T, s *Store) {
	ctx := t.Context()
	sim1 := SIMRow{ICCID: "1", IMSI: "i1", MSISDN: "m1", Document: "a", Account: "acme", Declared: `{"pin":"1234"}`}
	sim2 := SIMRow{ICCID: "2", Document: "a", Account: "globex", Declared: `{}`}
	sim3 := SIMRow{ICCID: "3", IMSI: "i3", MSISDN: "m3", Document: "b", Account: "acme", Declared: `{}`}
	relaytest.NoError(t, s.Put(ctx, nil, []byte("1"), SIMChanges{Put: []SIMRow{sim3, sim1, sim2}}))
	dbtest.WantKind(t, s.Put(ctx, nil, []byte("2"), SIMChanges{Delete: []SIMRow{sim1, sim2, sim3}}), relay.KindConflict)
	for range 2 { // the second Put changes nothing
		for name, tc := range map[string]struct {
			selection SIMSelection
			want      []SIMRow
		}{
			"none":              {SIMSelection{}, nil},
			"all":               {SIMSelection{All: true}, []SIMRow{sim1, sim2, sim3}},
			"by ICCID":          {SIMSelection{ICCIDs: []string{"2", "4", "2"}}, []SIMRow{sim2}},
			"by IMSI":           {SIMSelection{IMSIs: []string{"i3", ""}}, []SIMRow{sim3}},
			"by MSISDN":         {SIMSelection{MSISDNs: []string{"m1", ""}}, []SIMRow{sim1}},
			"of a document":     {SIMSelection{Documents: []string{"a"}}, []SIMRow{sim1, sim2}},
			"of an account":     {SIMSelection{Accounts: []string{"acme"}}, []SIMRow{sim1, sim3}},
			"by several values": {SIMSelection{ICCIDs: []string{"3"}, MSISDNs: []string{"m3"}, Documents: []string{"b"}}, []SIMRow{sim3}},
		} {
			relaytest.Equal(t, "the SIMs selected "+name, relaytest.Must(s.SIMs(ctx, tc.selection))(t), tc.want)
		}
		relaytest.NoError(t, s.Put(ctx, nil, []byte("1"), SIMChanges{Put: []SIMRow{sim3, sim1, sim2}}))
	}
	sim2.MSISDN, sim2.Document, sim2.Declared = "m2", "b", `{"msisdn":"m2"}`
	relaytest.NoError(t, s.Put(ctx, []byte("1"), []byte("2"), SIMChanges{Put: []SIMRow{sim2}, Delete: []SIMRow{sim1, {ICCID: "3", Account: "globex"}}}))
	relaytest.Equal(t, "the remaining SIMs", relaytest.Must(s.SIMs(ctx, SIMSelection{All: true}))(t), []SIMRow{sim2, sim3})
}
