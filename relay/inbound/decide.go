package inbound

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
)

// Settings are the settings that routing decisions depend on.
type Settings struct {
	// Zone is where %time and %smsTime are; nil means UTC.
	Zone *time.Location
	// MailDomain is the right side of the Message-ID of e-mails; empty means
	// penstock.invalid.
	MailDomain string
}

// Decision is the routing decision for a message, with its reason.
type Decision struct {
	// State is Done, Unrouted (no relay takes it) or Quarantined (a relay does,
	// but cannot be performed, or the message makes no sense).
	State  event.State
	Reason string // of Unrouted and Quarantined
	// Outcome is, for Done, the relay and what it leads to. Explain and a trace show it;
	// it is not stored with the event.
	Outcome    string
	Matched    *Relay // nil when none is
	Why        string // it matched
	Considered []Considered
	Deliveries []outbox.Delivery
	// InboxMessage is set if the message goes to an inbox.
	InboxMessage *InboxMessage
}

// Decide routes a message over the candidate routes of its number. It is pure:
// the same message and relays give the same deliveries with the same ids.
func Decide(m *Message, routes []*Route, s Settings) Decision {
	if why := m.invalid(); why != "" {
		return Decision{State: event.Quarantined, Reason: why}
	}
	s = s.withDefaults()
	route, considered, err := match(m, routes, s)
	d := Decision{Considered: considered}
	if route == nil {
		d.State, d.Reason = event.Unrouted, unrouted(m, considered)
		return d
	}
	d.Matched, d.Why = &route.Relay, whyOf(route, considered)
	if err = cmp.Or(route.broken, err); err != nil {
		d.State, d.Reason = event.Quarantined, err.Error()
		return d
	}
	d.State, d.Deliveries = event.Done, route.deliveries(m, s)
	d.Outcome = fmt.Sprintf("%s: %s, %d deliveries", route, route.Action.Name, len(d.Deliveries))
	if route.Action.Name == DesktopSMS {
		d.InboxMessage = &InboxMessage{Account: route.Account, Relay: route.ID, Labels: route.Action.Parameters, Message: *m}
		d.Outcome = fmt.Sprintf("%s: %s, kept in the inbox", route, route.Action.Name)
	}
	return d
}

func (s Settings) withDefaults() Settings {
	if s.Zone == nil {
		s.Zone = time.UTC
	}
	if s.MailDomain == "" {
		s.MailDomain = "penstock.invalid"
	}
	return s
}

// invalid returns why a message is invalid, "" if it is valid.
func (m *Message) invalid() string {
	switch {
	case m.ID == "":
		return "the message has no id"
	case !relay.Digits(m.To) || len(m.To) > maxDigits:
		return fmt.Sprintf("invalid number %.40q", m.To)
	case m.Coding != sms.GSM && m.Coding != sms.Binary && m.Coding != sms.UCS2:
		return fmt.Sprintf("unknown coding %d", m.Coding)
	}
	return ""
}

// whyOf returns the reason for selecting a route.
func whyOf(route *Route, considered []Considered) string {
	index := slices.IndexFunc(considered, func(c Considered) bool { return c.Kind == route.Kind && c.ID == route.ID && c.Account == route.Account })
	why := considered[index].Why
	if route.filter != nil {
		why += ", and the message meets its filter"
	}
	return why
}

// unrouted returns the reason why no relay takes a message. It does not name
// relays of other accounts.
func unrouted(m *Message, considered []Considered) string {
	var text strings.Builder
	text.WriteString("no relay for " + m.To)
	if m.Account != 0 {
		text.Reset()
		fmt.Fprintf(&text, "no relay of account %d for %s", m.Account, m.To)
	}
	for _, c := range considered {
		if c.Holds != nil {
			fmt.Fprintf(&text, "; %s relay %s has a filter that it does not meet", c.Kind, c.ID)
		}
	}
	return text.String()
}

// errorText returns an error as one line of text.
func errorText(err error) string {
	var reasons []string
	for _, field := range []string{"action", "parameters"} {
		reasons = append(reasons, relay.FieldsOf(err)[field]...)
	}
	if len(reasons) == 0 {
		return err.Error()
	}
	return strings.Join(reasons, " ")
}
