package admin

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// hidesTexts reports whether a request must not see the texts of messages.
func hidesTexts(c *fiber.Ctx) bool { return !principalOf(c).role.SeesTexts() }

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

// hideText takes away what may hold the text of a message: the path of a URL and the
// answers of endpoints, which may repeat it.
func (d *deliveryJSON) hideText(c *fiber.Ctx) {
	if !hidesTexts(c) {
		return
	}
	d.Hidden = true
	d.Target = hostOf(d.Target)
	for i := range d.Attempts {
		d.Attempts[i].Response = ""
	}
}

// hostOf returns a URL without its path; anything else as it is.
func hostOf(target string) string {
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	return scheme + "://" + host + "/…"
}

// hideText takes the texts of a trace away, if the request must not see them.
func (t *tracedJSON) hideText(c *fiber.Ctx) {
	if !hidesTexts(c) {
		return
	}
	t.eventJSON.hideText(true)
	if hasTexts(t.Kind) {
		t.Trace = slices.DeleteFunc(t.Trace, func(s stepJSON) bool { return s.Step == "note" })
	}
	for i := range t.Deliveries {
		d := &t.Deliveries[i]
		was := d.Target
		d.hideText(c)
		for n := range t.Trace {
			t.Trace[n].Text = strings.ReplaceAll(t.Trace[n].Text, was, d.Target)
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

// refuseTextSearch refuses the filters that search the texts of messages to who must
// not see these: what a search finds tells what it looked for.
func (s *selection) refuseTextSearch(filters ...string) {
	if !hidesTexts(s.c) {
		return
	}
	for _, name := range filters {
		if s.text(name) != "" {
			s.failed = relay.Errorf(relay.KindForbidden, "The role %s may not search the texts of messages: the filter %s is not allowed here.", principalOf(s.c).role, name)
		}
	}
}
