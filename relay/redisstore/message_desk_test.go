package redisstore

import (
	"fmt"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

// desk is messages of account 1, which has some credit.
type desk struct {
	*testing.T
	*Messages
	credit *Credit
}

func newDesk(t *testing.T, db *DB, credits int64) desk {
	t.Helper()
	p := desk{t, db.Messages(), db.Credit()}
	if err := p.credit.Open(t.Context(), 1, credits, at(0)); err != nil {
		t.Fatal(err)
	}
	return p
}

// letter makes a message with so many parts; its id is reserved.
func (p desk) letter(parts int) message.Message {
	p.Helper()
	id, err := p.Reserve(p.Context(), parts)
	if err != nil {
		p.Fatal(err)
	}
	m := message.Message{
		ID: id, Account: 1, Originator: "Shop", Destination: "447700900123", Coding: message.GSM,
		ReceivedAt: at(0), ScheduledFor: at(0),
	}
	for n := range parts {
		text := fmt.Sprintf("part %d", n)
		m.Parts = append(m.Parts, message.Part{
			UDH: []byte{5, 0, 3, 1, byte(parts), byte(n + 1)}, Data: []byte(text), Text: text,
			State: message.Pending, ScheduledAt: at(0), ChangedAt: at(0),
		})
	}
	return m
}

func (p desk) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// put saves messages and reads the first back.
func (p desk) put(ms ...message.Message) {
	p.Helper()
	_, err := p.Save(p.Context(), message.Batch{Account: 1, Messages: ms, Now: at(0)})
	p.must(err)
}

func (p desk) has(want int64) {
	p.Helper()
	if got, err := p.credit.Balance(p.Context(), 1); err != nil || got != want {
		p.Fatalf("%d credits, want %d, %v", got, want, err)
	}
	p.addsUp()
}

// addsUp checks that the entries of the ledger lead to the balance.
func (p desk) addsUp() {
	p.Helper()
	list, err := p.credit.Entries(p.Context(), 1, 0, creditKept)
	p.must(err)
	sum := int64(0)
	for i := len(list) - 1; i >= 0; i-- {
		if sum += list[i].Credits; sum != list[i].Balance || sum < 0 {
			p.Fatalf("entry %+v, the sum is %d", list[i], sum)
		}
	}
	if got, err := p.credit.Balance(p.Context(), 1); err != nil || got != sum {
		p.Fatalf("the balance is %d, the entries come to %d, %v", got, sum, err)
	}
}

// states are those of a message's parts.
func (p desk) states(id message.ID) string {
	p.Helper()
	m, err := p.Get(p.Context(), 1, id)
	p.must(err)
	text := ""
	for _, part := range m.Parts {
		text += string(part.State) + " "
	}
	return text
}

func (p desk) are(id message.ID, want string) {
	p.Helper()
	if got := p.states(id); got != want {
		p.Fatalf("message %d: %q, want %q", id, got, want)
	}
}

// forgotten says whether a message is kept until its time is over, and gone then;
// or, as one of which a part waits, for ever.
func (p desk) forgotten(id message.ID, want bool) {
	p.Helper()
	kept := p.db.retention.Seconds()
	p.must(p.Forget(p.Context(), at(kept)))
	if _, err := p.Get(p.Context(), 1, id); err != nil {
		p.Fatal(err)
	}
	p.must(p.Forget(p.Context(), at(kept+1000)))
	if _, err := p.Get(p.Context(), 1, id); (relay.KindOf(err) == relay.KindNotFound) != want {
		p.Fatalf("message %d: %v", id, err)
	}
}

// pending are the ids of the pending entries.
func (p desk) pending() (ids []message.ID) {
	p.Helper()
	list, total, err := p.Messages.Pending(p.Context(), 1, 0, 500)
	p.must(err)
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	if total != len(ids) {
		p.Fatalf("%d entries, total %d", len(ids), total)
	}
	return ids
}

// claimed are the ids of what is due.
func (p desk) claimed(now float64, limit int) (ids []message.ID) {
	p.Helper()
	list, err := p.Claim(p.Context(), at(now), at(now+10), limit)
	p.must(err)
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}

// begin hands all parts of a message to a carrier.
func (p desk) start(m message.Message, now float64, again bool) []int {
	p.Helper()
	s := message.Start{Ref: m.Ref(), Carrier: "c1", Now: at(now), Until: at(now + 10), Again: again}
	for n := range m.Parts {
		s.Parts = append(s.Parts, n)
	}
	begun, err := p.Begin(p.Context(), []message.Start{s})
	p.must(err)
	return begun[0]
}

func (p desk) same(what string, got, want any) {
	p.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func onEveryDesk(t *testing.T, credits int64, test func(p desk)) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) { test(newDesk(t, open(t), credits)) })
}
