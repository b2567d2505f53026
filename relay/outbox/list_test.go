package outbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestListSelects(t *testing.T) {
	mail := Delivery{
		ID: "mail", Account: 2, Kind: KindRelay, Relay: "v1", MessageID: "m-mail", CreatedAt: timeAt(4),
		Mail: &Mail{To: "Ops@Example.org", Subject: "SMS", Text: "Zähler 17 <leer> & \"alt\""},
	}
	receipt := createdAt(newDelivery("receipt"), 3)
	receipt.Kind, receipt.Relay, receipt.Destination = KindReport, "", "4179"
	cases := []struct {
		name   string
		filter Filter
		want   []string
	}{
		{"an empty filter selects all accounts, newest first", Filter{}, []string{"mail", "receipt", "second", "first"}},
		{"a state", Filter{State: Dead}, []string{"mail", "second"}},
		{"an account", Filter{Account: 1}, []string{"receipt", "second", "first"}},
		{"an account without deliveries", Filter{Account: 9}, []string{}},
		{"a kind", Filter{Kind: KindReport}, []string{"receipt"}},
		{"a relay", Filter{Relay: "v1"}, []string{"mail"}},
		{"a part of the target, ignoring case", Filter{Target: "ops@example"}, []string{"mail"}},
		{"from and to, inclusive", Filter{From: timeAt(2), To: timeAt(3)}, []string{"receipt", "second"}},
		{"a query for text with characters that JSON escapes", Filter{Query: `<LEER> & "alt"`}, []string{"mail"}},
		{"a query for a reason", Filter{Query: "dead for a"}, []string{"mail", "second"}},
		{"a query for a message id", Filter{Query: "m-first"}, []string{"first"}},
		{"a query for text of the body", Filter{Query: "grüße", State: Queued}, []string{"receipt", "first"}},
		{"a query for text of dead deliveries with characters that JSON escapes", Filter{Query: `<LEER> & "alt"`, State: Dead}, []string{"mail"}},
		{"a query for non-ASCII text of dead deliveries, ignoring case", Filter{Query: "ZÄHLER", State: Dead}, []string{"mail"}},
		{"a query of two letters", Filter{Query: "äh", State: Dead}, []string{"mail"}},
		{"a query with a wildcard of LIKE", Filter{Query: "1_ <l", State: Dead}, []string{}},
		{"a query with a percent sign and a backslash", Filter{Query: `%\`, State: Dead}, []string{}},
		{"a target of dead deliveries", Filter{Target: "ops@EXAMPLE", State: Dead}, []string{"mail"}},
		{"a target that is found in the text only", Filter{Target: "zähler", State: Dead}, []string{}},
		{"a masked target", Filter{Target: "/in?m=***", State: Dead}, []string{"second"}},
		{"a target and a reason", Filter{Target: "/in?m=", Reason: "for a", State: Dead}, []string{"second"}},
		{"a query does not search paths, which may be secret", Filter{Query: "/in", State: Dead}, []string{}},
		{"a query for a host", Filter{Query: "example.NET", State: Dead}, []string{"second"}},
		{"a query for a value of a target's parameter", Filter{Query: "m=gate", State: Dead}, []string{"second"}},
		{"a reason of dead deliveries of an account", Filter{Reason: "FOR A", State: Dead, Account: 1}, []string{"second"}},
		{"a reason and a query", Filter{Reason: "for a", Query: "m-second", State: Dead}, []string{"second"}},
		{"a query of dead deliveries from and to", Filter{Query: "m-", State: Dead, From: timeAt(3), To: timeAt(5)}, []string{"mail"}},
		{"an account and a state", Filter{Account: 1, State: Queued}, []string{"receipt", "first"}},
		{"an account and dead deliveries", Filter{Account: 2, State: Dead}, []string{"mail"}},
		{"an account and delivered deliveries", Filter{Account: 2, State: Delivered}, []string{}},
		{"a number", Filter{Number: "4179"}, []string{"receipt"}},
		{"a wait in a state that has none", Filter{WaitsFor: WaitsForTurn, State: Dead}, []string{}},
		{"an unknown state", Filter{State: "x' OR 1 = 1 --"}, []string{}},
		{"ids in any order, some of them unknown or repeated", Filter{IDs: []string{"first", "x", "mail", "first"}}, []string{"mail", "first"}},
		{"ids and a state", Filter{IDs: []string{"first", "mail"}, State: Dead}, []string{"mail"}},
	}
	onEvery(t, db.Options{}, []testCase{{"by filter", func(r *rig) {
		second := createdAt(newDelivery("second"), 2)
		second.Request.URL = "https://robot@example.net/in?m=Gate"
		r.create(30, createdAt(newDelivery("first"), 1), second, receipt, mail)
		r.recordOutcomes(outcome(second, 5, Dead), outcome(mail, 6, Dead))
		for _, c := range cases {
			r.Run(c.name, func(t *testing.T) {
				if got := r.withT(t).listIDs(c.filter); !slices.Equal(got, c.want) {
					t.Errorf("listed %v, want %v", got, c.want)
				}
				texts := strings.Join(relaytest.Must(db.Values[string](t.Context(), r.db, "texts", "SELECT text FROM delivery_dead"))(t), "\n")
				if strings.Contains(texts, "/in") || strings.Contains(texts, "robot") {
					t.Errorf("the search texts contain the path or the user: %q", texts)
				}
				c.filter.Limit = 1
				if got := r.withT(t).listIDs(c.filter); !slices.Equal(got, c.want) {
					t.Errorf("page by page: got %v, want %v", got, c.want)
				}
			})
		}
	}}})
}

func TestPages(t *testing.T) {
	onEvery(t, db.Options{}, []testCase{
		{"contain each delivery once", pagesContainEachOnce},
		{"are not changed by new and replayed deliveries", pagesAreStable},
		{"end after the maximum number of scanned deliveries", pageEndsAfterMaxScanned},
		{"are the same for every step size", stepsFindAllMatches},
		{"end after the maximum number of compared deliveries", pageEndsAfterMaxCompared},
	})
}

func pagesContainEachOnce(r *rig) {
	var ds []Delivery
	for i := range 60 {
		// 20 deliveries share each creation time, within an account and across accounts.
		d := inAccount(relay.AccountID(1+i%3), createdAt(newDelivery(fmt.Sprintf("%03d", i)), float64(i/20)))
		ds = append(ds, d)
	}
	r.create(100, ds...)
	for _, limit := range []int{1, 7, 20, 59, 60, 61} {
		got := r.listIDs(Filter{Limit: limit})
		sorted := slices.Sorted(slices.Values(got))
		if len(got) != 60 || len(slices.Compact(sorted)) != 60 {
			r.Errorf("limit %d: got %d deliveries, %d of them distinct, want 60", limit, len(got), len(slices.Compact(sorted)))
		}
		if got[0] != "059" || got[59] != "000" {
			r.Errorf("limit %d: order %v, want 059 to 000", limit, got)
		}
	}
}

func pagesAreStable(r *rig) {
	for i := range 20 {
		d := createdAt(newDelivery(fmt.Sprintf("%02d", i)), float64(i))
		r.create(100, d)
		r.recordOutcomes(outcome(d, 1, Dead))
	}
	f := Filter{State: Dead, Limit: 5}
	_, cursor, err := r.List(r.Context(), f)
	if err != nil {
		r.Fatal(err)
	}
	if _, err := r.Replay(r.Context(), refs("19", "15"), timeAt(200), false); err != nil {
		r.Fatal(err)
	}
	newer := createdAt(newDelivery("new"), 50)
	r.create(100, newer)
	r.recordOutcomes(outcome(newer, 60, Dead))
	f.Cursor = cursor
	if got := r.listIDs(f); len(got) != 15 || got[0] != "14" || got[14] != "00" {
		r.Errorf("got %v, want 14 to 00", got)
	}
}

// pageEndsAfterMaxScanned searches for text that no index contains, in a delivery that
// follows more deliveries than a page may scan.
func pageEndsAfterMaxScanned(r *rig) {
	first := createdAt(newDelivery("first"), 0)
	r.create(30, first)
	ds := make([]Delivery, 1200)
	for i := range ds {
		ds[i] = createdAt(newDelivery(fmt.Sprint(i)), 1+float64(i)/1000)
	}
	r.create(30, ds...)
	r.maxScanned = 700
	f := Filter{Query: "M-FIRST", Limit: 10}
	page, cursor, err := r.List(r.Context(), f)
	if err != nil || len(page) != 0 || cursor == "" {
		r.Fatalf("first page: %d deliveries, cursor %q, error %v; want none and a cursor", len(page), cursor, err)
	}
	f.Cursor = cursor
	page, cursor, err = r.List(r.Context(), f)
	if err != nil || len(page) != 1 || page[0].ID != "first" || cursor != "" {
		r.Errorf("second page: %d deliveries, cursor %q, error %v; want first and no cursor", len(page), cursor, err)
	}
	// A search whose time has passed ends after the first statement, which reads 11 deliveries.
	f.Cursor, f.SearchUntil = "", timeAt(0)
	page, cursor, err = r.List(r.Context(), f)
	if oldest := timeAt(2.189); err != nil || len(page) != 0 || !SearchedTo(cursor).Equal(oldest) {
		r.Errorf("late search: %d deliveries, searched to %v, error %v; want 0 and %v", len(page), SearchedTo(cursor), err, oldest)
	}
}

// stepsFindAllMatches searches for a number that no index contains, with step sizes that end
// within and between groups of deliveries with equal creation times.
func stepsFindAllMatches(r *rig) {
	for i := range 60 {
		d := createdAt(newDelivery(fmt.Sprintf("%02d", i)), float64(i/4)) // four per second
		d.Originator, d.Relay = fmt.Sprint(i%10), fmt.Sprint(i%2)
		r.create(100, d)
		if i%3 == 0 {
			r.recordOutcomes(outcome(d, 1, Delivered))
		}
	}
	for _, step := range []int{1, 3, 4, 7, 1000} {
		r.step = step
		for _, tc := range []struct {
			f    Filter
			want int
		}{
			{Filter{Number: "7"}, 6}, {Filter{Number: "7", Limit: 2}, 6}, {Filter{Relay: "1", Limit: 3}, 30},
			{Filter{Relay: "1", State: Delivered}, 10}, {Filter{Number: "none"}, 0},
			{Filter{Relay: "1", From: timeAt(5), To: timeAt(6)}, 4}, {Filter{Number: "7", Account: 1, State: Queued}, 4},
		} {
			if got := r.listIDs(tc.f); len(got) != tc.want || !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
				r.Errorf("step %d, %+v: %v, want %d", step, tc.f, got, tc.want)
			}
		}
	}
}

// pageEndsAfterMaxCompared uses a filter that matches nothing.
func pageEndsAfterMaxCompared(r *rig) {
	ds := make([]Delivery, 100)
	for i := range ds {
		ds[i] = createdAt(newDelivery(fmt.Sprintf("%03d", i)), float64(i))
	}
	r.create(100, ds...)
	r.step, r.maxCompared = 10, 30
	page, cursor, err := r.List(r.Context(), Filter{Number: "none"})
	if err != nil || len(page) != 0 {
		r.Fatalf("%d deliveries, error %v; want none", len(page), err)
	}
	if want := (position{timeAt(70).UnixNano(), refs("070")[0]}).String(); cursor != want {
		r.Errorf("cursor = %q, want %q, that of the 30th delivery", cursor, want)
	}
	r.maxCompared = 1000
	if page, cursor, err := r.List(r.Context(), Filter{Number: "none"}); err != nil || len(page) != 0 || cursor != "" {
		r.Errorf("without the limit: %d deliveries, cursor %q, error %v; want none", len(page), cursor, err)
	}
}

func TestInvalidCursorsAreRefused(t *testing.T) {
	s := NewStore(dbtest.Open(t, db.Options{}))
	for _, cursor := range []string{"x", "!!", "MSAy", "YSBiIGM"} {
		if _, _, err := s.List(t.Context(), Filter{Cursor: cursor}); relay.KindOf(err) != relay.KindInvalid {
			t.Errorf("cursor %q: error %v, want kind invalid", cursor, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add(position{1, Ref{Account: 3, ID: "a b"}}.String())
	f.Add("")
	f.Add("MSAyIDM")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parseCursor(s)
		if err != nil {
			return
		}
		if reparsed, err := parseCursor(p.String()); err != nil || reparsed != p {
			t.Errorf("parseCursor(%q) = %+v, and its String parses as %+v, error %v; want the same", s, p, reparsed, err)
		}
	})
}

// The body of a callback may have the texts of tokens, which are stored encrypted only.
func TestBodiesOfCallbacksAreNotStoredUnencrypted(t *testing.T) {
	onEvery(t, db.Options{}, []testCase{{"a dead callback", func(r *rig) {
		callback := newDelivery("callback")
		callback.Kind, callback.Request.Body = KindCallback, []byte(`{"token":"secret-of-a-token"}`)
		r.create(30, callback)
		r.recordOutcomes(outcome(callback, 5, Dead))
		texts := strings.Join(relaytest.Must(db.Values[string](r.Context(), r.db, "texts", "SELECT text FROM delivery_dead"))(r.T), "\n")
		if !strings.Contains(texts, "callback") || strings.Contains(texts, "secret-of-a-token") {
			r.Errorf("search texts = %q, want the id and no body", texts)
		}
		if got := r.listIDs(Filter{Query: "callback"}); !slices.Equal(got, []string{"callback"}) {
			r.Errorf("found by id: %v, want the callback", got)
		}
	}}})
}
