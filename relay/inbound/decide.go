package inbound

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
)

// Settings is what deciding needs besides the message and the relays.
type Settings struct {
	// Zone is where %time and %smsTime are; nil means UTC.
	Zone *time.Location
	// MailDomain is the right side of the Message-ID of e-mails; empty means
	// penstock.invalid.
	MailDomain string
}

// Decision is what becomes of a message and why.
type Decision struct {
	// State is Done, Unrouted (no relay takes it) or Quarantined (a relay does,
	// but cannot be performed, or the message makes no sense).
	State      event.State
	Reason     string // of Unrouted and Quarantined
	Outcome    string // of Done
	Matched    *Relay // nil when none is
	Why        string // it matched
	Considered []Considered
	Deliveries []outbox.Delivery
	// Kept is the message as it goes to an inbox; nil unless it does.
	Kept *Kept
}

// Decide says what becomes of a message, given the routes that its number may
// take. It is pure: the same message and relays give the same deliveries with
// the same ids.
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
		d.Kept = &Kept{Account: route.Account, Relay: route.ID, Labels: route.Action.Parameters, Message: *m}
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

// invalid says what is wrong with a message that no adapter should let pass.
func (m *Message) invalid() string {
	switch {
	case m.ID == "":
		return "the message has no id"
	case !digits(m.To) || len(m.To) > maxDigits:
		return fmt.Sprintf("the number %.40q is none", m.To)
	case m.Coding != GSM && m.Coding != Binary && m.Coding != Unicode:
		return fmt.Sprintf("the coding %d is none", m.Coding)
	}
	return ""
}

// whyOf says why the route was taken.
func whyOf(route *Route, considered []Considered) string {
	at := slices.IndexFunc(considered, func(c Considered) bool { return c.Kind == route.Kind && c.ID == route.ID && c.Account == route.Account })
	why := considered[at].Why
	if route.filter != nil {
		why += ", and the message meets its filter"
	}
	return why
}

// unrouted says why nobody takes a message; relays of others are not named.
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

// reason is an error in one line for people.
func reason(err error) string {
	var all []string
	for _, field := range []string{"action", "parameters"} {
		all = append(all, relay.FieldsOf(err)[field]...)
	}
	if len(all) == 0 {
		return err.Error()
	}
	return strings.Join(all, " ")
}
