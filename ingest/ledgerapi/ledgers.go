package ledgerapi

import (
	"bufio"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
)

func (s *Surface) list(c *fiber.Ctx) error {
	if err := listInput(c).Err(); err != nil {
		return err
	}
	found, err := s.ledgers.Ledgers(c.UserContext(), httpd.AccountOf(c))
	if err != nil {
		return err
	}
	views := make([]ledgerJSON, len(found))
	for i, l := range found {
		views[i] = ledgerJSON{Name: l.Name, Description: l.Description, Hash: l.Hash}
	}
	return c.JSON(views)
}

func (s *Surface) authority(c *fiber.Ctx) error {
	pem, err := s.ledgers.Authority(c.UserContext(), httpd.AccountOf(c), params.Path(c, "ledgerId"))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "application/x-pem-file")
	return c.SendString(pem)
}

// export streams a whole ledger. One that breaks off lacks entries that its head
// has, which a verification says.
func (s *Surface) export(c *fiber.Ctx) error {
	ctx, acct := c.UserContext(), httpd.AccountOf(c)
	write, err := s.ledgers.Export(ctx, acct, params.Path(c, "ledgerId"))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "text/plain; charset=utf-8")
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="ledger.txt"`)
	httpd.Write(c, func(w *bufio.Writer) error {
		err := write(w)
		if err != nil {
			s.opts.Logger.WarnContext(ctx, "export interrupted", "account", acct, "error", err)
		}
		return err
	})
	return nil
}
