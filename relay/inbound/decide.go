package inbound

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/condition"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
)

// Settings are the settings that routing decisions depend on.
type Settings struct {
	// Zone is the time zone of %time, %smsTime and the times in filters; nil means UTC.
	Zone *time.Location
	// MailDomain is the right side of the Message-ID of e-mails; empty means
	// penstock.invalid.
	MailDomain string
}

// Decision is the routing decision for a message, with its reason.
type Decision struct {
	// State is Done, Unrouted (no relay matches) or Quarantined (the message, the relay or its
	// filter is invalid).
	State  event.State
	Reason string // of Unrouted and Quarantined
	// Outcome describes the relay and its action if the State is Done. Explain and traces
	// show it; events do not store it.
	Outcome     string
	Matched     *Relay // nil if no relay matches
	MatchReason string // reason for Matched
	Considered  []ConsideredRelay
	Deliveries  []outbox.Delivery
	// InboxMessage is set if the message goes to an inbox.
	InboxMessage *InboxMessage
}

// Decide selects the relay of a message among the relays of its number. It is pure: the same message
// and relays give the same deliveries with the same ids.
func Decide(m *Message, relays []*CompiledRelay, s Settings) Decision {
	s.Zone, s.MailDomain = cmp.Or(s.Zone, time.UTC), cmp.Or(s.MailDomain, "penstock.invalid")
	d := Decision{State: event.Quarantined}
	switch {
	case m.ID == "":
		d.Reason = "the message has no id"
		return d
	case !relay.Digits(m.To) || len(m.To) > maxDigits:
		d.Reason = fmt.Sprintf("invalid number %.40q", m.To)
		return d
	case m.Coding != sms.GSM && m.Coding != sms.Binary && m.Coding != sms.UCS2:
		d.Reason = fmt.Sprintf("unknown coding %d", m.Coding)
		return d
	}
	matched, err := d.match(m, relays, s.Zone)
	if matched == nil {
		// The reason does not name relays of other accounts.
		d.State, d.Reason = event.Unrouted, "no relay for "+m.To
		if m.Account != 0 {
			d.Reason = "the account has no relay for " + m.To
		}
		var unmet []string
		for _, c := range d.Considered {
			if c.Holds != nil {
				unmet = append(unmet, Relay{Kind: c.Kind, ID: c.ID}.label())
			}
		}
		if len(unmet) > 0 {
			d.Reason = "the message to " + m.To + " does not meet the condition of " + strings.Join(unmet, " or ")
		}
		return d
	}
	d.Matched = &matched.Relay
	if err = cmp.Or(matched.broken, err); err != nil {
		d.Reason = err.Error()
		return d
	}
	d.State, d.Deliveries = event.Done, matched.deliveries(m, s)
	switch {
	case matched.Action.Name == DesktopSMS:
		d.InboxMessage = &InboxMessage{Account: matched.Account, Relay: matched.ID, Labels: matched.Action.Parameters, Message: *m}
		d.Outcome = matched.label() + " keeps the message in its inbox"
	case len(d.Deliveries) == 0:
		d.Outcome = matched.label() + " discards the message"
	default:
		d.Outcome = matched.label() + " forwards the message"
	}
	return d
}

// CompiledRelay is a relay with its compiled endpoints and filter.
type CompiledRelay struct {
	Relay
	parameterKind ParameterKind // of the action
	endpoints     []*Template
	// filter is an extension of the specification: a condition on messages, see
	// condition.CompileFilter; nil for none. A message that does not meet it goes to the next
	// matching relay.
	filter *condition.Filter
	broken error // why the relay is invalid; its messages are quarantined
}

// Compile compiles a relay. Messages of a relay that is not valid any more are quarantined with
// the reason.
func Compile(r Relay) *CompiledRelay {
	compiled := &CompiledRelay{Relay: r}
	if r.Undecryptable {
		compiled.broken = fmt.Errorf("%s cannot be used: %w, then replay the message", r.label(), relay.ErrUndecryptable)
		return compiled
	}
	if r.Filter != "" {
		var err error
		if compiled.filter, err = condition.CompileFilter(r.Filter); err != nil {
			compiled.broken = fmt.Errorf("%s cannot be used: its condition is not valid: %w", r.label(), err)
			return compiled
		}
	}
	// Unknown placeholders in a query are accepted, because earlier versions did not refuse
	// them.
	if err := cmp.Or(r.Action.validate(r.Kind, func(*Template) error { return nil }), r.checkSIM()); err != nil {
		fields := relay.FieldsOf(err)
		compiled.broken = fmt.Errorf("%s cannot be used: %s", r.label(), strings.Join(slices.Concat(fields["action"], fields["parameters"]), " "))
		return compiled
	}
	info, _ := actionOf(r.Kind, r.Action.Name)
	if compiled.parameterKind = info.ParameterKind; compiled.parameterKind == urls {
		for _, p := range r.Action.Parameters {
			t, _ := CompileURL(r.Kind, p) // just validated
			compiled.endpoints = append(compiled.endpoints, t)
		}
	}
	return compiled
}

// ConsideredRelay is a relay that was considered for a message.
type ConsideredRelay struct {
	Kind    Kind            `json:"kind"`
	ID      string          `json:"id"`
	Account relay.AccountID `json:"account"`
	Reason  string          `json:"why"` // why the relay was selected or not
	// Filter is the relay's filter, Holds its result; nil if there is no filter or it was not
	// evaluated.
	Filter string `json:"filter,omitempty"`
	Holds  *bool  `json:"holds,omitempty"`
}

// match selects the relay of a message: the exact virtual number, otherwise the longest prefix,
// among the relays of the message's account whose filter the message meets. It sets Considered
// and MatchReason. If the evaluation of a filter fails, match returns its relay and the error.
func (d *Decision) match(m *Message, relays []*CompiledRelay, zone *time.Location) (matched *CompiledRelay, err error) {
	kindOrder := []Kind{VirtualNumber, Geographic}
	sorted := slices.SortedFunc(slices.Values(relays), func(a, b *CompiledRelay) int {
		return cmp.Or(
			cmp.Compare(slices.Index(kindOrder, a.Kind), slices.Index(kindOrder, b.Kind)),
			cmp.Compare(len(b.Number), len(a.Number)),
			cmp.Compare(a.Account, b.Account),
			cmp.Compare(a.ID, b.ID),
		)
	})
	for _, r := range sorted {
		fits, reason := r.fits(m.To)
		if !fits {
			continue
		}
		c := ConsideredRelay{Kind: r.Kind, ID: r.ID, Account: r.Account, Reason: reason, Filter: r.Filter}
		switch {
		case m.Account != 0 && r.Account != m.Account:
			c.Reason = "it belongs to another account"
		case matched != nil:
			c.Reason += ", but " + matched.label() + " takes precedence"
		case r.filter == nil:
			matched, d.MatchReason = r, reason
		default:
			// The filter gets the time of receipt, so that a replay makes the same decision.
			holds, filterErr := r.filter.Holds(condition.Message{
				Originator: m.From, Destination: m.To, Text: m.Body(), Coding: int(m.Coding), Network: networkOf(view{m, zone}), ReceivedAt: m.ReceivedAt.In(zone),
			})
			c.Holds = &holds
			if !holds && filterErr == nil {
				c.Reason += ", but the message does not meet its condition"
				break
			}
			if matched, d.MatchReason = r, reason+", and the message meets its condition"; filterErr != nil {
				err = fmt.Errorf("the condition of %s fails: %w", r.label(), filterErr)
			}
		}
		d.Considered = append(d.Considered, c)
	}
	return matched, err
}

func (r *CompiledRelay) fits(number string) (bool, string) {
	if r.Kind == VirtualNumber {
		return r.Number == number, "its number is " + r.Number
	}
	return strings.HasPrefix(number, r.Number), "its prefix " + r.Number + " matches"
}
