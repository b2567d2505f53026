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
		ID: "mail", Account: 2, Kind: KindRelay, Relay: "v1", MessageID: "m-mail", CreatedAt: at(4),
		Mail: &Mail{To: "Ops@Example.org", Subject: "SMS", Text: "Zähler 17 <leer> & \"alt\""},
	}
	receipt := created(post("receipt"), 3)
	receipt.Kind, receipt.Relay, receipt.Destination = KindReport, "", "4179"
	cases := []struct {
		name   string
		filter Filter
		want   []string
	}{
		{"nothing asked for: all accounts, newest first", Filter{}, []string{"mail", "receipt", "second", "first"}},
		{"a state", Filter{State: Dead}, []string{"mail", "second"}},
		{"an account", Filter{Account: 1}, []string{"receipt", "second", "first"}},
		{"an account that has none", Filter{Account: 9}, []string{}},
		{"a kind", Filter{Kind: KindReport}, []string{"receipt"}},
		{"a relay", Filter{Relay: "v1"}, []string{"mail"}},
		{"a part of the target in any case", Filter{Target: "ops@example"}, []string{"mail"}},
		{"from and to, both included", Filter{From: at(2), To: at(3)}, []string{"receipt", "second"}},
		{"a query in the text, with characters that JSON escapes", Filter{Query: `<LEER> & "alt"`}, []string{"mail"}},
		{"a query in the reason", Filter{Query: "dead for a"}, []string{"mail", "second"}},
		{"a query in the message id", Filter{Query: "m-first"}, []string{"first"}},
		{"a query in the body", Filter{Query: "grüße", State: Queued}, []string{"receipt", "first"}},
		{"a query of a dead one's text, with characters that JSON escapes", Filter{Query: `<LEER> & "alt"`, State: Dead}, []string{"mail"}},
		{"a query of a dead one's text in any case, beyond ASCII", Filter{Query: "ZÄHLER", State: Dead}, []string{"mail"}},
		{"a query of two letters", Filter{Query: "äh", State: Dead}, []string{"mail"}},
		{"a query with what is special in LIKE", Filter{Query: "1_ <l", State: Dead}, []string{}},
		{"a query with a percent sign and a backslash", Filter{Query: `%\`, State: Dead}, []string{}},
		{"a target of a dead one", Filter{Target: "ops@EXAMPLE", State: Dead}, []string{"mail"}},
		{"a target that stands in the text alone", Filter{Target: "zähler", State: Dead}, []string{}},
		{"a target as it is shown, without the values of its parameters", Filter{Target: "/in?m=***", State: Dead}, []string{"second"}},
		{"a target and a reason", Filter{Target: "/in?m=", Reason: "for a", State: Dead}, []string{"second"}},
		{"a path, which may be a secret, is found as a target alone", Filter{Query: "/in", State: Dead}, []string{}},
		{"a host", Filter{Query: "example.NET", State: Dead}, []string{"second"}},
		{"a value of a target's parameter", Filter{Query: "m=gate", State: Dead}, []string{"second"}},
		{"a reason of a dead one of an account", Filter{Reason: "FOR A", State: Dead, Account: 1}, []string{"second"}},
		{"a reason and a query", Filter{Reason: "for a", Query: "m-second", State: Dead}, []string{"second"}},
		{"a query of dead ones from and to", Filter{Query: "m-", State: Dead, From: at(3), To: at(5)}, []string{"mail"}},
		{"an account and a state", Filter{Account: 1, State: Queued}, []string{"receipt", "first"}},
		{"an account and those that are dead", Filter{Account: 2, State: Dead}, []string{"mail"}},
		{"an account and those that arrived", Filter{Account: 2, State: Delivered}, []string{}},
		{"a number", Filter{Number: "4179"}, []string{"receipt"}},
		{"a state that waits for nothing", Filter{Waits: WaitsForTurn, State: Dead}, []string{}},
		{"no such state", Filter{State: "x' OR 1 = 1 --"}, []string{}},
		{"ids, whatever their order, unknown and repeated ones", Filter{IDs: []string{"first", "x", "mail", "first"}}, []string{"mail", "first"}},
		{"ids and a state", Filter{IDs: []string{"first", "mail"}, State: Dead}, []string{"mail"}},
	}
	onEvery(t, db.Options{}, []testCase{{"by", func(r *rig) {
		second := created(post("second"), 2)
		second.Request.URL = "https://robot@example.net/in?m=Gate"
		r.create(30, created(post("first"), 1), second, receipt, mail)
		r.finished(outcome(second, 5, Dead), outcome(mail, 6, Dead))
		for _, c := range cases {
			r.Run(c.name, func(t *testing.T) {
				if got := r.on(t).listed(c.filter); !slices.Equal(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
				texts := strings.Join(relaytest.Must(db.Values[string](t.Context(), r.db, "texts", "SELECT text FROM delivery_dead"))(t), "\n")
				if strings.Contains(texts, "/in") || strings.Contains(texts, "robot") {
					t.Errorf("the texts have the path or the user: %q", texts)
				}
				c.filter.Limit = 1
				if got := r.on(t).listed(c.filter); !slices.Equal(got, c.want) {
					t.Errorf("page by page: got %v, want %v", got, c.want)
				}
			})
		}
	}}})
}

func TestPages(t *testing.T) {
	onEvery(t, db.Options{}, []testCase{
		{"hold every delivery once", pagesHoldEachOnce},
		{"are left alone by deliveries that come and go", pagesAreLeftAlone},
		{"end after so many that were read, and go on from there", pagesGoOn},
		{"are found step by step", stepsGoOn},
		{"end after so many that were compared", aPageComparesSoMany},
	})
}

func pagesHoldEachOnce(r *rig) {
	var ds []Delivery
	for i := range 60 {
		// Some share a millisecond, within an account and across accounts.
		d := of(relay.AccountID(1+i%3), created(post(fmt.Sprintf("%03d", i)), float64(i/20)))
		ds = append(ds, d)
	}
	r.create(100, ds...)
	for _, limit := range []int{1, 7, 20, 59, 60, 61} {
		got := r.listed(Filter{Limit: limit})
		sorted := slices.Sorted(slices.Values(got))
		if len(got) != 60 || len(slices.Compact(sorted)) != 60 {
			r.Errorf("limit %d: %d deliveries, %d different", limit, len(got), len(slices.Compact(sorted)))
		}
		if got[0] != "059" || got[59] != "000" {
			r.Errorf("limit %d: order %v", limit, got)
		}
	}
}

func pagesAreLeftAlone(r *rig) {
	for i := range 20 {
		d := created(post(fmt.Sprintf("%02d", i)), float64(i))
		r.create(100, d)
		r.finished(outcome(d, 1, Dead))
	}
	f := Filter{State: Dead, Limit: 5}
	_, next, err := r.List(r.Context(), f)
	if err != nil {
		r.Fatal(err)
	}
	if _, err := r.Replay(r.Context(), refs("19", "15"), at(200), false); err != nil {
		r.Fatal(err)
	}
	newer := created(post("new"), 50)
	r.create(100, newer)
	r.finished(outcome(newer, 60, Dead))
	f.Cursor = next
	if got := r.listed(f); len(got) != 15 || got[0] != "14" || got[14] != "00" {
		r.Errorf("got %v", got)
	}
}

// pagesGoOn looks for a text that no index has, behind more deliveries than one
// page reads.
func pagesGoOn(r *rig) {
	first := created(post("first"), 0)
	r.create(30, first)
	ds := make([]Delivery, 1200)
	for i := range ds {
		ds[i] = created(post(fmt.Sprint(i)), 1+float64(i)/1000)
	}
	r.create(30, ds...)
	r.maxScanned = 700
	f := Filter{Query: "M-FIRST", Limit: 10}
	page, next, err := r.List(r.Context(), f)
	if err != nil || len(page) != 0 || next == "" {
		r.Fatalf("%d deliveries, next %q, error %v", len(page), next, err)
	}
	f.Cursor = next
	page, next, err = r.List(r.Context(), f)
	if err != nil || len(page) != 1 || page[0].ID != "first" || next != "" {
		r.Errorf("%d deliveries, next %q, error %v", len(page), next, err)
	}
	// A search whose time has passed ends after the first statement, which reads 11 deliveries.
	f.Cursor, f.SearchUntil = "", at(0)
	page, next, err = r.List(r.Context(), f)
	if oldest := at(2.189); err != nil || len(page) != 0 || !SearchedTo(next).Equal(oldest) {
		r.Errorf("%d deliveries, searched to %v, error %v, want 0 and %v", len(page), SearchedTo(next), err, oldest)
	}
}

// stepsGoOn looks for a number that no index has, by steps that end between deliveries
// of one time and among them.
func stepsGoOn(r *rig) {
	for i := range 60 {
		d := created(post(fmt.Sprintf("%02d", i)), float64(i/4)) // four of each second
		d.Originator, d.Relay = fmt.Sprint(i%10), fmt.Sprint(i%2)
		r.create(100, d)
		if i%3 == 0 {
			r.finished(outcome(d, 1, Delivered))
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
			{Filter{Relay: "1", From: at(5), To: at(6)}, 4}, {Filter{Number: "7", Account: 1, State: Queued}, 4},
		} {
			if got := r.listed(tc.f); len(got) != tc.want || !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
				r.Errorf("step %d, %+v: %v, want %d", step, tc.f, got, tc.want)
			}
		}
	}
}

// A filter that finds nothing ends a page after so many comparisons.
func aPageComparesSoMany(r *rig) {
	ds := make([]Delivery, 100)
	for i := range ds {
		ds[i] = created(post(fmt.Sprintf("%03d", i)), float64(i))
	}
	r.create(100, ds...)
	r.step, r.maxCompared = 10, 30
	page, next, err := r.List(r.Context(), Filter{Number: "none"})
	if err != nil || len(page) != 0 {
		r.Fatalf("%d deliveries, error %v", len(page), err)
	}
	if want := (position{at(70).UnixNano(), refs("070")[0]}).String(); next != want {
		r.Errorf("cursor %q, want %q, the 30th", next, want)
	}
	r.maxCompared = 1000
	if page, next, err := r.List(r.Context(), Filter{Number: "none"}); err != nil || len(page) != 0 || next != "" {
		r.Errorf("short list: %d deliveries, next %q, error %v", len(page), next, err)
	}
}

func TestACursorThatIsNoneIsRefused(t *testing.T) {
	s := NewStore(dbtest.Open(t, db.Options{}))
	for _, cursor := range []string{"x", "!!", "MSAy", "YSBiIGM"} {
		if _, _, err := s.List(t.Context(), Filter{Cursor: cursor}); relay.KindOf(err) != relay.KindInvalid {
			t.Errorf("%q: %v", cursor, err)
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
		if again, err := parseCursor(p.String()); err != nil || again != p {
			t.Errorf("%q is %+v, then %+v (%v)", s, p, again, err)
		}
	})
}
