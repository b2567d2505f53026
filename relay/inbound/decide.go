package inbound

import (
	"fmt"
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
	route, why, considered := match(m.Account, m.To, routes)
	d := Decision{Why: why, Considered: considered}
	if route == nil {
		d.State, d.Reason = event.Unrouted, unrouted(m)
		return d
	}
	d.Matched = &route.Relay
	if route.broken != nil {
		d.State, d.Reason = event.Quarantined, route.broken.Error()
		return d
	}
	d.State, d.Deliveries = event.Done, route.deliveries(m, s.withDefaults())
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

func unrouted(m *Message) string {
	if m.Account == 0 {
		return "no relay for " + m.To
	}
	return fmt.Sprintf("no relay of account %d for %s", m.Account, m.To)
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
