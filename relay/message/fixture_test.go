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

// fixture is the messages of account 1, which has some credit.
type fixture struct {
	*testing.T
	*Store
	credit *credit.Store
	// ahead is by how much the store's clock is.
	ahead *atomic.Int64
}

func at(s float64) time.Time { return dbtest.At(s) }

// newFixture opens a store; without a URL it is on SQLite.
func newFixture(t *testing.T, url string, credits int64) fixture {
	t.Helper()
	ahead := new(atomic.Int64)
	database := dbtest.Open(t, db.Options{URL: url, Now: func() time.Time { return at(0).Add(time.Duration(ahead.Load())) }})
	p := fixture{t, NewStore(database), credit.NewStore(database), ahead}
	p.must(p.credit.Open(t.Context(), 1, credits, at(0)))
	return p
}

// onEvery runs cases on each engine, each with a new database.
func onEvery(t *testing.T, cases []testCase) {
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

// message makes a message with so many parts; its id is reserved.
func (p fixture) message(parts int) Message {
	p.Helper()
	id, err := p.Reserve(p.Context(), parts)
	p.must(err)
	return newMessage(1, id, parts)
}

func newMessage(acct relay.AccountID, id ID, parts int) Message {
	m := Message{
		ID: id, Account: acct, Originator: "Shop", Destination: "447700900123", Coding: GSM,
		ReceivedAt: at(0), ScheduledFor: at(0),
	}
	for n := range parts {
		text := fmt.Sprintf("part %d", n)
		m.Parts = append(m.Parts, Part{
			UDH: []byte{5, 0, 3, 1, byte(parts), byte(n + 1)}, Data: []byte(text), Text: text,
			State: Pending, ScheduledAt: at(0), ChangedAt: at(0),
		})
	}
	return m
}

func (p fixture) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p fixture) kind(err error, want relay.Kind) {
	p.Helper()
	if err == nil || relay.KindOf(err) != want {
		p.Fatalf("%v, want %v", err, want)
	}
}

func (p fixture) same(what string, got, want any) {
	p.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// save saves messages of account 1.
func (p fixture) save(ms ...Message) {
	p.Helper()
	_, err := p.Save(p.Context(), OrderRecords{Account: 1, Messages: ms, Now: at(0)})
	p.must(err)
}

// hasCredit checks the balance, and that the entries of the ledger lead to it.
func (p fixture) hasCredit(want int64) {
	p.Helper()
	got, err := p.credit.Balance(p.Context(), 1)
	p.must(err)
	list, err := p.credit.Entries(p.Context(), 1, 0, 100_000)
	p.must(err)
	sum := int64(0)
	for i := len(list) - 1; i >= 0; i-- {
		if sum += list[i].Credits; sum != list[i].Balance || sum < 0 {
			p.Fatalf("entry %+v, the sum is %d", list[i], sum)
		}
	}
	if got != want || sum != want {
		p.Fatalf("%d credits, entries of %d, want %d", got, sum, want)
	}
}

// inStates checks the states of a message's parts.
func (p fixture) inStates(id ID, want string) {
	p.Helper()
	m, err := p.Get(p.Context(), 1, id)
	p.must(err)
	got := ""
	for _, part := range m.Parts {
		got += string(part.State) + " "
	}
	p.same("states of message "+id.String(), got, want)
}

// forgotten checks that a message is kept until its time is over and gone then; or,
// if a part of it waits, that it stays.
func (p fixture) forgotten(id ID, want bool) {
	p.Helper()
	kept := p.db.Retention().Seconds()
	p.must(p.Forget(p.Context(), at(kept)))
	_, err := p.Get(p.Context(), 1, id)
	p.must(err)
	p.must(p.Forget(p.Context(), at(kept+1000)))
	if _, err := p.Get(p.Context(), 1, id); (relay.KindOf(err) == relay.KindNotFound) != want {
		p.Fatalf("message %d: %v", id, err)
	}
}

// pendingIDs are the ids of the pending entries.
func (p fixture) pendingIDs() (ids []ID) {
	p.Helper()
	list, total, err := p.Pending(p.Context(), 1, 0, 500)
	p.must(err)
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	p.same("total", total, len(ids))
	return ids
}

// claim claims messages for ten seconds.
func (p fixture) claim(now float64, limit int) (ids []ID) {
	p.Helper()
	list, err := p.LeaseDue(p.Context(), at(now), at(now+10), limit)
	p.must(err)
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}

// renew renews the leases of messages, which end at a time.
func (p fixture) renew(until, end float64, ms ...Message) []Ref {
	p.Helper()
	var ls []Lease
	for i := range ms {
		ls = append(ls, Lease{Ref: ms[i].Ref(), End: at(end)})
	}
	refs, err := p.Renew(p.Context(), ls, at(until))
	p.must(err)
	return refs
}

// handOver begins all parts of a message.
func (p fixture) handOver(m Message, now float64, again bool) []int {
	p.Helper()
	begun, err := p.Begin(p.Context(), []Beginning{startOf(m, "c1", now, again)})
	p.must(err)
	return begun[0]
}

func startOf(m Message, carrier string, now float64, again bool) Beginning {
	s := Beginning{Ref: m.Ref(), Carrier: carrier, Now: at(now), Until: at(now + 10), AlsoSending: again}
	for n := range m.Parts {
		s.Parts = append(s.Parts, n)
	}
	return s
}

// settlePart records one outcome and returns the messages that want reports.
func (p fixture) settlePart(m Message, part int, o Outcome) []Message {
	p.Helper()
	o.PartRef = PartRef{Ref: m.Ref(), Part: part}
	list, err := p.Settle(p.Context(), []Outcome{o})
	p.must(err)
	return list
}

// rows counts the rows of a table.
func (p fixture) rows(table string) int {
	p.Helper()
	n, err := db.Value[int](p.Context(), p.db, table, "SELECT COUNT(*) FROM "+table)
	p.must(err)
	return n
}
