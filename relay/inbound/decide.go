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
	// have it; it is not stored with the event.
	Outcome     string
	Matched     *Relay // nil if no relay matches
	MatchReason string // reason for Matched
	Considered  []ConsideredRelay
	Deliveries  []outbox.Delivery
	// InboxMessage is set if the message goes to an inbox.
	InboxMessage *InboxMessage
}

// Decide routes a message over the candidate routes of its number. It is pure: the same message and
// relays give the same deliveries with the same ids.
func Decide(m *Message, routes []*Route, s Settings) Decision {
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
	route, err := d.match(m, routes, s.Zone)
	if route == nil {
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
	d.Matched = &route.Relay
	if err = cmp.Or(route.broken, err); err != nil {
		d.Reason = err.Error()
		return d
	}
	d.State, d.Deliveries = event.Done, route.deliveries(m, s)
	switch {
	case route.Action.Name == DesktopSMS:
		d.InboxMessage = &InboxMessage{Account: route.Account, Relay: route.ID, Labels: route.Action.Parameters, Message: *m}
		d.Outcome = route.label() + " keeps the message in its inbox"
	case len(d.Deliveries) == 0:
		d.Outcome = route.label() + " discards the message"
	default:
		d.Outcome = route.label() + " forwards the message"
	}
	return d
}

// Route is a relay with its compiled endpoints and filter.
type Route struct {
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
func Compile(r Relay) *Route {
	route := &Route{Relay: r}
	if r.Undecryptable {
		route.broken = fmt.Errorf("%s cannot be used: %w, then replay the message", r.label(), relay.ErrUndecryptable)
		return route
	}
	if r.Filter != "" {
		var err error
		if route.filter, err = condition.CompileFilter(r.Filter); err != nil {
			route.broken = fmt.Errorf("%s cannot be used: its condition is not valid: %w", r.label(), err)
			return route
		}
	}
	// Unknown placeholders in a query are accepted, because earlier versions did not refuse
	// them.
	if err := cmp.Or(r.Action.validate(r.Kind, func(*Template) error { return nil }), r.checkSIM()); err != nil {
		fields := relay.FieldsOf(err)
		route.broken = fmt.Errorf("%s cannot be used: %s", r.label(), strings.Join(slices.Concat(fields["action"], fields["parameters"]), " "))
		return route
	}
	info, _ := actionOf(r.Kind, r.Action.Name)
	if route.parameterKind = info.ParameterKind; route.parameterKind == urls {
		for _, p := range r.Action.Parameters {
			t, _ := CompileURL(r.Kind, p) // just validated
			route.endpoints = append(route.endpoints, t)
		}
	}
	return route
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

// match selects the route of a message: the exact virtual number, otherwise the longest prefix,
// among the routes of the message's account whose filter the message meets. It sets Considered
// and MatchReason. If the evaluation of a filter fails, match returns its route and the error.
func (d *Decision) match(m *Message, routes []*Route, zone *time.Location) (matched *Route, err error) {
	sorted := slices.SortedFunc(slices.Values(routes), func(a, b *Route) int {
		return cmp.Or(
			-cmp.Compare(a.Kind, b.Kind), // vmn before geo
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
			// The filter gets the time of receipt, so that a replay decides as the first time.
			holds, filterErr := r.filter.Holds(condition.Message{
				Originator: m.From, Destination: m.To, Text: m.Body(), Coding: int(m.Coding), Network: network(view{m, zone}), At: m.ReceivedAt.In(zone),
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

func (r *Route) fits(number string) (bool, string) {
	if r.Kind == VirtualNumber {
		return r.Number == number, "its number is " + r.Number
	}
	return strings.HasPrefix(number, r.Number), "its prefix " + r.Number + " matches"
}
