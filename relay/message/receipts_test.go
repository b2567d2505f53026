package message

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestReceipts(t *testing.T) {
	onEvery(t, []testCase{
		{"receipts find their parts", 10, receiptsFindTheirParts},
		{"an id in another base is that of a message that waits for a receipt", 10, idsInAnotherBase},
		{"an early receipt in the base of another message waits for the answer", 10, earlyReceiptInAnotherBase},
		{"a receipt in another base belongs to a message that had no answer", 10, receiptInAnotherBaseIsHeld},
		{"early receipts are there when a binding is repeated", 10, bindingIsRepeated},
		{"early receipts are bounded in number and time", 10, earlyReceiptsAreBounded},
		{"ids expire", 10, idsExpire},
		{"an id may hold any bytes", 10, idsOfAnyBytes},
		{"an id that was used twice names the message of the number", 10, idUsedTwice},
		{"an id that was used twice before it was bound", 10, idUsedTwiceEarly},
		{"an id that is used again and again", 10, idUsedOften},
		{"one batch has an id twice", 10, idTwiceInABatch},
		{"reports stay until they are marked as reported", 10, reportsStay},
		{"nothing is left of forgotten messages", 100_000, nothingIsLeft},
	})
}

func receiptsFindTheirParts(p fixture) {
	m := p.message(1)
	m.Report.URL = "https://example.com/"
	p.save(m)
	p.handOver(m, 1, false)
	part := PartRef{Ref: m.Ref()}
	early := Receipt{Carrier: "c1", IDs: []string{"a1"}, OtherBases: []string{"161"}, State: Buffered, Line: "stat:ENROUTE", At: at(2)}
	if got := p.match(early); got.Found {
		p.Fatal("found before it was bound")
	}
	bound, err := p.SaveCarrierIDs(p.Context(), []CarrierID{{Carrier: "c1", ID: "A1", Part: part}, {Carrier: "c1", ID: "161", Part: part}})
	p.must(err)
	if len(bound) != 1 {
		p.Fatalf("bound: %d results, want %d", len(bound), 1)
	}
	relaytest.Equal(p, "bound[0].Part", bound[0].Part, part)
	relaytest.Equal(p, "bound[0].Found", bound[0].Found, true)
	relaytest.Equal(p, "bound[0].Line", bound[0].Line, early.Line)
	relaytest.Equal(p, "bound[0].At", bound[0].At, early.At)
	p.settlePart(m, 0, Outcome{State: Accepted, Carrier: "c1", CarrierID: "161", At: at(3)})
	ms, err := p.Receive(p.Context(), bound, at(3))
	p.must(err)
	if len(ms) != 1 {
		p.Fatalf("ms: %d results, want %d", len(ms), 1)
	}
	relaytest.Equal(p, "ms[0].Parts[0].State", ms[0].Parts[0].State, Buffered)
	relaytest.Equal(p, "ms[0].Parts[0].Report", ms[0].Parts[0].Report, early.Line)
	relaytest.Equal(p, "ms[0].Parts[0].ChangedAt", ms[0].Parts[0].ChangedAt, at(2))
	late := Receipt{Carrier: "c1", IDs: []string{"0"}, OtherBases: []string{"161"}, State: Delivered, Line: "stat:DELIVRD", At: at(4)}
	other := Receipt{Carrier: "c2", IDs: []string{"161"}, State: Delivered, At: at(4)}
	got, err := p.Match(p.Context(), []Receipt{late, other})
	p.must(err)
	relaytest.Equal(p, "got[0].Found", got[0].Found, true)
	relaytest.Equal(p, "got[0].Part", got[0].Part, part)
	relaytest.Equal(p, "got[1].Found", got[1].Found, false)
	ms, err = p.Receive(p.Context(), got, at(4))
	p.must(err)
	p.same("wants reports", len(ms), 1)
	p.inStates(m.ID, "delivered ")
	for _, state := range []State{Undelivered, Buffered, Accepted, Delivered} {
		got[0].State = state
		ms, err = p.Receive(p.Context(), got, at(5))
		p.must(err)
		p.same("after the end", len(ms), 0)
	}
	p.inStates(m.ID, "delivered ")
}

// match matches one receipt.
func (p fixture) match(r Receipt) Receipt {
	p.Helper()
	got, err := p.Match(p.Context(), []Receipt{r})
	p.must(err)
	return got[0]
}

// bind binds one id of carrier c1 to the first part of a message of account 1.
func (p fixture) bind(id ID, number string, refs ...string) []Receipt {
	p.Helper()
	ids := make([]CarrierID, len(refs))
	for i, ref := range refs {
		ids[i] = CarrierID{Carrier: "c1", ID: ref, Part: partOf(id), Number: number}
	}
	early, err := p.SaveCarrierIDs(p.Context(), ids)
	p.must(err)
	return early
}

func partOf(id ID) PartRef {
	return PartRef{Ref: Ref{Account: 1, ID: id}}
}

// sent saves a message of one part from Shop to 447700900123 and begins its part over
// carrier c1.
func (p fixture) sent() Message {
	p.Helper()
	m := p.message(1)
	p.save(m)
	p.handOver(m, 0, false)
	return m
}

// answered binds the id of the answer to a message's part and records that it was accepted.
func (p fixture) answered(m Message, ref string) []Receipt {
	p.Helper()
	early := p.bind(m.ID, m.Destination, ref)
	p.settlePart(m, 0, Outcome{State: Accepted, Carrier: "c1", CarrierID: ref, At: at(1)})
	return early
}

// ofBase16 is a receipt of the id 5232, which is 1470 in hexadecimal, for a message of sent.
func ofBase16() Receipt {
	return Receipt{
		Carrier: "c1", IDs: []string{"5232"}, OtherBases: []string{"1470", "21042"}, State: Delivered,
		Numbers: []string{"447700900123"}, Addresses: []string{"447700900123", "Shop"}, Line: "id:5232 stat:DELIVRD", At: at(2),
	}
}

func idsInAnotherBase(p fixture) {
	m := p.sent()
	p.answered(m, "1470")
	for name, tc := range map[string]struct {
		change func(r *Receipt)
		want   bool
	}{
		"as it was sent":               {func(*Receipt) {}, true},
		"with the addresses exchanged": {func(r *Receipt) { r.Addresses = []string{"Shop", "447700900123"} }, true},
		"in capitals":                  {func(r *Receipt) { r.Addresses[1] = "SHOP" }, true},
		"without addresses":            {func(r *Receipt) { r.Numbers, r.Addresses = nil, nil }, true},
		"without the originator":       {func(r *Receipt) { r.Addresses = r.Addresses[:1] }, true},
		"a national number":            {func(r *Receipt) { r.Numbers = []string{"07700900123"} }, true},
		"to another number":            {func(r *Receipt) { r.Numbers[0] = "447700900456" }, false},
		"from another originator":      {func(r *Receipt) { r.Addresses[1] = "Bank" }, false},
		"before it was sent":           {func(r *Receipt) { r.At = at(-600) }, false},
		"of another carrier":           {func(r *Receipt) { r.Carrier = "c2" }, false},
		"of another id":                {func(r *Receipt) { r.OtherBases = r.OtherBases[1:] }, false},
	} {
		r := ofBase16()
		tc.change(&r)
		p.same(name, p.match(r).Found, tc.want)
	}
	_, err := p.Receive(p.Context(), []Receipt{p.match(ofBase16())}, at(2))
	p.must(err)
	p.inStates(m.ID, "delivered ")
	p.same("the receipt that settled it, once more", p.match(ofBase16()).Part, PartRef{Ref: m.Ref()})
	later := ofBase16()
	later.Line, later.At = "id:5232 stat:DELIVRD done date:2607011201", at(3)
	p.same("another one, of a message that has ended", p.match(later).Found, false)
}

func earlyReceiptInAnotherBase(p fixture) {
	older := p.sent()
	p.answered(older, "1470")
	m := p.sent()
	r := p.match(ofBase16())
	p.same("before the answer", []bool{r.Found, r.Held}, []bool{false, true})
	early := p.answered(m, "5232")
	if len(early) != 1 {
		p.Fatalf("early receipts: %d results, want %d", len(early), 1)
	}
	relaytest.Equal(p, "early[0].Part", early[0].Part, PartRef{Ref: m.Ref()})
	relaytest.Equal(p, "early[0].Found", early[0].Found, true)
	r = p.match(r)
	p.same("matched again", []any{r.Found, r.Part.Ref}, []any{true, m.Ref()})

	// The binding of an id in another base is not what the receipt waits for.
	first, second := p.sent(), p.sent()
	r = ofBase16()
	r.IDs, r.OtherBases = []string{"5233"}, []string{"1471"}
	p.same("before both answers", p.match(r).Found, false)
	early = p.answered(first, "1471")
	p.same("held at the answer in another base", []any{len(early), early[0].Found, early[0].Held}, []any{1, false, true})
	early = p.answered(second, "5233")
	p.same("at its own answer", []any{len(early), early[0].Found, early[0].Part.Ref}, []any{1, true, second.Ref()})
}

func receiptInAnotherBaseIsHeld(p fixture) {
	m := p.sent()
	p.answered(m, "1470")
	other := p.sent()
	r := p.match(ofBase16())
	p.same("while another is not answered", []bool{r.Found, r.Held}, []bool{false, true})
	p.same("to another number", len(p.answered(other, "77")), 0)
	rows := p.rows("message_ref")
	r = p.match(r)
	p.same("after the answer", []any{r.Found, r.Held, r.Part.Ref}, []any{true, false, m.Ref()})
	p.same("rows", p.rows("message_ref"), rows)
}

// A worker that binds and does not live to record the receipts binds again.
func bindingIsRepeated(p fixture) {
	p.match(Receipt{Carrier: "c1", IDs: []string{"a1"}, State: Delivered, At: at(1)})
	for i, tc := range []struct {
		part ID
		want int
	}{{7, 1}, {7, 1}, {8, 0}, {7, 1}} {
		early := p.bind(tc.part, "", "a1")
		if len(early) != tc.want || tc.want == 1 && early[0].Part != partOf(tc.part) {
			p.Fatalf("%d: %+v", i, early)
		}
	}
}

// about is a receipt for the id a that names a number.
func about(number string) Receipt {
	return Receipt{Carrier: "c1", IDs: []string{"a"}, Numbers: []string{number, "447800000001"}, Destination: number, State: Delivered, At: at(1)}
}

func idUsedTwice(p fixture) {
	const first, second = "447700900123", "447700900456"
	p.bind(7, first, "a")
	p.same("of one that is not bound yet", p.match(about(second)).Found, false)
	early := p.bind(8, second, "a")
	if len(early) != 1 {
		p.Fatalf("early: %d results, want %d", len(early), 1)
	}
	relaytest.Equal(p, "early, [0].Part", early[0].Part, partOf(8))
	for number, id := range map[string]ID{first: 7, "07700900123": 7, second: 8} {
		p.same(number, p.match(about(number)).Part, partOf(id))
	}
	p.same("another number", p.match(about("447700900789")).Found, false)
	nameless := about(first)
	nameless.Numbers, nameless.Destination = nil, ""
	p.same("no number", p.match(nameless).Part, partOf(8))
	elsewhere := about("66777")
	elsewhere.Destination = ""
	p.same("the number of a service", p.match(elsewhere).Part, partOf(8))
	p.bind(9, first, "a")
	p.same("the same number once more", p.match(about(first)).Part, partOf(9))
	p.same("the other", p.match(about(second)).Part, partOf(8))
	p.ahead.Add(int64(boundTime))
	p.same("expired", p.match(about(first)).Found, false)
	p.same("bound anew", len(p.bind(10, second, "a")), 0)
	p.same("what expired is forgotten", p.match(about(first)).Found, false)
}

func idUsedTwiceEarly(p fixture) {
	p.match(about("447700900456"))
	p.match(about("447700900123"))
	for range 2 { // a binding may be repeated
		for id, number := range map[ID]string{7: "447700900123", 8: "447700900456"} {
			early := p.bind(id, number, "a")
			if len(early) != 1 {
				p.Fatalf("result of bind: %d results, want %d", len(early), 1)
			}
			relaytest.Equal(p, "result of bind, [0].Part", early[0].Part, partOf(id))
			relaytest.Equal(p, "result of bind, [0].Destination", early[0].Destination, number)
		}
	}
}

func idUsedOften(p fixture) {
	number := func(i int) string { return fmt.Sprintf("4477009%05d", i) }
	for i := range 100 {
		p.bind(ID(i+1), number(i), "a")
	}
	p.same("the last", p.match(about(number(99))).Part, partOf(100))
	p.same("one of the last", p.match(about(number(80))).Part, partOf(81))
	p.same("the first", p.match(about(number(0))).Found, false)
}

func earlyReceiptsAreBounded(p fixture) {
	early := Receipt{Carrier: "c1", IDs: []string{"a"}, State: Buffered, Line: strings.Repeat("x", 5000), At: at(1)}
	long := early
	long.Line = strings.Repeat("x", maxEarlyBytes)
	for _, r := range []Receipt{long, early, early, early, early, early} {
		p.match(r)
	}
	p.ahead.Add(int64(earlyTime - time.Second))
	p.same("early", len(p.bind(7, "", "a")), 3)
	p.match(Receipt{Carrier: "c1", IDs: []string{"b"}, State: Buffered, At: at(1)})
	p.ahead.Add(int64(earlyTime))
	p.same("early, after a day", len(p.bind(8, "", "b")), 0)
	p.match(Receipt{Carrier: "c1", IDs: []string{"c"}, State: Buffered, At: at(1)})
	p.ahead.Add(int64(earlyTime))
	p.match(Receipt{Carrier: "c1", IDs: []string{"c"}, State: Delivered, At: at(1)})
	got := p.bind(9, "", "c")
	if len(got) != 1 {
		p.Fatalf("result of bind: %d results, want %d", len(got), 1)
	}
	relaytest.Equal(p, "result of bind, [0].State", got[0].State, Delivered)
}

func idsExpire(p fixture) {
	r := Receipt{Carrier: "c1", IDs: []string{"a"}, State: Delivered, At: at(1)}
	p.bind(7, "", "a")
	p.ahead.Add(int64(boundTime - time.Second))
	p.same("found", p.match(r).Found, true)
	p.must(p.Sweep(p.Context(), p.db.Now()))
	p.same("rows", p.rows("message_ref"), 1)
	p.ahead.Add(int64(time.Second))
	p.same("found later", p.match(r).Found, false)
	p.same("early, for the next", len(p.bind(8, "", "a")), 1)
	p.ahead.Add(int64(boundTime))
	p.must(p.Sweep(p.Context(), p.db.Now()))
	p.same("rows", p.rows("message_ref"), 0)
}

func idsOfAnyBytes(p fixture) {
	for i, id := range []string{"", "\x00", "a\xffb", `"\`, "é"} {
		r := Receipt{Carrier: "c1", IDs: []string{id}, Numbers: []string{"1"}, State: Delivered, Line: id, At: at(1)}
		p.same("found early", p.match(r).Found, false)
		p.same("early", len(p.bind(ID(i+1), "2", id)), 1)
		p.same("part", p.match(r).Part, partOf(ID(i+1)))
	}
}

func idTwiceInABatch(p fixture) {
	r := Receipt{Carrier: "c1", IDs: []string{"a", "b", "a"}, State: Buffered, At: at(1)}
	got, err := p.Match(p.Context(), []Receipt{r, r})
	p.must(err)
	p.same("found", got[0].Found || got[1].Found, false)
	early, err := p.SaveCarrierIDs(p.Context(), []CarrierID{
		{Carrier: "c1", ID: "a", Part: partOf(7)}, {Carrier: "c1", ID: "b", Part: partOf(7)}, {Carrier: "c1", ID: "a", Part: partOf(8)},
	})
	p.must(err)
	p.same("early", len(early), 6)
	p.same("the last binding", p.match(Receipt{Carrier: "c1", IDs: []string{"a"}}).Part, partOf(8))
}

func reportsStay(p fixture) {
	m, quiet := p.message(1), p.message(1)
	m.Report.URL = "https://example.com/"
	p.save(m, quiet)
	unreported := func(before float64) int {
		p.Helper()
		ms, err := p.Unreported(p.Context(), at(before), 10)
		p.must(err)
		return len(ms)
	}
	p.handOver(m, 1, false)
	p.handOver(quiet, 1, false)
	accepted := Outcome{State: Accepted, At: at(5)}
	p.same("of one that wants none", len(p.settlePart(quiet, 0, accepted)), 0)
	first := p.settlePart(m, 0, accepted)
	p.same("untold", []int{len(first), unreported(4), unreported(5)}, []int{1, 0, 1})
	_, err := p.Receive(p.Context(), []Receipt{{State: Buffered, At: at(5.5), Part: PartRef{Ref: m.Ref()}, Found: true}}, at(5.5))
	p.must(err)
	second, err := p.Receive(p.Context(), []Receipt{{State: Delivered, At: at(6), Part: PartRef{Ref: m.Ref()}, Found: true}}, at(6))
	p.must(err)
	p.same("buffered before", second[0].Parts[0].BufferedAt, at(5.5))
	p.must(p.MarkReported(p.Context(), first))
	p.same("more has come since", unreported(5), 1)
	for range 2 {
		p.must(p.MarkReported(p.Context(), second))
	}
	p.same("all reports are sent", unreported(10), 0)
}

func nothingIsLeft(p fixture) {
	var ms []Message
	var outcomes []Outcome
	for range db.MaxSweep {
		ms = append(ms, p.message(1))
	}
	ms = append(ms, p.message(3))
	for i := range ms {
		ms[i].Report.URL = "https://example.com/"
		for n := range ms[i].Parts {
			outcomes = append(outcomes, Outcome{
				PartRef: PartRef{Ref: ms[i].Ref(), Part: n}, State: Rejected, Reason: "no carrier", At: at(1),
			})
		}
	}
	p.save(ms...)
	p.handOver(ms[0], 1, false)
	reported, err := p.Settle(p.Context(), outcomes)
	p.must(err)
	p.same("messages to report", len(reported), len(ms))
	if last := reported[len(reported)-1].Parts[2]; last.Reason != "no carrier" || last.State != Rejected {
		p.Fatalf("%+v", last)
	}
	for range 2 {
		p.must(p.Forget(p.Context(), at(p.db.Retention().Seconds()+1)))
		p.same("rows", []int{p.rows("message"), p.rows("message_state")}, []int{0, 0})
	}
	unreported, err := p.Unreported(p.Context(), at(9), 1)
	p.must(err)
	p.same("untold", len(unreported), 0)
}
