package message

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAMessageThatDoesNotOpenEndsNoOther(t *testing.T) {
	onEvery(t, []testCase{
		{"leases and lists go on, and it is sent again once it opens", 100, unopenedIsSentAgain},
		{"reports of others go on, and its own are made once it opens", 100, unopenedIsReportedLater},
	})
}

// ids returns the messages that open, in their order.
func ids(ms []Message) (opened []ID) {
	for i := range ms {
		if !ms[i].Unopened {
			opened = append(opened, ms[i].ID)
		}
	}
	return opened
}

func unopenedIsSentAgain(p fixture) {
	p.db.SetSealer(dbtest.Sealer{})
	a, b, c := p.message(1), p.message(2), p.message(1)
	p.save(a, b, c)
	restore := dbtest.Tamper(p, p.db, "message", "doc", fmt.Sprintf("id = %d", b.ID))

	// 1. The list shows its numbers and states.
	list, _, err := p.List(p.Context(), Filter{Account: 1, Limit: 9})
	p.must(err)
	relaytest.Equal(p, "messages of the list", len(list), 3)
	shown := list[1]
	relaytest.Equal(p, "what the list shows", []any{shown.ID, shown.Destination, shown.Unopened, len(shown.Parts), shown.Parts[0].State, shown.Text()},
		[]any{b.ID, b.Destination, true, 2, Pending, ""})
	entries, total, err := p.Pending(p.Context(), 1, 0, 9)
	p.must(err)
	relaytest.Equal(p, "pending parts", []int{len(entries), total}, []int{4, 4})

	// 2. A lease returns the others; its parts have the state unknown, with a reason.
	leased, err := p.LeaseDue(p.Context(), at(1), at(15), 9)
	if !errors.Is(err, relay.ErrUnopened) {
		p.Errorf("error of the lease: %v", err)
	}
	relaytest.Equal(p, "leased messages", ids(leased), []ID{a.ID, c.ID})
	got, err := p.Get(p.Context(), 1, b.ID)
	p.must(err)
	for _, part := range got.Parts {
		relaytest.Equal(p, "state and reason of a part", []any{part.State, part.Reason}, []any{Unknown, unopenedReason})
	}
	leased, err = p.LeaseDue(p.Context(), at(20), at(35), 9)
	p.must(err)
	relaytest.Equal(p, "leased messages after the first lease", ids(leased), []ID{a.ID, c.ID})

	// 3. An operator has it sent when it opens again.
	restore()
	n, err := p.Resend(p.Context(), Filter{Account: 1, IDs: []ID{b.ID}}, at(40))
	p.must(err)
	relaytest.Equal(p, "parts that are sent again", n, 2)
	leased, err = p.LeaseDue(p.Context(), at(41), at(55), 9)
	p.must(err)
	relaytest.Equal(p, "leased messages after that", ids(leased), []ID{a.ID, c.ID, b.ID})
}

func unopenedIsReportedLater(p fixture) {
	p.db.SetSealer(dbtest.Sealer{})
	a, b := p.message(1), p.message(1)
	a.Report, b.Report = Report{URL: "https://example.com/a"}, Report{URL: "https://example.com/b"}
	p.save(a, b)
	restore := dbtest.Tamper(p, p.db, "message", "doc", fmt.Sprintf("id = %d", b.ID))
	var outcomes []Outcome
	for _, m := range []Message{a, b} {
		_, err := p.Begin(p.Context(), []Beginning{{Ref: m.Ref(), Parts: []int{0}, Carrier: "c", Now: at(1), Until: at(15)}})
		p.must(err)
		outcomes = append(outcomes, Outcome{PartRef: PartRef{Ref: m.Ref()}, State: Accepted, Carrier: "c", CarrierID: "x" + m.ID.String(), At: at(2)})
	}
	reports, err := p.Settle(p.Context(), outcomes)
	p.must(err)
	relaytest.Equal(p, "messages to report", ids(reports), []ID{a.ID})
	p.must(p.MarkReported(p.Context(), reports))
	p.ahead.Store(int64(time.Minute))
	list, err := p.Unreported(p.Context(), at(30), 1)
	p.must(err)
	relaytest.Equal(p, "unreported messages", len(list), 0)
	restore()
	list, err = p.Unreported(p.Context(), at(30), 1)
	p.must(err)
	relaytest.Equal(p, "unreported messages since then", len(list), 0)
	list, err = p.Unreported(p.Context(), at(61), 1)
	p.must(err)
	relaytest.Equal(p, "unreported messages later", ids(list), []ID{b.ID})
}
