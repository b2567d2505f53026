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
	onEveryEngine(t, []testCase{
		{"receipts find their parts", 10, receiptsFindTheirParts},
		{"an id in another base matches a message that awaits a receipt", 10, idsInAnotherBase},
		{"an early receipt with another message's id in another base waits for the answer", 10, earlyReceiptInAnotherBase},
		{"a receipt in another base waits for the answer to another message", 10, receiptInAnotherBaseIsHeld},
		{"a repeated binding returns the early receipts again", 10, bindingIsRepeated},
		{"early receipts are bounded in number and time", 10, earlyReceiptsAreBounded},
		{"ids expire", 10, idsExpire},
		{"an id may contain any bytes", 10, idsOfAnyBytes},
		{"an id that was used twice matches the message to the number", 10, idUsedTwice},
		{"early receipts for an id that was used twice match by number", 10, idUsedTwiceEarly},
		{"an id that was used 100 times matches the latest messages", 10, idUsedOften},
		{"a batch may contain an id twice", 10, idTwiceInABatch},
		{"reports stay until they are marked as reported", 10, reportsStay},
		{"forgotten messages leave no rows", 100_000, nothingIsLeft},
	})
}

func receiptsFindTheirParts(f fixture) {
	m := f.message(1)
	m.Report.URL = "https://example.com/"
	f.save(m)
	f.handOver(m, 1, false)
	part := PartRef{Ref: m.Ref()}
	early := Receipt{Carrier: "c1", IDs: []string{"a1"}, OtherBases: []string{"161"}, State: Buffered, Line: "stat:ENROUTE", At: timeAt(2)}
	if got := f.match(early); got.Matched {
		f.Fatal("the receipt was found before its id was bound")
	}
	bound, err := f.SaveCarrierIDs(f.Context(), []CarrierID{{Carrier: "c1", ID: "A1", Part: part}, {Carrier: "c1", ID: "161", Part: part}})
	f.must(err)
	if len(bound) != 1 {
		f.Fatalf("bound: %d results, want %d", len(bound), 1)
	}
	relaytest.Equal(f, "bound[0].Part", bound[0].Part, part)
	relaytest.Equal(f, "bound[0].Found", bound[0].Matched, true)
	relaytest.Equal(f, "bound[0].Line", bound[0].Line, early.Line)
	relaytest.Equal(f, "bound[0].At", bound[0].At, early.At)
	f.settlePart(m, 0, Outcome{State: Accepted, Carrier: "c1", CarrierID: "161", At: timeAt(3)})
	ms, err := f.Receive(f.Context(), bound, timeAt(3))
	f.must(err)
	if len(ms) != 1 {
		f.Fatalf("ms: %d results, want %d", len(ms), 1)
	}
	relaytest.Equal(f, "ms[0].Parts[0].State", ms[0].Parts[0].State, Buffered)
	relaytest.Equal(f, "ms[0].Parts[0].Report", ms[0].Parts[0].Report, early.Line)
	relaytest.Equal(f, "ms[0].Parts[0].ChangedAt", ms[0].Parts[0].ChangedAt, timeAt(2))
	late := Receipt{Carrier: "c1", IDs: []string{"0"}, OtherBases: []string{"161"}, State: Delivered, Line: "stat:DELIVRD", At: timeAt(4)}
	foreign := Receipt{Carrier: "c2", IDs: []string{"161"}, State: Delivered, At: timeAt(4)}
	got, err := f.Match(f.Context(), []Receipt{late, foreign})
	f.must(err)
	relaytest.Equal(f, "got[0].Found", got[0].Matched, true)
	relaytest.Equal(f, "got[0].Part", got[0].Part, part)
	relaytest.Equal(f, "got[1].Found", got[1].Matched, false)
	ms, err = f.Receive(f.Context(), got, timeAt(4))
	f.must(err)
	f.equal("number of messages to report", len(ms), 1)
	f.wantStates(m.ID, "delivered ")
	for _, state := range []State{Undelivered, Buffered, Accepted, Delivered} {
		got[0].State = state
		ms, err = f.Receive(f.Context(), got, timeAt(5))
		f.must(err)
		f.equal("number of messages to report after the final state", len(ms), 0)
	}
	f.wantStates(m.ID, "delivered ")
}

// match matches one receipt.
func (f fixture) match(r Receipt) Receipt {
	f.Helper()
	got, err := f.Match(f.Context(), []Receipt{r})
	f.must(err)
	return got[0]
}

// bind binds ids of carrier c1 to the first part of a message of account 1, and returns the
// early receipts.
func (f fixture) bind(id ID, number string, refs ...string) []Receipt {
	f.Helper()
	ids := make([]CarrierID, len(refs))
	for i, ref := range refs {
		ids[i] = CarrierID{Carrier: "c1", ID: ref, Part: partOf(id), Number: number}
	}
	early, err := f.SaveCarrierIDs(f.Context(), ids)
	f.must(err)
	return early
}

func partOf(id ID) PartRef {
	return PartRef{Ref: Ref{Account: 1, ID: id}}
}

// submitted saves a message of one part from Shop to 447700900123 and sets the part to Sending
// at carrier c1.
func (f fixture) submitted() Message {
	f.Helper()
	m := f.message(1)
	f.save(m)
	f.handOver(m, 0, false)
	return m
}

// accept records that carrier c1 accepted a message's part with an id, and returns the early
// receipts.
func (f fixture) accept(m Message, ref string) []Receipt {
	f.Helper()
	early := f.bind(m.ID, m.Destination, ref)
	f.settlePart(m, 0, Outcome{State: Accepted, Carrier: "c1", CarrierID: ref, At: timeAt(1)})
	return early
}

// receiptInDecimal returns a receipt with the id 5232, which is 1470 in hexadecimal, for a
// message of submitted.
func receiptInDecimal() Receipt {
	return Receipt{
		Carrier: "c1", IDs: []string{"5232"}, OtherBases: []string{"1470", "21042"}, State: Delivered,
		Numbers: []string{"447700900123"}, Addresses: []string{"447700900123", "Shop"}, Line: "id:5232 stat:DELIVRD", At: timeAt(2),
	}
}

func idsInAnotherBase(f fixture) {
	m := f.submitted()
	f.accept(m, "1470")
	for name, tc := range map[string]struct {
		change func(r *Receipt)
		want   bool
	}{
		"unchanged":                      {func(*Receipt) {}, true},
		"with the addresses exchanged":   {func(r *Receipt) { r.Addresses = []string{"Shop", "447700900123"} }, true},
		"with an originator in capitals": {func(r *Receipt) { r.Addresses[1] = "SHOP" }, true},
		"without addresses":              {func(r *Receipt) { r.Numbers, r.Addresses = nil, nil }, true},
		"without the originator":         {func(r *Receipt) { r.Addresses = r.Addresses[:1] }, true},
		"with a national number":         {func(r *Receipt) { r.Numbers = []string{"07700900123"} }, true},
		"to another number":              {func(r *Receipt) { r.Numbers[0] = "447700900456" }, false},
		"from another originator":        {func(r *Receipt) { r.Addresses[1] = "Bank" }, false},
		"before the submission":          {func(r *Receipt) { r.At = timeAt(-600) }, false},
		"of another carrier":             {func(r *Receipt) { r.Carrier = "c2" }, false},
		"with another id":                {func(r *Receipt) { r.OtherBases = r.OtherBases[1:] }, false},
	} {
		r := receiptInDecimal()
		tc.change(&r)
		f.equal("receipt "+name+" is found", f.match(r).Matched, tc.want)
	}
	_, err := f.Receive(f.Context(), []Receipt{f.match(receiptInDecimal())}, timeAt(2))
	f.must(err)
	f.wantStates(m.ID, "delivered ")
	f.equal("part of the repeated receipt", f.match(receiptInDecimal()).Part, PartRef{Ref: m.Ref()})
	laterReceipt := receiptInDecimal()
	laterReceipt.Line, laterReceipt.At = "id:5232 stat:DELIVRD done date:2607011201", timeAt(3)
	f.equal("another receipt after the final state is found", f.match(laterReceipt).Matched, false)
}

func earlyReceiptInAnotherBase(f fixture) {
	older := f.submitted()
	f.accept(older, "1470")
	m := f.submitted()
	r := f.match(receiptInDecimal())
	f.equal("found and held before the answer", []bool{r.Matched, r.Ambiguous}, []bool{false, true})
	early := f.accept(m, "5232")
	if len(early) != 1 {
		f.Fatalf("early receipts: %d results, want %d", len(early), 1)
	}
	relaytest.Equal(f, "early[0].Part", early[0].Part, PartRef{Ref: m.Ref()})
	relaytest.Equal(f, "early[0].Found", early[0].Matched, true)
	r = f.match(r)
	f.equal("found and part after the answer", []any{r.Matched, r.Part.Ref}, []any{true, m.Ref()})

	// A receipt stays ambiguous when an id in another base is bound.
	first, second := f.submitted(), f.submitted()
	r = receiptInDecimal()
	r.IDs, r.OtherBases = []string{"5233"}, []string{"1471"}
	f.equal("found before both answers", f.match(r).Matched, false)
	early = f.accept(first, "1471")
	f.equal("early receipts of the answer in another base", []any{len(early), early[0].Matched, early[0].Ambiguous}, []any{1, false, true})
	early = f.accept(second, "5233")
	f.equal("early receipts of the answer with the id", []any{len(early), early[0].Matched, early[0].Part.Ref}, []any{1, true, second.Ref()})
}

func receiptInAnotherBaseIsHeld(f fixture) {
	m := f.submitted()
	f.accept(m, "1470")
	unanswered := f.submitted()
	r := f.match(receiptInDecimal())
	f.equal("found and held while another message has no answer", []bool{r.Matched, r.Ambiguous}, []bool{false, true})
	f.equal("early receipts of the answer with another id", len(f.accept(unanswered, "77")), 0)
	rowCount := f.countRows("message_ref")
	r = f.match(r)
	f.equal("found, held and part after the answer", []any{r.Matched, r.Ambiguous, r.Part.Ref}, []any{true, false, m.Ref()})
	f.equal("rows", f.countRows("message_ref"), rowCount)
}

// A worker that crashes between the binding and the recording of the receipts binds again.
func bindingIsRepeated(f fixture) {
	f.match(Receipt{Carrier: "c1", IDs: []string{"a1"}, State: Delivered, At: timeAt(1)})
	for i, tc := range []struct {
		part ID
		want int
	}{{7, 1}, {7, 1}, {8, 0}, {7, 1}} {
		early := f.bind(tc.part, "", "a1")
		if len(early) != tc.want || tc.want == 1 && early[0].Part != partOf(tc.part) {
			f.Fatalf("binding %d: early receipts = %+v, want %d", i, early, tc.want)
		}
	}
}

// receiptFor returns a receipt with the id a about a message to a number.
func receiptFor(number string) Receipt {
	return Receipt{Carrier: "c1", IDs: []string{"a"}, Numbers: []string{number, "447800000001"}, Destination: number, State: Delivered, At: timeAt(1)}
}

func idUsedTwice(f fixture) {
	const firstNumber, secondNumber = "447700900123", "447700900456"
	f.bind(7, firstNumber, "a")
	f.equal("receipt for an unbound number is found", f.match(receiptFor(secondNumber)).Matched, false)
	early := f.bind(8, secondNumber, "a")
	if len(early) != 1 {
		f.Fatalf("early: %d results, want %d", len(early), 1)
	}
	relaytest.Equal(f, "early[0].Part", early[0].Part, partOf(8))
	for number, id := range map[string]ID{firstNumber: 7, "07700900123": 7, secondNumber: 8} {
		f.equal("part of the receipt for "+number, f.match(receiptFor(number)).Part, partOf(id))
	}
	f.equal("receipt for another number is found", f.match(receiptFor("447700900789")).Matched, false)
	nameless := receiptFor(firstNumber)
	nameless.Numbers, nameless.Destination = nil, ""
	f.equal("part of the receipt without numbers", f.match(nameless).Part, partOf(8))
	toShortCode := receiptFor("66777")
	toShortCode.Destination = ""
	f.equal("part of the receipt for a short code", f.match(toShortCode).Part, partOf(8))
	f.bind(9, firstNumber, "a")
	f.equal("part of the receipt for a number bound twice", f.match(receiptFor(firstNumber)).Part, partOf(9))
	f.equal("part of the receipt for the other number", f.match(receiptFor(secondNumber)).Part, partOf(8))
	f.clockOffset.Add(int64(boundTime))
	f.equal("receipt for an expired id is found", f.match(receiptFor(firstNumber)).Matched, false)
	f.equal("early receipts of a new binding", len(f.bind(10, secondNumber, "a")), 0)
	f.equal("receipt for the expired number is found", f.match(receiptFor(firstNumber)).Matched, false)
}

func idUsedTwiceEarly(f fixture) {
	f.match(receiptFor("447700900456"))
	f.match(receiptFor("447700900123"))
	for range 2 { // a binding may be repeated
		for id, number := range map[ID]string{7: "447700900123", 8: "447700900456"} {
			early := f.bind(id, number, "a")
			if len(early) != 1 {
				f.Fatalf("early receipts: %d, want %d", len(early), 1)
			}
			relaytest.Equal(f, "early[0].Part", early[0].Part, partOf(id))
			relaytest.Equal(f, "early[0].Destination", early[0].Destination, number)
		}
	}
}

func idUsedOften(f fixture) {
	number := func(i int) string { return fmt.Sprintf("4477009%05d", i) }
	for i := range 100 {
		f.bind(ID(i+1), number(i), "a")
	}
	f.equal("part of the last binding", f.match(receiptFor(number(99))).Part, partOf(100))
	f.equal("part of a recent binding", f.match(receiptFor(number(80))).Part, partOf(81))
	f.equal("receipt for the first binding is found", f.match(receiptFor(number(0))).Matched, false)
}

func earlyReceiptsAreBounded(f fixture) {
	early := Receipt{Carrier: "c1", IDs: []string{"a"}, State: Buffered, Line: strings.Repeat("x", 5000), At: timeAt(1)}
	long := early
	long.Line = strings.Repeat("x", maxEarlyBytes)
	for _, r := range []Receipt{long, early, early, early, early, early} {
		f.match(r)
	}
	f.clockOffset.Add(int64(earlyTime - time.Second))
	f.equal("number of early receipts", len(f.bind(7, "", "a")), 3)
	f.match(Receipt{Carrier: "c1", IDs: []string{"b"}, State: Buffered, At: timeAt(1)})
	f.clockOffset.Add(int64(earlyTime))
	f.equal("number of early receipts after earlyTime", len(f.bind(8, "", "b")), 0)
	f.match(Receipt{Carrier: "c1", IDs: []string{"c"}, State: Buffered, At: timeAt(1)})
	f.clockOffset.Add(int64(earlyTime))
	f.match(Receipt{Carrier: "c1", IDs: []string{"c"}, State: Delivered, At: timeAt(1)})
	got := f.bind(9, "", "c")
	if len(got) != 1 {
		f.Fatalf("early receipts: %d, want %d", len(got), 1)
	}
	relaytest.Equal(f, "got[0].State", got[0].State, Delivered)
}

func idsExpire(f fixture) {
	r := Receipt{Carrier: "c1", IDs: []string{"a"}, State: Delivered, At: timeAt(1)}
	f.bind(7, "", "a")
	f.clockOffset.Add(int64(boundTime - time.Second))
	f.equal("found within boundTime", f.match(r).Matched, true)
	f.must(f.Sweep(f.Context(), f.db.Now()))
	f.equal("rows", f.countRows("message_ref"), 1)
	f.clockOffset.Add(int64(time.Second))
	f.equal("found after boundTime", f.match(r).Matched, false)
	f.equal("number of early receipts of the next binding", len(f.bind(8, "", "a")), 1)
	f.clockOffset.Add(int64(boundTime))
	f.must(f.Sweep(f.Context(), f.db.Now()))
	f.equal("rows", f.countRows("message_ref"), 0)
}

func idsOfAnyBytes(f fixture) {
	for i, id := range []string{"", "\x00", "a\xffb", `"\`, "é"} {
		r := Receipt{Carrier: "c1", IDs: []string{id}, Numbers: []string{"1"}, State: Delivered, Line: id, At: timeAt(1)}
		f.equal("found early", f.match(r).Matched, false)
		f.equal("number of early receipts", len(f.bind(ID(i+1), "2", id)), 1)
		f.equal("part", f.match(r).Part, partOf(ID(i+1)))
	}
}

func idTwiceInABatch(f fixture) {
	r := Receipt{Carrier: "c1", IDs: []string{"a", "b", "a"}, State: Buffered, At: timeAt(1)}
	got, err := f.Match(f.Context(), []Receipt{r, r})
	f.must(err)
	f.equal("found", got[0].Matched || got[1].Matched, false)
	early, err := f.SaveCarrierIDs(f.Context(), []CarrierID{
		{Carrier: "c1", ID: "a", Part: partOf(7)}, {Carrier: "c1", ID: "b", Part: partOf(7)}, {Carrier: "c1", ID: "a", Part: partOf(8)},
	})
	f.must(err)
	f.equal("number of early receipts", len(early), 6)
	f.equal("part of the last binding", f.match(Receipt{Carrier: "c1", IDs: []string{"a"}}).Part, partOf(8))
}

func reportsStay(f fixture) {
	m, quiet := f.message(1), f.message(1)
	m.Report.URL = "https://example.com/"
	f.save(m, quiet)
	unreported := func(cutoff float64) int {
		f.Helper()
		ms, err := f.Unreported(f.Context(), timeAt(cutoff), 10)
		f.must(err)
		return len(ms)
	}
	f.handOver(m, 1, false)
	f.handOver(quiet, 1, false)
	acceptance := Outcome{State: Accepted, At: timeAt(5)}
	f.equal("reports of a message without a report URL", len(f.settlePart(quiet, 0, acceptance)), 0)
	accepted := f.settlePart(m, 0, acceptance)
	f.equal("messages to report, unreported before and at the change", []int{len(accepted), unreported(4), unreported(5)}, []int{1, 0, 1})
	_, err := f.Receive(f.Context(), []Receipt{{State: Buffered, At: timeAt(5.5), Part: PartRef{Ref: m.Ref()}, Matched: true}}, timeAt(5.5))
	f.must(err)
	delivered, err := f.Receive(f.Context(), []Receipt{{State: Delivered, At: timeAt(6), Part: PartRef{Ref: m.Ref()}, Matched: true}}, timeAt(6))
	f.must(err)
	f.equal("BufferedAt", delivered[0].Parts[0].BufferedAt, timeAt(5.5))
	f.must(f.MarkReported(f.Context(), accepted))
	f.equal("unreported after an older version was marked", unreported(5), 1)
	for range 2 {
		f.must(f.MarkReported(f.Context(), delivered))
	}
	f.equal("unreported after the latest version was marked", unreported(10), 0)
}

func nothingIsLeft(f fixture) {
	var ms []Message
	var outcomes []Outcome
	for range db.MaxSweep {
		ms = append(ms, f.message(1))
	}
	ms = append(ms, f.message(3))
	for i := range ms {
		ms[i].Report.URL = "https://example.com/"
		for n := range ms[i].Parts {
			outcomes = append(outcomes, Outcome{
				PartRef: PartRef{Ref: ms[i].Ref(), Part: n}, State: Rejected, Reason: "no carrier", At: timeAt(1),
			})
		}
	}
	f.save(ms...)
	f.handOver(ms[0], 1, false)
	reported, err := f.Settle(f.Context(), outcomes)
	f.must(err)
	f.equal("messages to report", len(reported), len(ms))
	if lastPart := reported[len(reported)-1].Parts[2]; lastPart.Reason != "no carrier" || lastPart.State != Rejected {
		f.Fatalf("last part = %+v, want rejected by no carrier", lastPart)
	}
	for range 2 {
		f.must(f.Forget(f.Context(), timeAt(f.db.Retention().Seconds()+1)))
		f.equal("rows", []int{f.countRows("message"), f.countRows("message_state")}, []int{0, 0})
	}
	unreported, err := f.Unreported(f.Context(), timeAt(9), 1)
	f.must(err)
	f.equal("unreported messages", len(unreported), 0)
}
