package admin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// decoderJSON is a decoder of a list.
type decoderJSON struct {
	ID          string         `json:"id"`
	Account     account.ID     `json:"account"`
	AccountName string         `json:"account_name"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Type        iot.DeviceType `json:"type"`
	Codec       string         `json:"codec"`
	Keys        []string       `json:"keys"` // that it maps to sensors
}

// listDecoders lists the decoders of one or all accounts, without their sources.
func (s *Surface) listDecoders(c *fiber.Ctx, sel *selection) error {
	ctx := c.UserContext()
	acct, limit, cursor := sel.account(), sel.limit(), sel.cursor()
	if err := sel.Err(); err != nil {
		return err
	}
	names, err := s.accountNames(ctx)
	if err != nil {
		return err
	}
	found, next, err := s.IoT.FindDecoders(ctx, acct, cursor, limit)
	if err != nil {
		return err
	}
	out := make([]decoderJSON, len(found))
	for i, d := range found {
		out[i] = decoderJSON{ID: d.ID, Account: d.Account, AccountName: names[d.Account], Name: d.Name, Description: d.Description, Type: d.Type, Codec: d.Codec, Keys: make([]string, len(d.Sensors))}
		for n, m := range d.Sensors {
			out[i].Keys[n] = m.Key
		}
	}
	return c.JSON(fiber.Map{"data": out, "meta": fiber.Map{"next": next}})
}

// changedDecoder is what an operator may change in a decoder; nil fields stay.
type changedDecoder struct {
	Account       AccountRef `json:"account"`
	Name          *string    `json:"name"`
	Description   *string    `json:"description"`
	Codec         *string    `json:"codec"`
	Source        *string    `json:"source"`
	UseRawPayload *bool      `json:"use_raw_payload"`
}

// patchDecoder changes a decoder, which the next frame follows.
func (s *Surface) patchDecoder(c *fiber.Ctx) error {
	ctx, id := c.UserContext(), params.Path(c, "decoder_id")
	var in changedDecoder
	if err := readJSON(c, maxBody, &in); err != nil {
		return err
	}
	acct, err := s.accountID(c, in.Account)
	if err != nil {
		return err
	}
	acct, was, err := s.findDecoder(ctx, acct, id)
	if err != nil {
		return err
	}
	types, err := s.Types.SensorTypes(ctx)
	if err != nil {
		return err
	}
	changed, err := s.IoT.ChangeDecoder(ctx, acct, id, iot.DecoderChange{
		Name: in.Name, Description: in.Description, Codec: in.Codec, Source: in.Source, UseRawPayload: in.UseRawPayload,
	})
	if err != nil {
		return err
	}
	is := viewOf(acct, changed, types)
	n := noteOf(c)
	n.account, n.before, n.after = acct, viewOf(acct, was, types), is
	return c.JSON(is)
}
