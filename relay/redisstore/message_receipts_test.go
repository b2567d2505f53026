package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

func TestReceiptsFindTheirParts(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		m := p.letter(1)
		m.Report.URL = "https://example.com/"
		p.put(m)
		p.start(m, 1, false)
		part := message.PartRef{Ref: m.Ref()}
		early := message.Receipt{Carrier: "c1", IDs: []string{"a1", "161"}, State: message.Buffered, Line: "stat:ENROUTE", At: at(2)}
		got, err := p.Match(p.Context(), []message.Receipt{early})
		p.must(err)
		if got[0].Found {
			p.Fatal("found before it was bound")
		}
		bound, err := p.Bind(p.Context(), []message.Binding{{Carrier: "c1", IDs: []string{"A1", "161"}, Part: part}})
		p.must(err)
		if len(bound) != 1 || bound[0].Part != part || !bound[0].Found || bound[0].Line != early.Line || !bound[0].At.Equal(early.At) {
			p.Fatalf("%+v", bound)
		}
		_, err = p.Settle(p.Context(), []message.Outcome{{PartRef: part, State: message.Accepted, Carrier: "c1", Ref: "161", At: at(3)}})
		p.must(err)
		ms, err := p.Receive(p.Context(), bound, at(3))
		p.must(err)
		if len(ms) != 1 || ms[0].Parts[0].State != message.Buffered || ms[0].Parts[0].Report != early.Line || !ms[0].Parts[0].ChangedAt.Equal(at(2)) {
			p.Fatalf("%+v", ms)
		}
		late := message.Receipt{Carrier: "c1", IDs: []string{"0", "161"}, State: message.Delivered, Line: "stat:DELIVRD", At: at(4)}
		other := message.Receipt{Carrier: "c2", IDs: []string{"161"}, State: message.Delivered, At: at(4)}
		got, err = p.Match(p.Context(), []message.Receipt{late, other})
		p.must(err)
		if !got[0].Found || got[0].Part != part || got[1].Found {
			p.Fatalf("%+v", got)
		}
		ms, err = p.Receive(p.Context(), got, at(4))
		p.must(err)
		p.same("wants reports", len(ms), 1)
		p.are(m.ID, "delivered ")
		for _, state := range []message.State{message.Undelivered, message.Buffered, message.Accepted, message.Delivered} {
			got[0].State = state
			ms, err = p.Receive(p.Context(), got, at(5))
			p.must(err)
			p.same("after the end", len(ms), 0)
		}
		p.are(m.ID, "delivered ")
	})
}

// 4112 is 1010 in hexadecimal: which of them a receipt is about, its number says.
func TestAnotherWayToWriteAnIDIsNotAnothersID(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		of := func(id message.ID) message.PartRef { return message.PartRef{Ref: message.Ref{Account: 1, ID: id}} }
		bind := func(part message.PartRef, id, number string) []message.Receipt {
			early, err := p.Bind(p.Context(), []message.Binding{{Carrier: "c1", IDs: []string{id}, Part: part, Number: number}})
			p.must(err)
			return early
		}
		match := func(numbers ...string) message.Receipt {
			got, err := p.Match(p.Context(), []message.Receipt{{Carrier: "c1", IDs: []string{"4112", "1010", "16658"}, Numbers: numbers, State: message.Delivered, At: at(1)}})
			p.must(err)
			return got[0]
		}
		bind(of(7), "1010", "447700900123")
		if got := match("447700900456", "447800000001"); got.Found {
			p.Fatalf("another's: %+v", got)
		}
		for _, numbers := range [][]string{nil, {"07700900123"}, {"447800000001", "447700900123"}} {
			if got := match(numbers...); !got.Found || got.Part != of(7) {
				p.Fatalf("%v: %+v", numbers, got)
			}
		}
		p.same("early, for another number", len(bind(of(8), "16658", "447700900123")), 0)
		p.same("early, for its own", len(bind(of(9), "4112", "447700900456")), 1)
		if got := match("447700900456"); !got.Found || got.Part != of(9) {
			p.Fatalf("%+v", got)
		}
	})
}

// Whoever binds and does not live to record what came before binds again.
func TestEarlyReceiptsAreThereForWhoBindsAgain(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		part := message.PartRef{Ref: message.Ref{Account: 1, ID: 7}}
		other := message.PartRef{Ref: message.Ref{Account: 1, ID: 8}}
		_, err := p.Match(p.Context(), []message.Receipt{{Carrier: "c1", IDs: []string{"a1"}, State: message.Delivered, At: at(1)}})
		p.must(err)
		for i, tc := range []struct {
			part message.PartRef
			want int
		}{{part, 1}, {part, 1}, {other, 0}, {part, 0}} {
			early, err := p.Bind(p.Context(), []message.Binding{{Carrier: "c1", IDs: []string{"a1"}, Part: tc.part}})
			p.must(err)
			if len(early) != tc.want || tc.want == 1 && early[0].Part != tc.part {
				p.Fatalf("%d: %+v", i, early)
			}
		}
	})
}

func TestReportsStayUntilTheyAreTold(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		m, quiet := p.letter(1), p.letter(1)
		m.Report.URL = "https://example.com/"
		p.put(m, quiet)
		settle := func(id message.ID, state message.State) []message.Message {
			t.Helper()
			ms, err := p.Settle(p.Context(), []message.Outcome{{PartRef: message.PartRef{Ref: message.Ref{Account: 1, ID: id}}, State: state, At: at(5)}})
			p.must(err)
			return ms
		}
		untold := func(before float64) int {
			t.Helper()
			ms, err := p.Untold(p.Context(), at(before), 10)
			p.must(err)
			return len(ms)
		}
		p.start(m, 1, false)
		p.start(quiet, 1, false)
		p.same("of who wants none", len(settle(quiet.ID, message.Accepted)), 0)
		first := settle(m.ID, message.Accepted)
		p.same("untold", []int{len(first), untold(4), untold(5)}, []int{1, 0, 1})
		second, err := p.Receive(p.Context(), []message.Receipt{{State: message.Delivered, At: at(6), Part: message.PartRef{Ref: m.Ref()}, Found: true}}, at(6))
		p.must(err)
		p.must(p.Told(p.Context(), first))
		p.same("more has come since", untold(10), 1)
		p.must(p.Told(p.Context(), second))
		p.same("all is told", untold(10), 0)
	})
}

func TestMessagesThatHaveExpiredHoldUpNoReports(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		gone, m := p.letter(1), p.letter(1)
		gone.Report.URL, m.Report.URL = "https://example.com/", "https://example.com/"
		p.put(gone, m)
		for i, one := range []message.Message{gone, m} {
			_, err := p.Receive(p.Context(), []message.Receipt{{State: message.Delivered, At: at(1), Part: message.PartRef{Ref: one.Ref()}, Found: true}}, at(float64(1+i)))
			p.must(err)
		}
		p.must(p.db.rdb.HDel(p.Context(), keyMessageParts(1), gone.ID.String()).Err())
		for _, want := range []int{0, 1} {
			ms, err := p.Untold(p.Context(), at(9), 1)
			p.must(err)
			p.same("untold", len(ms), want)
		}
	})
}

func TestAKeyMakesOneOrder(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		save := func(once message.Once) (string, error) {
			t.Helper()
			saved, err := p.Save(p.Context(), message.Batch{Account: 1, Messages: []message.Message{p.letter(1)}, Now: at(0), Once: once})
			return string(saved.Before), err
		}
		once := message.Once{Key: "k", Order: "o", Answer: []byte(`{"a":"|"}`), Keep: time.Hour}
		for i, want := range []string{"", `{"a":"|"}`, `{"a":"|"}`} {
			if got, err := save(once); err != nil || got != want {
				p.Fatalf("%d: %q, %v", i, got, err)
			}
		}
		p.has(9)
		once.Order = "another"
		if _, err := save(once); relay.KindOf(err) != relay.KindConflict {
			p.Fatal(err)
		}
		once.Key = "another"
		if got, err := save(once); err != nil || got != "" {
			p.Fatalf("%q, %v", got, err)
		}
		p.has(8)
		p.same("pending", len(p.pending()), 2)
	})
}

// What 40 clients send at a time is paid for from one credit, and what they
// repeat under one key is sent once.
func TestManyOrdersAtATime(t *testing.T) {
	onEveryDesk(t, 50, func(p desk) {
		var sent, refused, repeated atomic.Int64
		var running sync.WaitGroup
		for i := range 40 {
			running.Go(func() {
				ctx := context.WithoutCancel(p.Context())
				for n := range 3 {
					b := message.Batch{Account: 1, Messages: []message.Message{p.letter(2)}, Now: at(0)}
					if n == 0 {
						b.Once = message.Once{Key: "k", Order: "o", Answer: []byte("a"), Keep: time.Hour}
					}
					saved, err := p.Save(ctx, b)
					switch {
					case err == nil && saved.Before != nil:
						repeated.Add(1)
					case err == nil:
						sent.Add(1)
					case relay.KindOf(err) == relay.KindNoCredit:
						refused.Add(1)
					default:
						t.Error(i, err)
					}
				}
			})
		}
		running.Wait()
		p.has(0)
		if sent.Load() != 25 || sent.Load()+refused.Load()+repeated.Load() != 120 {
			t.Errorf("%d sent, %d refused, %d repeated", sent.Load(), refused.Load(), repeated.Load())
		}
		p.same("pending", len(p.pending()), 50)
	})
}
