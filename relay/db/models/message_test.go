package models_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/recordstest"
)

// piece is the model of a message part: its state, and when a retry is due.
type piece struct {
	State message.State
	Due   float64
}

// missive is the model of a message.
type missive struct {
	ID    message.ID
	Saved bool
	Due   float64 // -1: none
	Parts []piece
}

// missives are the messages of the model, and the account's credit, which pays for one
// of them but not for all.
type missives struct {
	Credit int64
	All    [3]missive
}

const modelCredit = 4

// after are the states that each may follow on: the transitions of the specification,
// with those of a crash.
func after() map[message.State][]message.State {
	inFlight := []message.State{message.Sending, message.Unknown}
	open := []message.State{message.Pending, message.Sending, message.Unknown, message.Accepted, message.Buffered}
	return map[message.State][]message.State{
		message.Removed: {message.Pending}, message.Unknown: {message.Sending}, message.Pending: inFlight, message.Accepted: inFlight,
		message.Buffered: append(inFlight, message.Accepted), message.Delivered: open, message.Undelivered: open, message.Rejected: open,
	}
}

// move moves a part and reports whether it may.
func (m *missive) move(part int, to message.State, due, now float64) bool {
	p := &m.Parts[part]
	if !slices.Contains(after()[to], p.State) {
		return false
	}
	p.State = to
	if to == message.Pending {
		p.Due = due
	}
	m.rest(now)
	return true
}

// rest says when the message is due: a lease is kept while a part is sent or due.
func (m *missive) rest(now float64) {
	kept, next := false, -1.0
	for _, p := range m.Parts {
		kept = kept || p.State == message.Sending || p.State == message.Pending && p.Due <= now
		if p.State == message.Pending && (next < 0 || p.Due < next) {
			next = p.Due
		}
	}
	if !kept || m.Due < 0 {
		m.Due = next
	}
}

func (s missives) show() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d credits", s.Credit)
	for _, m := range s.All {
		if !m.Saved {
			continue
		}
		fmt.Fprintf(&b, "; %d:", m.ID)
		for _, p := range m.Parts {
			b.WriteString(" " + string(p.State))
		}
	}
	return b.String()
}

func messageModel() machine[missives] {
	return machine[missives]{
		begin: func(ctx context.Context, r *recordstest.Records, acct relay.AccountID) (missives, error) {
			s := missives{Credit: modelCredit}
			for n := range s.All {
				m := missive{Due: -1, Parts: make([]piece, 1+n)}
				id, err := r.Messages.Reserve(ctx, len(m.Parts))
				if err != nil {
					return s, err
				}
				m.ID = id
				s.All[n] = m
			}
			return s, r.Credit.Open(ctx, acct, modelCredit, dbtest.At(0))
		},
		clone: func(s missives) missives {
			for n := range s.All {
				s.All[n].Parts = slices.Clone(s.All[n].Parts)
			}
			return s
		},
		draw: drawMissive, read: readMissives, show: missives.show,
	}
}

func drawMissive(t *rapid.T, s missives, acct relay.AccountID, now float64) op[missives] {
	n := rapid.IntRange(0, 2).Draw(t, "message")
	part := rapid.IntRange(0, n).Draw(t, "part")
	switch rapid.SampledFrom([]string{"save", "save", "delete", "begin", "begin", "settle", "settle", "settle", "receipt", "claim", "claim", "renew", "release"}).Draw(t, "kind") {
	case "save":
		return saveMissive(s.All[n], n, acct, now, rapid.Bool().Draw(t, "leased"))
	case "delete":
		return deletePiece(s.All[n].ID, n, part, acct, now)
	case "begin":
		return beginMissive(t, s.All[n], n, acct, now)
	case "settle":
		return settlePiece(t, s.All[n].ID, n, part, acct, now)
	case "receipt":
		return receivePiece(t, s.All[n].ID, n, part, acct, now)
	case "claim":
		return claimMissives(acct, now)
	case "renew":
		return moveMissive(t, s.All[n], n, acct, now, true)
	}
	return moveMissive(t, s.All[n], n, acct, now, false)
}

// saveMissive saves an order of one message; one that was saved before stays as it is.
func saveMissive(m missive, n int, acct relay.AccountID, now float64, leased bool) op[missives] {
	b := message.OrderRecords{Account: acct, Now: dbtest.At(now), Messages: []message.Message{{
		ID: m.ID, Account: acct, Originator: "Shop", Destination: "447700900123", Coding: message.GSM, ReceivedAt: dbtest.At(now), ScheduledFor: dbtest.At(now),
	}}}
	due := now
	if leased {
		due = now + 10
		b.Lease = dbtest.At(due)
	}
	for range m.Parts {
		b.Messages[0].Parts = append(b.Messages[0].Parts, message.Part{Data: []byte("text"), Text: "text"})
	}
	return does[missives](
		fmt.Sprintf("save %d, leased %v", m.ID, leased),
		func(s *missives) string {
			m := &s.All[n]
			switch price := int64(len(m.Parts)); {
			case m.Saved:
				return "saved"
			case s.Credit < price:
				return relay.KindNoCredit.String()
			default:
				s.Credit -= price
			}
			m.Saved, m.Due = true, due
			for i := range m.Parts {
				m.Parts[i] = piece{message.Pending, now}
			}
			return "saved"
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			_, err := r.Messages.Save(ctx, b)
			return kindOf("saved", err)
		},
	)
}

func deletePiece(id message.ID, n, part int, acct relay.AccountID, now float64) op[missives] {
	return does[missives](
		fmt.Sprintf("delete part %d of %d", part, id),
		func(s *missives) string {
			if m := &s.All[n]; !m.Saved || !m.move(part, message.Removed, 0, now) {
				return relay.KindNotFound.String()
			}
			s.Credit++
			return "deleted"
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			return kindOf("deleted", r.Messages.Delete(ctx, acct, id+message.ID(part), dbtest.At(now)))
		},
	)
}

// beginMissive begins to submit parts; with again, also those that were being sent
// when a gateway was lost.
func beginMissive(t *rapid.T, m missive, n int, acct relay.AccountID, now float64) op[missives] {
	start := message.Beginning{
		Ref: message.Ref{Account: acct, ID: m.ID}, Carrier: "one", Now: dbtest.At(now), Until: dbtest.At(now + 10), AlsoSending: rapid.Bool().Draw(t, "again"),
	}
	for part := range m.Parts {
		if rapid.IntRange(0, 3).Draw(t, "with part") > 0 {
			start.Parts = append(start.Parts, part)
		}
	}
	return does[missives](
		fmt.Sprintf("begin parts %v of %d, again %v", start.Parts, m.ID, start.AlsoSending),
		func(s *missives) string {
			m := &s.All[n]
			keeps := m.Due >= now+5 // a lease of which half is left is not moved
			var begun []int
			for _, part := range start.Parts {
				if p := &m.Parts[part]; m.Saved && (p.State == message.Pending || p.State == message.Sending && start.AlsoSending) {
					p.State = message.Sending
					begun = append(begun, part)
				}
			}
			if len(begun) > 0 && !keeps {
				m.Due = now + 10
			}
			return fmt.Sprint(begun)
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			begun, err := r.Messages.Begin(ctx, []message.Beginning{start})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(begun[0]), nil
		},
	)
}

// settlePiece records what a carrier answered.
func settlePiece(t *rapid.T, id message.ID, n, part int, acct relay.AccountID, now float64) op[missives] {
	o := message.Outcome{
		PartRef: message.PartRef{Ref: message.Ref{Account: acct, ID: id}, Part: part}, Carrier: "one", At: dbtest.At(now),
		State: rapid.SampledFrom([]message.State{message.Accepted, message.Accepted, message.Rejected, message.Unknown, message.Pending}).Draw(t, "outcome"),
	}
	again := now + 4
	switch o.State {
	case message.Accepted:
		o.CarrierID = fmt.Sprintf("at-%d-%d", id, part)
	case message.Rejected:
		o.Reason, o.Refund = "refused", true
	case message.Pending:
		o.RetryAt = dbtest.At(again)
	}
	return does[missives](
		fmt.Sprintf("settle part %d of %d: %s", part, id, o.State),
		func(s *missives) string {
			if m := &s.All[n]; m.Saved && m.move(part, o.State, again, now) && o.Refund {
				s.Credit++
			}
			return ""
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			_, err := r.Messages.Settle(ctx, []message.Outcome{o})
			return "", err
		},
	)
}

// receivePiece records a receipt.
func receivePiece(t *rapid.T, id message.ID, n, part int, acct relay.AccountID, now float64) op[missives] {
	to := rapid.SampledFrom([]message.State{message.Buffered, message.Delivered, message.Undelivered}).Draw(t, "receipt")
	return does[missives](
		fmt.Sprintf("receipt of part %d of %d: %s", part, id, to),
		func(s *missives) string {
			if m := &s.All[n]; m.Saved {
				m.move(part, to, 0, now)
			}
			return ""
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			_, err := r.Messages.Receive(ctx, []message.Receipt{{
				Carrier: "one", State: to, At: dbtest.At(now), Found: true, Part: message.PartRef{Ref: message.Ref{Account: acct, ID: id}, Part: part},
			}}, dbtest.At(now))
			return "", err
		},
	)
}

// claimMissives leases what is due, but for messages that others are just changing.
// Messages of other histories are claimed as well.
func claimMissives(acct relay.AccountID, now float64) op[missives] {
	claim := func(but int) func(s *missives) string {
		return func(s *missives) string {
			var ids []message.ID
			for n := range s.All {
				if m := &s.All[n]; but&(1<<n) == 0 && m.Saved && m.Due >= 0 && m.Due <= now {
					m.Due = now + 10
					ids = append(ids, m.ID)
				}
			}
			return fmt.Sprint(ids)
		}
	}
	o := op[missives]{name: "claim", apply: claim(0), run: func(ctx context.Context, r *recordstest.Records) (string, error) {
		ms, err := r.Messages.LeaseDue(ctx, dbtest.At(now), dbtest.At(now+10), 100_000)
		var ids []message.ID
		for i := range ms {
			if ms[i].Account == acct {
				ids = append(ids, ms[i].ID)
			}
		}
		slices.Sort(ids)
		return fmt.Sprint(ids), err
	}}
	for but := 1; but < 8; but++ {
		o.less = append(o.less, claim(but))
	}
	return o
}

// moveMissive renews or releases a lease: the present one, or an older one.
func moveMissive(t *rapid.T, m missive, n int, acct relay.AccountID, now float64, renew bool) op[missives] {
	end := max(m.Due, 0) - float64(rapid.IntRange(0, 1).Draw(t, "older"))
	to := now
	if renew {
		to = now + 10
	}
	return does[missives](
		fmt.Sprintf("move the lease of %d that ends at %g to %g", m.ID, end, to),
		func(s *missives) string {
			m := &s.All[n]
			moved := m.Saved && m.Due >= 0 && m.Due <= end
			if moved {
				m.Due = to
			}
			return fmt.Sprint(moved && renew)
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			ls := []message.Lease{{Ref: message.Ref{Account: acct, ID: m.ID}, End: dbtest.At(end)}}
			if !renew {
				return "false", r.Messages.Release(ctx, ls, dbtest.At(to))
			}
			moved, err := r.Messages.Renew(ctx, ls, dbtest.At(to))
			return fmt.Sprint(len(moved) == 1), err
		},
	)
}

func readMissives(ctx context.Context, r *recordstest.Records, s missives, acct relay.AccountID) (string, error) {
	var err error
	if s.Credit, err = r.Credit.Balance(ctx, acct); err != nil {
		return "", err
	}
	var pending []message.ID
	for n := range s.All {
		m, err := r.Messages.Get(ctx, acct, s.All[n].ID)
		if err != nil && relay.KindOf(err) != relay.KindNotFound {
			return "", err
		}
		s.All[n].Saved = err == nil
		for part := range m.Parts {
			s.All[n].Parts[part].State = m.Parts[part].State
			if m.Parts[part].State == message.Pending {
				pending = append(pending, m.PartID(part))
			}
		}
	}
	listed, total, err := r.Messages.Pending(ctx, acct, 0, 100)
	if err != nil {
		return "", err
	}
	if total != len(pending) || len(listed) != len(pending) {
		return "", fmt.Errorf("%d parts are pending, %d are listed, of %d", len(pending), len(listed), total)
	}
	return s.show(), nil
}
