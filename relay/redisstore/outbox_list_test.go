package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// listed loads all pages of a filter and returns their ids.
func listAll(t testing.TB, s *Outbox, f outbox.Filter) []string {
	t.Helper()
	ids := []string{}
	for range 1000 {
		page, next, err := s.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if f.Limit > 0 && (len(page) > f.Limit || next != "" && len(page) < f.Limit) {
			t.Fatalf("page of %d, limit %d, next %q", len(page), f.Limit, next)
		}
		for _, d := range page {
			ids = append(ids, d.ID)
		}
		if f.Cursor = next; next == "" {
			return ids
		}
	}
	t.Fatal("the list does not end")
	return nil
}

func TestListSelects(t *testing.T) {
	mail := outbox.Delivery{
		ID: "mail", Account: 2, Kind: outbox.KindRelay, Relay: "v1", MessageID: "m-mail", CreatedAt: at(4),
		Mail: &outbox.Mail{To: "Ops@Example.org", Subject: "SMS", Text: "Zähler 17 <leer> & \"alt\""},
	}
	receipt := created(post("receipt"), 3)
	receipt.Kind, receipt.Relay = outbox.KindReceipt, ""
	cases := []struct {
		name   string
		filter outbox.Filter
		want   []string
	}{
		{"nothing asked for: all accounts, newest first", outbox.Filter{}, []string{"mail", "receipt", "second", "first"}},
		{"a state", outbox.Filter{State: outbox.Dead}, []string{"mail", "second"}},
		{"an account", outbox.Filter{Account: 1}, []string{"receipt", "second", "first"}},
		{"an account that has none", outbox.Filter{Account: 9}, []string{}},
		{"a kind", outbox.Filter{Kind: outbox.KindReceipt}, []string{"receipt"}},
		{"a relay", outbox.Filter{Relay: "v1"}, []string{"mail"}},
		{"a part of the target in any case", outbox.Filter{Target: "ops@example"}, []string{"mail"}},
		{"from and to, both included", outbox.Filter{From: at(2), To: at(3)}, []string{"receipt", "second"}},
		{"a query in the text, with characters that JSON escapes", outbox.Filter{Query: `<LEER> & "alt"`}, []string{"mail"}},
		{"a query in the reason", outbox.Filter{Query: "dead for a"}, []string{"mail", "second"}},
		{"a query in the message id", outbox.Filter{Query: "m-first"}, []string{"first"}},
		{"a query in the body", outbox.Filter{Query: "grüße", State: outbox.Queued}, []string{"receipt", "first"}},
		{"ids, whatever their order, unknown and repeated ones", outbox.Filter{IDs: []string{"first", "x", "mail", "first"}}, []string{"mail", "first"}},
		{"ids and a state", outbox.Filter{IDs: []string{"first", "mail"}, State: outbox.Dead}, []string{"mail"}},
	}
	onEvery(t, func(t *testing.T, open func(*testing.T) *DB) {
		s := open(t).Outbox()
		second := created(post("second"), 2)
		create(t, s, at(30), created(post("first"), 1), second, receipt, mail)
		finish(t, s, outcome(second, 5, outbox.Dead), outcome(mail, 6, outbox.Dead))
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				if got := listAll(t, s, c.filter); !slices.Equal(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
				c.filter.Limit = 1
				if got := listAll(t, s, c.filter); !slices.Equal(got, c.want) {
					t.Errorf("page by page: got %v, want %v", got, c.want)
				}
			})
		}
	})
}

func TestPagesHoldEveryDeliveryOnce(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(*testing.T) *DB) {
		s := open(t).Outbox()
		var ds []outbox.Delivery
		for i := range 60 {
			// Some share a millisecond, within an account and across accounts.
			d := of(account.ID(1+i%3), created(post(fmt.Sprintf("%03d", i)), float64(i/20)))
			ds = append(ds, d)
		}
		create(t, s, at(100), ds...)
		for _, limit := range []int{1, 7, 20, 59, 60, 61} {
			got := listAll(t, s, outbox.Filter{Limit: limit})
			sorted := slices.Sorted(slices.Values(got))
			if len(got) != 60 || len(slices.Compact(sorted)) != 60 {
				t.Errorf("limit %d: %d deliveries, %d different", limit, len(got), len(slices.Compact(sorted)))
			}
			if got[0] != "059" || got[59] != "000" {
				t.Errorf("limit %d: order %v", limit, got)
			}
		}
	})
}

func TestDeliveriesThatComeAndGoLeaveThePagesBehindAlone(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(*testing.T) *DB) {
		s := open(t).Outbox()
		for i := range 20 {
			d := created(post(fmt.Sprintf("%02d", i)), float64(i))
			create(t, s, at(100), d)
			finish(t, s, outcome(d, 1, outbox.Dead))
		}
		f := outbox.Filter{State: outbox.Dead, Limit: 5}
		_, next, err := s.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		refs := []outbox.Ref{{Account: 1, ID: "19"}, {Account: 1, ID: "15"}}
		if _, err := s.Replay(t.Context(), refs, at(200), false); err != nil {
			t.Fatal(err)
		}
		newer := created(post("new"), 50)
		create(t, s, at(100), newer)
		finish(t, s, outcome(newer, 60, outbox.Dead))
		f.Cursor = next
		if got := listAll(t, s, f); len(got) != 15 || got[0] != "14" || got[14] != "00" {
			t.Errorf("got %v", got)
		}
	})
}

func TestACursorThatIsNoneIsRefused(t *testing.T) {
	s := openURL(t, "redis://127.0.0.1:1").Outbox()
	for _, cursor := range []string{"x", "!!", "MSAy", "YSBiIGM"} {
		if _, _, err := s.List(t.Context(), outbox.Filter{Cursor: cursor}); relay.KindOf(err) != relay.KindInvalid {
			t.Errorf("%q: %v", cursor, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add(position{ms: 1, id: "a b", account: 3}.String())
	f.Add("")
	f.Add("MSAyIDM")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parseCursor(s)
		if err != nil || p == nil {
			return
		}
		if again, err := parseCursor(p.String()); err != nil || *again != *p {
			t.Errorf("%q is %+v, then %+v (%v)", s, p, again, err)
		}
	})
}

// BenchmarkList filters 20,000 dead deliveries with eleven attempts each for
// one that comes last.
func BenchmarkList(b *testing.B) {
	s := benchServer(b).Outbox()
	const n = 20000
	for start := 0; start < n; start += 1000 {
		var ds []outbox.Delivery
		var os []outbox.Outcome
		for i := start; i < start+1000; i++ {
			d := of(account.ID(1+i%5), created(post(fmt.Sprintf("%05d", i)), float64(i)))
			d.Request.Body = []byte(strings.Repeat("text ", 40))
			ds = append(ds, d)
			for a := range 11 {
				o := outcome(d, float64(a), outbox.Retrying)
				o.Attempt.Response = strings.Repeat("x", 500)
				if a == 10 {
					o.State = outbox.Dead
				}
				os = append(os, o)
			}
		}
		create(b, s, at(0), ds...)
		finish(b, s, os...)
	}
	for b.Loop() {
		page, _, err := s.List(b.Context(), outbox.Filter{State: outbox.Dead, Query: "m-00000"})
		if err != nil || len(page) != 1 {
			b.Fatalf("%d, %v", len(page), err)
		}
	}
}

// BenchmarkDue asks what is due while a million deliveries wait.
func BenchmarkDue(b *testing.B) {
	s := benchServer(b).Outbox()
	const n = 1_000_000
	for start := 0; start < n; start += 5000 {
		ds := make([]outbox.Delivery, 5000)
		for i := range ds {
			ds[i] = of(account.ID(1+i%10), created(post(fmt.Sprintf("%07d", start+i)), 0))
		}
		create(b, s, at(float64(start+1)), ds...)
	}
	for b.Loop() {
		if refs, err := s.Due(b.Context(), at(0), 1000); err != nil || len(refs) != 0 {
			b.Fatalf("%d, %v", len(refs), err)
		}
	}
	began := time.Now()
	if refs, err := s.Due(b.Context(), at(5000), 1000); err != nil || len(refs) != 1000 {
		b.Fatalf("%d, %v", len(refs), err)
	}
	b.ReportMetric(float64(time.Since(began).Microseconds()), "µs/1000-due")
}
