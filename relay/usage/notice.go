package usage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sim"
)

// The events that are sent to an account's callback.
const (
	LimitWarning = "usage.limit_warning"
	LimitReached = "usage.limit_reached"
)

// notifyDue sends the notifications that are due and records each step afterwards.
// A step that is repeated, because a process died in between, has the same ids.
func (m *Meter) notifyDue(ctx context.Context, one limited, bytes int64, due Steps) error {
	for _, s := range []struct {
		step        Steps
		event, what string
		threshold   int64
	}{
		{Warned, LimitWarning, "is near its monthly limit", one.limit.Warning},
		{Reached, LimitReached, "has reached its monthly limit", one.limit.Monthly},
	} {
		if !due.Has(s.step) {
			continue
		}
		if err := m.notify(ctx, one, s.event, bytes, s.what, s.threshold); err != nil {
			return fmt.Errorf("usage: limit of %s %s: %w", one.subject.Scope, one.subject.ID, err)
		}
		if err := m.deps.Counters.AddSteps(ctx, one.account, one.subject, s.step); err != nil {
			return err
		}
	}
	return nil
}

// notify sends an event to the callback and mails to the recipients.
func (m *Meter) notify(ctx context.Context, one limited, event string, bytes int64, what string, threshold int64) error {
	id := fmt.Sprintf("%s-%s", event, one.key())
	if err := m.deps.Events.Notify(ctx, one.account, outbox.Event{
		ID: id, Type: event, CreatedAt: m.deps.Now(), About: one.subject.ID, Data: one.data(bytes),
	}); err != nil {
		return err
	}
	text := fmt.Sprintf("%s %s.\n\nUsed in %s (UTC): %d bytes\nMark that was passed: %d bytes\nMonthly limit: %s\n",
		one.title(), what, one.subject.Month, bytes, threshold, amount(one.limit.Monthly))
	if event == LimitReached && one.limit.Cap == sim.Block {
		text += "\nThe limit is set to block: the operator is asked to suspend what uses it.\n"
	}
	mails := make([]outbox.Notice, len(one.recipients))
	for i, to := range one.recipients {
		mails[i] = outbox.Notice{ID: id + "-" + hashOf(to.Email), To: to.Email, Subject: one.title() + " " + what, Text: text}
	}
	return m.deps.Mails.Send(ctx, one.account, one.subject.ID, mails...)
}

func amount(bytes int64) string {
	if bytes == 0 {
		return "none"
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// hashOf identifies an address without revealing it.
func hashOf(address string) string {
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:8])
}

// key identifies a subject across all accounts.
func (l limited) key() string {
	return fmt.Sprintf("%d-%s-%s-%s", l.account, l.subject.Scope, l.subject.ID, l.subject.Month)
}

// title is the subject's name in a mail.
func (l limited) title() string {
	if l.subject.Scope == OfPool {
		return fmt.Sprintf("SIM pool %s (%s)", l.name, l.subject.ID)
	}
	return "SIM " + l.subject.ID
}

// data is that of an event.
func (l limited) data(bytes int64) map[string]any {
	d := map[string]any{
		"month": l.subject.Month.String(), "usage": bytes, "unit": "bytes", "cap_limit_type": string(l.limit.Cap),
		"monthly_usage_limit": orNull(l.limit.Monthly), "monthly_usage_limit_warning": orNull(l.limit.Warning),
	}
	if l.subject.Scope == OfPool {
		d["pool_id"], d["pool_name"] = l.subject.ID, l.name
	} else {
		d["iccid"] = l.subject.ID
	}
	return d
}

func orNull(bytes int64) any {
	if bytes == 0 {
		return nil
	}
	return bytes
}
