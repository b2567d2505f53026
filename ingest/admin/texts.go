package admin

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
)

// hidesTexts reports whether a request must not see the texts of messages.
func hidesTexts(c *fiber.Ctx) bool { return !principalOf(c).Role.SeesTexts() }

// hasTexts reports whether events of a kind hold texts of messages. Receipts quote the
// beginning of the message.
func hasTexts(k event.Kind) bool { return k == event.SMS || k == event.Receipt }

// hideText takes the body of a message and the notes about it away, if they are hidden from
// the request. A note quotes values and the names of parameters: of a text that was not
// escaped ("fish&chips") a part is such a name.
func (e *eventJSON) hideText(hidden bool) {
	if hidden && hasTexts(e.Kind) {
		e.Raw, e.Notes, e.Hidden = "", []string{}, true
	}
}

// faultText returns the text of an error of a back end. Those who may not see hosts and
// addresses of the gateway's network get a fixed text.
func faultText(p principal, err error) string {
	if p.Role.SeesFaults() {
		return err.Error()
	}
	return "a back end is down"
}

// hide takes away what the request must not see: the errors of attempts and the answers of
// the operator's own servers, or what may hold the text of a message. That is the path of
// a URL and the answers of endpoints, which may repeat it.
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

// hide takes away of a trace what the request must not see.
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

// hideText takes the text of a message away, if the request must not see it.
func (m *messageJSON) hideText(c *fiber.Ctx) {
	if !hidesTexts(c) {
		return
	}
	m.Hidden = true
	for i := range m.Parts {
		m.Parts[i].Data = ""
	}
}

// refuseTextSearch refuses the filters that search the texts of messages to who must not see
// these: the results of a search reveal its text.
func (s *selection) refuseTextSearch(filters ...string) {
	if !hidesTexts(s.c) {
		return
	}
	for _, name := range filters {
		if s.text(name) != "" {
			s.failed = relay.Errorf(relay.KindForbidden, "The role %s may not search the texts of messages: the filter %s is not allowed here.", principalOf(s.c).Role, name)
		}
	}
}
