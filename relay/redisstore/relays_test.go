package redisstore

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
)

var (
	_ inbound.Relays     = (*Relays)(nil)
	_ inbound.Claims     = (*Claims)(nil)
	_ inbound.Deliveries = (*Outbox)(nil)
	_ inbound.Records    = (*Relays)(nil)
	_ inbound.Inbox      = (*Inbox)(nil)
	_ inbound.Parts      = (*Parts)(nil)
)

func relayOf(acct account.ID, k inbound.Kind, id, number string) inbound.Relay {
	return inbound.Relay{
		ID: id, Account: acct, Kind: k, Number: number, UpdatedAt: at(0),
		Action: inbound.Action{Name: inbound.HTTPGet, Parameters: []string{"http://h/?m=%m&é=\"<"}},
	}
}

func putAll(t *testing.T, s *Relays, all ...inbound.Relay) {
	t.Helper()
	for _, r := range all {
		if err := s.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRelays(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) {
		for name, test := range map[string]func(*testing.T, *DB){
			"come back as they were saved":             relaysComeBack,
			"are found by number and by every prefix":  relaysAreFound,
			"have a number for themselves":             relaysHaveNumbers,
			"let go of a number that changes":          relaysLetGo,
			"are forgotten":                            relaysAreForgotten,
			"count every change":                       relaysCount,
			"are changed, and nobody's change is lost": relaysAreChanged,
			"fight for a number and one of them wins":  relaysFight,
			"claims belong to the first and come back": claimsBelongToTheFirst,
		} {
			t.Run(name, func(t *testing.T) { test(t, open(t)) })
		}
	})
}

func relaysComeBack(t *testing.T, db *DB) {
	s := db.Relays()
	want := relayOf(1, inbound.Geographic, "g1", "4478")
	want.ICCID = "8944"
	putAll(t, s, want, relayOf(1, inbound.Geographic, "g0", "4479"), relayOf(1, inbound.VirtualNumber, "g1", "4478"), relayOf(2, inbound.Geographic, "g1", "33"))
	got, err := s.Get(t.Context(), 1, inbound.Geographic, "g1")
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || !got.UpdatedAt.Equal(want.UpdatedAt) || got.ICCID != "8944" {
		t.Errorf("got %+v, %v", got, err)
	}
	list, err := s.List(t.Context(), 1, inbound.Geographic)
	if err != nil || len(list) != 2 || list[0].ID != "g1" || list[1].ID != "g0" {
		t.Errorf("list %+v, %v", list, err)
	}
	if _, err := s.Get(t.Context(), 2, inbound.Geographic, "g0"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("another account's relay: %v", err)
	}
}

func found(t *testing.T, s *Relays, numbers ...string) (out []string) {
	t.Helper()
	all, err := s.Candidates(t.Context(), numbers)
	if err != nil || len(all) != len(numbers) {
		t.Fatalf("%v, %v", all, err)
	}
	for _, candidates := range all {
		names := ""
		for _, r := range candidates {
			names += fmt.Sprintf("%d/%s ", r.Account, r.ID)
		}
		out = append(out, names)
	}
	return out
}

func relaysAreFound(t *testing.T, db *DB) {
	s := db.Relays()
	if got := found(t, s, "447860000001"); got[0] != "" {
		t.Errorf("in an empty store: %q", got)
	}
	putAll(t, s,
		relayOf(1, inbound.Geographic, "four", "4"), relayOf(2, inbound.Geographic, "fours", "44"),
		relayOf(1, inbound.Geographic, "whole", "447860000001"), relayOf(3, inbound.VirtualNumber, "exact", "447860000001"),
		relayOf(1, inbound.VirtualNumber, "begin", "4478"),
	)
	got := found(t, s, "447860000001", "4478", "331", "4", "447860000001")
	want := []string{"3/exact 1/four 2/fours 1/whole ", "1/begin 1/four 2/fours ", "", "1/four ", "3/exact 1/four 2/fours 1/whole "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func relaysHaveNumbers(t *testing.T, db *DB) {
	s := db.Relays()
	first := relayOf(1, inbound.VirtualNumber, "v1", "447860000001")
	putAll(t, s, first, first, relayOf(2, inbound.Geographic, "g1", "447860000001"))
	for _, other := range []inbound.Relay{
		relayOf(2, inbound.VirtualNumber, "v1", "447860000001"), relayOf(1, inbound.VirtualNumber, "v2", "447860000001"),
	} {
		if err := s.Put(t.Context(), other); relay.KindOf(err) != relay.KindConflict {
			t.Errorf("%d/%s: %v", other.Account, other.ID, err)
		}
	}
	if _, err := s.Get(t.Context(), 1, inbound.VirtualNumber, "v2"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("a refused relay was saved: %v", err)
	}
}

func relaysLetGo(t *testing.T, db *DB) {
	s := db.Relays()
	putAll(t, s, relayOf(1, inbound.VirtualNumber, "v1", "441"), relayOf(1, inbound.VirtualNumber, "v1", "442"), relayOf(2, inbound.VirtualNumber, "v1", "441"))
	if got := found(t, s, "441", "442"); !slices.Equal(got, []string{"2/v1 ", "1/v1 "}) {
		t.Errorf("got %q", got)
	}
}

func relaysAreForgotten(t *testing.T, db *DB) {
	s := db.Relays()
	putAll(t, s, relayOf(1, inbound.VirtualNumber, "v1", "441"))
	if err := s.Delete(t.Context(), 1, inbound.VirtualNumber, "v1"); err != nil {
		t.Fatal(err)
	}
	if got := found(t, s, "441"); got[0] != "" {
		t.Errorf("still found: %q", got)
	}
	if err := s.Delete(t.Context(), 1, inbound.VirtualNumber, "v1"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("a second time: %v", err)
	}
	putAll(t, s, relayOf(2, inbound.VirtualNumber, "v9", "441"))
}

func relaysCount(t *testing.T, db *DB) {
	s := db.Relays()
	version := func() int64 {
		n, err := s.Version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	last := version()
	for name, change := range map[string]func() error{
		"put":   func() error { return s.Put(t.Context(), relayOf(1, inbound.VirtualNumber, "v1", "441")) },
		"again": func() error { return s.Put(t.Context(), relayOf(1, inbound.VirtualNumber, "v1", "441")) },
		"delete": func() error {
			putAll(t, s, relayOf(1, inbound.VirtualNumber, "v2", "5"))
			return s.Delete(t.Context(), 1, inbound.VirtualNumber, "v2")
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if now := version(); now <= last {
			t.Errorf("%s: %d after %d", name, now, last)
		} else {
			last = now
		}
	}
}

func relaysAreChanged(t *testing.T, db *DB) {
	s := db.Relays()
	putAll(t, s, relayOf(1, inbound.VirtualNumber, "v1", "447"))
	before, err := s.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := s.Change(t.Context(), 1, inbound.VirtualNumber, "v1", func(r *inbound.Relay) error {
				r.Action.Parameters = append(r.Action.Parameters, fmt.Sprint("http://", i, "/"))
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := s.Candidates(t.Context(), []string{"447"})
	if err != nil || len(got[0]) != 1 || len(got[0][0].Action.Parameters) != 9 {
		t.Errorf("got %+v, %v", got, err)
	}
	if after, err := s.Version(t.Context()); err != nil || after != before+8 {
		t.Errorf("version %d after %d, %v", after, before, err)
	}
	refuse := relay.Errorf(relay.KindForbidden, "no")
	if _, err := s.Change(t.Context(), 1, inbound.VirtualNumber, "v1", func(*inbound.Relay) error { return refuse }); relay.KindOf(err) != relay.KindForbidden {
		t.Errorf("refused: %v", err)
	}
	if _, err := s.Change(t.Context(), 2, inbound.VirtualNumber, "v1", func(*inbound.Relay) error { return nil }); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("another account's: %v", err)
	}
}

func relaysFight(t *testing.T, db *DB) {
	s := db.Relays()
	var wins sync.Map
	var all sync.WaitGroup
	for acct := account.ID(1); acct <= 8; acct++ {
		all.Go(func() {
			if err := s.Put(t.Context(), relayOf(acct, inbound.VirtualNumber, "v1", "447")); err == nil {
				wins.Store(acct, true)
			} else if relay.KindOf(err) != relay.KindConflict {
				t.Error(err)
			}
		})
	}
	all.Wait()
	count := 0
	wins.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("%d relays have the number", count)
	}
}

func claimsBelongToTheFirst(t *testing.T, db *DB) {
	claim := func(pairs ...inbound.Claim) []string {
		t.Helper()
		got, err := db.Claims().Claim(t.Context(), pairs, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := claim(inbound.Claim{Key: "a", Holder: "e1"}, inbound.Claim{Key: "b", Holder: "e2"}, inbound.Claim{Key: "a", Holder: "e3"}); !slices.Equal(got, []string{"e1", "e2", "e1"}) {
		t.Errorf("got %q", got)
	}
	if got := claim(inbound.Claim{Key: "a", Holder: "e1"}, inbound.Claim{Key: "b", Holder: "e9"}); !slices.Equal(got, []string{"e1", "e2"}) {
		t.Errorf("again: %q", got)
	}
	if got := claim(); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
	ttl, err := db.rdb.TTL(t.Context(), keyCarrierID("a")).Result()
	if err != nil || ttl <= 50*time.Minute || ttl > time.Hour {
		t.Errorf("expires in %v, %v", ttl, err)
	}
}

func TestRelaysWithoutRedisAreUnavailable(t *testing.T) {
	db := openURL(t, "redis://127.0.0.1:1")
	_, version := db.Relays().Version(t.Context())
	_, candidates := db.Relays().Candidates(t.Context(), []string{"44"})
	_, claim := db.Claims().Claim(t.Context(), []inbound.Claim{{Key: "a", Holder: "b"}}, time.Hour)
	put := db.Relays().Put(t.Context(), relayOf(1, inbound.VirtualNumber, "v1", "44"))
	for name, err := range map[string]error{"version": version, "candidates": candidates, "claim": claim, "put": put} {
		if relay.KindOf(err) != relay.KindUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}
