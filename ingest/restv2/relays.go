package restv2

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/outbox"
)

// relayHandlers has the handlers of one kind of relay.
type relayHandlers struct {
	*Surface
	kind inbound.Kind
}

func (h relayHandlers) actions(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	return sendList(c, page, inbound.Actions(h.kind))
}

func (h relayHandlers) list(c *fiber.Ctx) error {
	i := listInput(c)
	number, page := i.Text(inbound.NumberField(h.kind)), i.Page(perPage)
	if err := i.Err(); err != nil {
		return err
	}
	found, err := h.deps.Relays.List(c.UserContext(), httpd.AccountOf(c), h.kind, number)
	if err != nil {
		return err
	}
	return sendList(c, page, httpd.Each(found, func(r inbound.Relay) relayJSON { return relayOf(c, r) }))
}

func (h relayHandlers) get(c *fiber.Ctx) error {
	r, err := h.deps.Relays.Get(c.UserContext(), httpd.AccountOf(c), h.kind, params.Path(c, "relay"))
	if err != nil {
		return err
	}
	return answerData(c, relayOf(c, r))
}

func (h relayHandlers) patch(c *fiber.Ctx) error {
	// filter is an extension; null and "" remove it.
	i, err := inputOf(c)
	if err != nil {
		return err
	}
	change := inbound.Change{Action: inbound.Action{Name: i.Required("action"), Parameters: i.Texts("parameters")}}
	if _, present := i.Get("filter"); present {
		change.Filter = new(i.Text("filter"))
	}
	if err := i.Err(); err != nil {
		return err
	}
	oldRelay, err := h.deps.Relays.Get(c.UserContext(), httpd.AccountOf(c), h.kind, params.Path(c, "relay"))
	if err != nil {
		return err
	}
	r, err := h.deps.Relays.Change(c.UserContext(), httpd.AccountOf(c), h.kind, oldRelay.ID, change)
	if err != nil {
		return err
	}
	n := httpd.NoteOf(c)
	n.Before, n.After = relayOf(c, oldRelay), relayOf(c, r)
	return answerData(c, relayOf(c, r))
}

func (h relayHandlers) create(c *fiber.Ctx) error {
	i, err := inputOf(c)
	if err != nil {
		return err
	}
	r := inbound.Relay{
		Account: httpd.AccountOf(c), Kind: h.kind, Number: i.Required(inbound.NumberField(h.kind)), Filter: i.Text("filter"),
		Action: inbound.Action{Name: i.Required("action"), Parameters: i.Texts("parameters")},
	}
	if h.kind == inbound.Geographic {
		r.ICCID = i.Text("iccid")
	}
	if err := i.Err(); err != nil {
		return err
	}
	if r, err = h.deps.Relays.Create(c.UserContext(), r); err != nil {
		return err
	}
	httpd.NoteOf(c).Target = r.ID
	return answerData(c.Status(fiber.StatusCreated), relayOf(c, r))
}

func (h relayHandlers) delete(c *fiber.Ctx) error {
	acct, id := httpd.AccountOf(c), params.Path(c, "relay")
	r, err := h.deps.Relays.Get(c.UserContext(), acct, h.kind, id)
	if err != nil {
		return err
	}
	httpd.NoteOf(c).Before = relayOf(c, r)
	if err := h.deps.Relays.Delete(c.UserContext(), acct, h.kind, id); err != nil {
		return err
	}
	return c.SendStatus(fiber.StatusNoContent)
}

// try answers with the requests of a relay for a message. It sends them if send is set.
func (h relayHandlers) try(c *fiber.Ctx) error {
	i, err := inputOf(c)
	if err != nil {
		return err
	}
	t := inbound.Trial{From: i.Required("from"), Text: i.Required("text"), Send: i.flag("send")}
	n := httpd.NoteOf(c)
	n.Request, n.After = map[string]any{"from": t.From}, map[string]any{"sent": t.Send} // without the text
	if err := i.Err(); err != nil {
		return err
	}
	r, err := h.deps.Relays.Get(c.UserContext(), httpd.AccountOf(c), h.kind, params.Path(c, "relay"))
	if err != nil {
		return err
	}
	e, err := h.deps.TryRelay(c.UserContext(), r, t)
	if err != nil {
		return err
	}
	return answerData(c, trialJSON{string(e.State), e.Reason, e.Outcome, t.Send, append([]outbox.Outgoing{}, e.Outgoing...)})
}

func (s *Surface) readInbox(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	inboxMessages, total, err := s.deps.Relays.ReadInbox(c.UserContext(), httpd.AccountOf(c), params.Path(c, "relay"), page.Offset(), page.PerPage)
	if err != nil {
		return err
	}
	return sendPage(c, page, httpd.Each(inboxMessages, inboxMessageOf), total)
}

func (s *Surface) acknowledge(c *fiber.Ctx) error {
	err := s.deps.Relays.Acknowledge(c.UserContext(), httpd.AccountOf(c), params.Path(c, "relay"), params.Path(c, "message"))
	if err != nil {
		return err
	}
	return c.SendStatus(fiber.StatusNoContent)
}
