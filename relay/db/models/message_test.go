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

// modelPart is the model of a message part. Due is the time of the next submission.
type modelPart struct {
	State message.State
	Due   float64
}

// modelMessage is the model of a message.
type modelMessage struct {
	ID    message.ID
	Saved bool
	Due   float64 // end of the lease or time of the next submission; -1 for none
	Parts []modelPart
}

// modelMessages are the messages of the model and the account's credit. The credit pays for one of
// the messages but not for all.
type modelMessages struct {
	Credit   int64
	Messages [3]modelMessage
}

const modelCredit = 4

// previousPartStates returns the states that each state may follow: the transitions of the
// specification and those of a crash.
func previousPartStates() map[message.State][]message.State {
	inFlight := []message.State{message.Sending, message.Unknown}
	open := []message.State{message.Pending, message.Sending, message.Unknown, message.Accepted, message.Buffered}
	return map[message.State][]message.State{
		message.Removed: {message.Pending}, message.Unknown: {message.Sending}, message.Pending: inFlight, message.Accepted: inFlight,
		message.Buffered: append(inFlight, message.Accepted), message.Delivered: open, message.Undelivered: open, message.Rejected: open,
	}
}

// move changes the state of a part and reports whether the transition is valid.
func (m *modelMessage) move(part int, state message.State, due, now float64) bool {
	p := &m.Parts[part]
	if !slices.Contains(previousPartStates()[state], p.State) {
		return false
	}
	p.State = state
	if state == message.Pending {
		p.Due = due
	}
	m.schedule(now)
	return true
}

// schedule sets Due. A lease stays while a part is Sending or due.
func (m *modelMessage) schedule(now float64) {
	leased, nextDue := false, -1.0
	for _, p := range m.Parts {
		leased = leased || p.State == message.Sending || p.State == message.Pending && p.Due <= now
		if p.State == message.Pending && (nextDue < 0 || p.Due < nextDue) {
			nextDue = p.Due
		}
	}
	if !leased || m.Due < 0 {
		m.Due = nextDue
	}
}

func (s modelMessages) show() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d credits", s.Credit)
	for _, m := range s.Messages {
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

func messageModel() machine[modelMessages] {
	return machine[modelMessages]{
		begin: func(ctx context.Context, r *recordstest.Records, acct relay.AccountID) (modelMessages, error) {
			s := modelMessages{Credit: modelCredit}
			for n := range s.Messages {
				m := modelMessage{Due: -1, Parts: make([]modelPart, 1+n)}
				id, err := r.Messages.Reserve(ctx, len(m.Parts))
				if err != nil {
					return s, err
				}
				m.ID = id
				s.Messages[n] = m
			}
			return s, r.Credit.Open(ctx, acct, modelCredit, dbtest.TimeAt(0))
		},
		clone: func(s modelMessages) modelMessages {
			for n := range s.Messages {
				s.Messages[n].Parts = slices.Clone(s.Messages[n].Parts)
			}
			return s
		},
		draw: drawMessageOp, read: readMessages, show: modelMessages.show,
	}
}

func drawMessageOp(t *rapid.T, s modelMessages, acct relay.AccountID, now float64) op[modelMessages] {
	n := rapid.IntRange(0, 2).Draw(t, "message")
	part := rapid.IntRange(0, n).Draw(t, "part")
	switch rapid.SampledFrom([]string{"save", "save", "delete", "begin", "begin", "settle", "settle", "settle", "receipt", "lease", "lease", "renew", "release"}).Draw(t, "kind") {
	case "save":
		return saveMessage(s.Messages[n], n, acct, now, rapid.Bool().Draw(t, "leased"))
	case "delete":
		return deletePart(s.Messages[n].ID, n, part, acct, now)
	case "begin":
		return beginMessage(t, s.Messages[n], n, acct, now)
	case "settle":
		return settlePart(t, s.Messages[n].ID, n, part, acct, now)
	case "receipt":
		return receivePart(t, s.Messages[n].ID, n, part, acct, now)
	case "lease":
		return leaseMessages(acct, now)
	case "renew":
		return moveMessageLease(t, s.Messages[n], n, acct, now, true)
	}
	return moveMessageLease(t, s.Messages[n], n, acct, now, false)
}

// saveMessage saves an order of one message. A message that was saved before stays unchanged.
func saveMessage(m modelMessage, n int, acct relay.AccountID, now float64, leased bool) op[modelMessages] {
	b := message.OrderRecords{Account: acct, Now: dbtest.TimeAt(now), Messages: []message.Message{{
		ID: m.ID, Account: acct, Originator: "Shop", Destination: "447700900123", Coding: message.GSM, ReceivedAt: dbtest.TimeAt(now), ScheduledFor: dbtest.TimeAt(now),
	}}}
	due := now
	if leased {
		due = now + 10
		b.Lease = dbtest.TimeAt(due)
	}
	for range m.Parts {
		b.Messages[0].Parts = append(b.Messages[0].Parts, message.Part{Data: []byte("text"), Text: "text"})
	}
	return newOp[modelMessages](
		fmt.Sprintf("save %d, leased %v", m.ID, leased),
		func(s *modelMessages) string {
			m := &s.Messages[n]
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
				m.Parts[i] = modelPart{message.Pending, now}
			}
			return "saved"
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			_, err := r.Messages.Save(ctx, b)
			return kindOf("saved", err)
		},
	)
}

func deletePart(id message.ID, n, part int, acct relay.AccountID, now float64) op[modelMessages] {
	return newOp[modelMessages](
		fmt.Sprintf("delete part %d of %d", part, id),
		func(s *modelMessages) string {
			if m := &s.Messages[n]; !m.Saved || !m.move(part, message.Removed, 0, now) {
				return relay.KindNotFound.String()
			}
			s.Credit++
			return "deleted"
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			return kindOf("deleted", r.Messages.Delete(ctx, acct, id+message.ID(part), dbtest.TimeAt(now)))
		},
	)
}

// beginMessage sets parts to Sending; with AlsoSending, also parts that are Sending already.
func beginMessage(t *rapid.T, m modelMessage, n int, acct relay.AccountID, now float64) op[modelMessages] {
	beginning := message.SendingParts{
		Ref: message.Ref{Account: acct, ID: m.ID}, Carrier: "one", Now: dbtest.TimeAt(now), LeaseEnd: dbtest.TimeAt(now + 10), AlsoSending: rapid.Bool().Draw(t, "also sending"),
	}
	for part := range m.Parts {
		if rapid.IntRange(0, 3).Draw(t, "with part") > 0 {
			beginning.Parts = append(beginning.Parts, part)
		}
	}
	return newOp[modelMessages](
		fmt.Sprintf("begin parts %v of %d, also sending %v", beginning.Parts, m.ID, beginning.AlsoSending),
		func(s *modelMessages) string {
			m := &s.Messages[n]
			keepsLease := m.Due >= now+5 // a lease with half of its time left is not moved
			var begunParts []int
			for _, part := range beginning.Parts {
				if p := &m.Parts[part]; m.Saved && (p.State == message.Pending || p.State == message.Sending && beginning.AlsoSending) {
					p.State = message.Sending
					begunParts = append(begunParts, part)
				}
			}
			if len(begunParts) > 0 && !keepsLease {
				m.Due = now + 10
			}
			return fmt.Sprint(begunParts)
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			begunParts, err := r.Messages.MarkSending(ctx, []message.SendingParts{beginning})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(begunParts[0]), nil
		},
	)
}

// settlePart records a carrier's answer.
func settlePart(t *rapid.T, id message.ID, n, part int, acct relay.AccountID, now float64) op[modelMessages] {
	o := message.Outcome{
		PartRef: message.PartRef{Ref: message.Ref{Account: acct, ID: id}, Part: part}, Carrier: "one", At: dbtest.TimeAt(now),
		State: rapid.SampledFrom([]message.State{message.Accepted, message.Accepted, message.Rejected, message.Unknown, message.Pending}).Draw(t, "outcome"),
	}
	retryAt := now + 4
	switch o.State {
	case message.Accepted:
		o.CarrierID = fmt.Sprintf("id-%d-%d", id, part)
	case message.Rejected:
		o.Reason, o.Refund = "refused", true
	case message.Pending:
		o.RetryAt = dbtest.TimeAt(retryAt)
	}
	return newOp[modelMessages](
		fmt.Sprintf("settle part %d of %d: %s", part, id, o.State),
		func(s *modelMessages) string {
			if m := &s.Messages[n]; m.Saved && m.move(part, o.State, retryAt, now) && o.Refund {
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

// receivePart records a receipt.
func receivePart(t *rapid.T, id message.ID, n, part int, acct relay.AccountID, now float64) op[modelMessages] {
	state := rapid.SampledFrom([]message.State{message.Buffered, message.Delivered, message.Undelivered}).Draw(t, "receipt")
	return newOp[modelMessages](
		fmt.Sprintf("receipt of part %d of %d: %s", part, id, state),
		func(s *modelMessages) string {
			if m := &s.Messages[n]; m.Saved {
				m.move(part, state, 0, now)
			}
			return ""
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			_, err := r.Messages.Receive(ctx, []message.Receipt{{
				Carrier: "one", State: state, At: dbtest.TimeAt(now), Matched: true, Part: message.PartRef{Ref: message.Ref{Account: acct, ID: id}, Part: part},
			}}, dbtest.TimeAt(now))
			return "", err
		},
	)
}

// leaseMessages leases due messages and skips messages that are locked. It also leases messages
// of other histories.
func leaseMessages(acct relay.AccountID, now float64) op[modelMessages] {
	lease := func(skipped int) func(s *modelMessages) string { // skipped is a bit set
		return func(s *modelMessages) string {
			var ids []message.ID
			for n := range s.Messages {
				if m := &s.Messages[n]; skipped&(1<<n) == 0 && m.Saved && m.Due >= 0 && m.Due <= now {
					m.Due = now + 10
					ids = append(ids, m.ID)
				}
			}
			return fmt.Sprint(ids)
		}
	}
	o := op[modelMessages]{name: "lease", apply: lease(0), run: func(ctx context.Context, r *recordstest.Records) (string, error) {
		ms, err := r.Messages.LeaseDue(ctx, dbtest.TimeAt(now), dbtest.TimeAt(now+10), 100_000)
		var ids []message.ID
		for i := range ms {
			if ms[i].Account == acct {
				ids = append(ids, ms[i].ID)
			}
		}
		slices.Sort(ids)
		return fmt.Sprint(ids), err
	}}
	for skipped := 1; skipped < 8; skipped++ {
		o.skipAlternatives = append(o.skipAlternatives, lease(skipped))
	}
	return o
}

// moveMessageLease renews or releases the current lease or an older one.
func moveMessageLease(t *rapid.T, m modelMessage, n int, acct relay.AccountID, now float64, renew bool) op[modelMessages] {
	end := max(m.Due, 0) - float64(rapid.IntRange(0, 1).Draw(t, "older"))
	newEnd := now
	if renew {
		newEnd = now + 10
	}
	return newOp[modelMessages](
		fmt.Sprintf("move the lease of %d that ends at %g to %g", m.ID, end, newEnd),
		func(s *modelMessages) string {
			m := &s.Messages[n]
			moved := m.Saved && m.Due >= 0 && m.Due <= end
			if moved {
				m.Due = newEnd
			}
			return fmt.Sprint(moved && renew)
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			ls := []message.Lease{{Ref: message.Ref{Account: acct, ID: m.ID}, End: dbtest.TimeAt(end)}}
			if !renew {
				return "false", r.Messages.Release(ctx, ls, dbtest.TimeAt(newEnd))
			}
			moved, err := r.Messages.Renew(ctx, ls, dbtest.TimeAt(newEnd))
			return fmt.Sprint(len(moved) == 1), err
		},
	)
}

func readMessages(ctx context.Context, r *recordstest.Records, s modelMessages, acct relay.AccountID) (string, error) {
	var err error
	if s.Credit, err = r.Credit.Balance(ctx, acct); err != nil {
		return "", err
	}
	var pending []message.ID
	for n := range s.Messages {
		m, err := r.Messages.Get(ctx, acct, s.Messages[n].ID)
		if err != nil && relay.KindOf(err) != relay.KindNotFound {
			return "", err
		}
		s.Messages[n].Saved = err == nil
		for part := range m.Parts {
			s.Messages[n].Parts[part].State = m.Parts[part].State
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
		return "", fmt.Errorf("%d parts are pending, %d are listed, the total is %d", len(pending), len(listed), total)
	}
	return s.show(), nil
}
