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

// notifyDue sends the notifications of due steps, and records each step afterwards. If a process
// stops in between, the repeated notifications have the same ids and are not sent twice.
func (m *Meter) notifyDue(ctx context.Context, l limitedCounter, bytes int64, due Steps) error {
	for _, s := range []struct {
		step         Steps
		event, label string
		threshold    int64
	}{
		{Warned, LimitWarning, "is near its monthly limit", l.limit.Warning},
		{LimitReported, LimitReached, "has reached its monthly limit", l.limit.Monthly},
	} {
		if !due.Has(s.step) {
			continue
		}
		if err := m.notify(ctx, l, s.event, bytes, s.label, s.threshold); err != nil {
			return fmt.Errorf("usage: limit of %s %s: %w", l.subject.Scope, l.subject.ID, err)
		}
		if err := m.deps.Counters.AddSteps(ctx, l.account, l.subject, s.step); err != nil {
			return err
		}
	}
	return nil
}

// notify sends an event to the callback and mails to the recipients.
func (m *Meter) notify(ctx context.Context, l limitedCounter, event string, bytes int64, label string, threshold int64) error {
	id := fmt.Sprintf("%s-%d-%s-%s-%s", event, l.account, l.subject.Scope, l.subject.ID, l.subject.Month)
	data := map[string]any{
		"month": l.subject.Month.String(), "usage": bytes, "unit": "bytes", "cap_limit_type": string(l.limit.Action),
		"monthly_usage_limit": orNull(l.limit.Monthly), "monthly_usage_limit_warning": orNull(l.limit.Warning),
	}
	if l.subject.Scope == OfPool {
		data["pool_id"], data["pool_name"] = l.subject.ID, l.name
	} else {
		data["iccid"] = l.subject.ID
	}
	if err := m.deps.Events.Notify(ctx, l.account, outbox.Event{
		ID: id, Type: event, CreatedAt: m.deps.Now(), About: l.subject.ID, Data: data,
	}); err != nil {
		return err
	}
	monthlyLimit := "none"
	if l.limit.Monthly > 0 {
		monthlyLimit = fmt.Sprintf("%d bytes", l.limit.Monthly)
	}
	text := fmt.Sprintf("%s %s.\n\nUsed in %s (UTC): %d bytes\nThreshold reached: %d bytes\nMonthly limit: %s\n",
		l.title(), label, l.subject.Month, bytes, threshold, monthlyLimit)
	if event == LimitReached && l.limit.Action == sim.Block {
		text += "\nThe limit is set to block: its SIMs are suspended.\n"
	}
	mails := make([]outbox.Notice, len(l.recipients))
	for i, recipient := range l.recipients {
		mails[i] = outbox.Notice{ID: id + "-" + hashOf(recipient.Email), To: recipient.Email, Subject: l.title() + " " + label, Text: text}
	}
	return m.deps.Mails.Send(ctx, l.account, l.subject.ID, mails...)
}

// hashOf identifies an address without revealing it.
func hashOf(address string) string {
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:8])
}

// title returns the name of the subject in mails.
func (l limitedCounter) title() string {
	if l.subject.Scope == OfPool {
		return fmt.Sprintf("SIM pool %s (%s)", l.name, l.subject.ID)
	}
	return "SIM " + l.subject.ID
}

func orNull(bytes int64) any {
	if bytes == 0 {
		return nil
	}
	return bytes
}
