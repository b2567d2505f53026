package admin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// claimJSON is a claimed identifier in the form for the operator.
type claimJSON struct {
	Identifier  string          `json:"identifier"`
	Account     relay.AccountID `json:"account"`
	AccountName string          `json:"account_name"`
	DeviceID    string          `json:"device_id"`
}

// listIdentifiers lists which account holds device EUIs and MAC addresses.
func (s *Surface) listIdentifiers(c *fiber.Ctx, sel *selection) error {
	prefix, cursor, limit := sel.text("q"), sel.cursor(), sel.limit()
	names, err := s.checkedNames(sel)
	if err != nil {
		return err
	}
	claims, nextCursor, err := s.IoT.Claims(c.UserContext(), prefix, cursor, limit)
	if err != nil {
		return err
	}
	return sendPage(c, httpd.Each(claims, func(claim iot.Claim) claimJSON {
		return claimJSON{claim.Identifier, claim.Account, names[claim.Account], claim.DeviceID}
	}), nextCursor)
}

// releaseIdentifier lets another account claim an identifier.
func (s *Surface) releaseIdentifier(c *fiber.Ctx) error {
	claim, err := s.IoT.ReleaseClaim(c.UserContext(), params.Path(c, "identifier"))
	if err != nil {
		return err
	}
	n := httpd.NoteOf(c)
	n.Target, n.Account = claim.Identifier, claim.Account
	n.Before = fiber.Map{"identifier": claim.Identifier, "account": claim.Account, "device_id": claim.DeviceID}
	return c.SendStatus(fiber.StatusNoContent)
}
