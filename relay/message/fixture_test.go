package message

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
)

// fixture is a store of messages. Account 1 has credit.
type fixture struct {
	*testing.T
	*Store
	credit *credit.Store
	// clockOffset is the nanoseconds from timeAt(0) to the time of the store's clock.
	clockOffset *atomic.Int64
}

func timeAt(s float64) time.Time { return dbtest.TimeAt(s) }

// newFixture opens a store: on SQLite if the URL is empty.
func newFixture(t *testing.T, url string, credits int64) fixture {
	t.Helper()
	clockOffset := new(atomic.Int64)
	database := dbtest.Open(t, db.Options{URL: url, Now: func() time.Time { return timeAt(0).Add(time.Duration(clockOffset.Load())) }})
	f := fixture{t, NewStore(database), credit.NewStore(database), clockOffset}
	f.must(f.credit.Open(t.Context(), 1, credits, timeAt(0)))
	return f
}

// onEveryEngine runs the cases on SQLite and on PostgreSQL, each with a new database.
func onEveryEngine(t *testing.T, cases []testCase) {
	run := func(t *testing.T, url func(t testing.TB) string) {
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) { tc.test(newFixture(t, url(t), tc.credit)) })
		}
	}
	t.Run("on SQLite", func(t *testing.T) { run(t, func(testing.TB) string { return "" }) })
	t.Run("on PostgreSQL", func(t *testing.T) { run(t, dbtest.Shared(t).NewDatabase) })
}

type testCase struct {
	name   string
	credit int64
	test   func(p fixture)
}

// message returns a message with reserved ids.
func (f fixture) message(parts int) Message {
	f.Helper()
	id, err := f.Reserve(f.Context(), parts)
	f.must(err)
	return newMessage(1, id, parts)
}

func newMessage(acct relay.AccountID, id ID, parts int) Message {
	m := Message{
		ID: id, Account: acct, Originator: "Shop", Destination: "447700900123", Coding: GSM,
		ReceivedAt: timeAt(0), ScheduledFor: timeAt(0),
	}
	for n := range parts {
		text := fmt.Sprintf("part %d", n)
		m.Parts = append(m.Parts, Part{
			UDH: []byte{5, 0, 3, 1, byte(parts), byte(n + 1)}, Data: []byte(text), Text: text,
			State: Pending, ScheduledAt: timeAt(0), ChangedAt: timeAt(0),
		})
	}
	return m
}

func (f fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f fixture) wantKind(err error, want relay.Kind) {
	f.Helper()
	if err == nil || relay.KindOf(err) != want {
		f.Fatalf("error = %v, want kind %v", err, want)
	}
}

func (f fixture) equal(label string, got, want any) {
	f.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		f.Fatalf("%s = %v, want %v", label, got, want)
	}
}

// save saves messages for account 1.
func (f fixture) save(ms ...Message) {
	f.Helper()
	_, err := f.Save(f.Context(), OrderRecords{Account: 1, Messages: ms, Now: timeAt(0)})
	f.must(err)
}

// wantCredit checks the balance, and that the entries of the ledger add up to the balance.
func (f fixture) wantCredit(want int64) {
	f.Helper()
	got, err := f.credit.Balance(f.Context(), 1)
	f.must(err)
	list, err := f.credit.Entries(f.Context(), 1, 0, 100_000)
	f.must(err)
	sum := int64(0)
	for i := len(list) - 1; i >= 0; i-- {
		if sum += list[i].Credits; sum != list[i].Balance || sum < 0 {
			f.Fatalf("entry %+v, sum = %d", list[i], sum)
		}
	}
	if got != want || sum != want {
		f.Fatalf("balance = %d, sum of entries = %d, want %d", got, sum, want)
	}
}

// wantStates checks the states of a message's parts.
func (f fixture) wantStates(id ID, want string) {
	f.Helper()
	m, err := f.Get(f.Context(), 1, id)
	f.must(err)
	got := ""
	for _, part := range m.Parts {
		got += string(part.State) + " "
	}
	f.equal("states of message "+id.String(), got, want)
}

// wantForgotten checks that a message exists until the end of its retention, and whether
// Forget deletes the message afterwards. A message with a waiting part is not deleted.
func (f fixture) wantForgotten(id ID, want bool) {
	f.Helper()
	retention := f.db.Retention().Seconds()
	f.must(f.Forget(f.Context(), timeAt(retention)))
	_, err := f.Get(f.Context(), 1, id)
	f.must(err)
	f.must(f.Forget(f.Context(), timeAt(retention+1000)))
	if _, err := f.Get(f.Context(), 1, id); (relay.KindOf(err) == relay.KindNotFound) != want {
		f.Fatalf("message %d after its retention: error = %v, want deleted %t", id, err, want)
	}
}

// pendingIDs returns the ids of the pending parts.
func (f fixture) pendingIDs() (ids []ID) {
	f.Helper()
	list, total, err := f.Pending(f.Context(), 1, 0, 500)
	f.must(err)
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	f.equal("total", total, len(ids))
	return ids
}

// claim leases due messages for ten seconds.
func (f fixture) claim(now float64, limit int) (ids []ID) {
	f.Helper()
	list, err := f.LeaseDue(f.Context(), timeAt(now), timeAt(now+10), limit)
	f.must(err)
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}

// renew renews leases that end at the given time.
func (f fixture) renew(until, end float64, ms ...Message) []Ref {
	f.Helper()
	var ls []Lease
	for i := range ms {
		ls = append(ls, Lease{Ref: ms[i].Ref(), End: timeAt(end)})
	}
	refs, err := f.Renew(f.Context(), ls, timeAt(until))
	f.must(err)
	return refs
}

// handOver sets all parts of a message to Sending.
func (f fixture) handOver(m Message, now float64, alsoSending bool) []int {
	f.Helper()
	begun, err := f.MarkSending(f.Context(), []SendingParts{sendingPartsOf(m, "c1", now, alsoSending)})
	f.must(err)
	return begun[0]
}

func sendingPartsOf(m Message, carrier string, now float64, alsoSending bool) SendingParts {
	b := SendingParts{Ref: m.Ref(), Carrier: carrier, Now: timeAt(now), LeaseEnd: timeAt(now + 10), AlsoSending: alsoSending}
	for n := range m.Parts {
		b.Parts = append(b.Parts, n)
	}
	return b
}

// settlePart records one outcome and returns the messages to report.
func (f fixture) settlePart(m Message, part int, o Outcome) []Message {
	f.Helper()
	o.PartRef = PartRef{Ref: m.Ref(), Part: part}
	list, err := f.Settle(f.Context(), []Outcome{o})
	f.must(err)
	return list
}

// countRows returns the number of rows of a table.
func (f fixture) countRows(table string) int {
	f.Helper()
	n, err := db.Value[int](f.Context(), f.db, table, "SELECT COUNT(*) FROM "+table)
	f.must(err)
	return n
}
