package admin

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
)

// hidesTexts reports whether the answer to a request must not have texts of messages.
func hidesTexts(c *fiber.Ctx) bool { return !principalOf(c).Role.SeesTexts() }

// hasTexts reports whether events of a kind have texts of messages. Receipts quote the beginning of
// a message.
func hasTexts(k event.Kind) bool { return k == event.SMS || k == event.Receipt }

// hideText removes the body of a message and the notes if hidden is set. Notes quote names of
// parameters, which may be parts of a text that was not escaped ("fish&chips").
func (e *eventJSON) hideText(hidden bool) {
	if hidden && hasTexts(e.Kind) {
		e.Raw, e.Notes, e.Hidden = "", []string{}, true
	}
}

// faultText returns the text of an error of a back end, or a fixed text for principals who may not
// see hosts and addresses of the gateway's network.
func faultText(p principal, err error) string {
	if p.Role.SeesFaults() {
		return err.Error()
	}
	return "a back end is down"
}

// hide removes the errors of attempts and the answers of the operator's own servers for callers
// who may not see faults. For callers who may not read texts of messages, it removes the paths
// of URLs, which may contain a text, and the answers of endpoints, which may repeat it.
func (d *deliveryJSON) hide(c *fiber.Ctx) {
	if !principalOf(c).Role.SeesFaults() {
		ownServer := strings.HasPrefix(d.Target, "sim:") || !strings.Contains(d.Target, ":") // a SIM or a mail address
		for i := range d.Attempts {
			d.Attempts[i].Error = d.Attempts[i].Reason
			if ownServer {
				d.Attempts[i].Response = ""
			}
		}
	}
	if !hidesTexts(c) {
		return
	}
	d.Hidden = true
	d.Target = outbox.MaskPath(d.Target)
	for i := range d.Attempts {
		d.Attempts[i].Response = ""
	}
}

// hide removes the parts of a trace that the caller may not see.
func (t *tracedJSON) hide(c *fiber.Ctx) {
	t.eventJSON.hideText(hidesTexts(c))
	if hidesTexts(c) && hasTexts(t.Kind) {
		t.Trace = slices.DeleteFunc(t.Trace, func(s stepJSON) bool { return s.Step == "note" })
	}
	for i := range t.Deliveries {
		d := &t.Deliveries[i]
		target := d.Target
		d.hide(c)
		for n := range t.Trace {
			t.Trace[n].Text = strings.ReplaceAll(t.Trace[n].Text, target, d.Target)
		}
	}
}

// hideText removes the texts of a message if the caller may not read them.
func (m *messageJSON) hideText(c *fiber.Ctx) {
	if !hidesTexts(c) {
		return
	}
	m.Hidden = true
	for i := range m.Parts {
		m.Parts[i].Data = ""
	}
}

// refuseTextSearch refuses filters that search texts of messages if the caller may not read the
// texts, because the results of a search reveal them.
func (s *selection) refuseTextSearch(filters ...string) {
	if !hidesTexts(s.c) {
		return
	}
	for _, name := range filters {
		if s.text(name) != "" {
			s.err = relay.Errorf(relay.KindForbidden, "The role %s may not search the texts of messages: the filter %s is not allowed here.", principalOf(s.c).Role, name)
		}
	}
}
