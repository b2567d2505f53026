package ledgerapi

import (
	"bufio"
	"context"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

func (s *Surface) list(c *fiber.Ctx) error {
	if err := listInput(c).Err(); err != nil {
		return err
	}
	found, err := s.ledgers.Ledgers(c.UserContext(), httpd.AccountOf(c))
	if err != nil {
		return err
	}
	all := make([]ledgerJSON, len(found))
	for i, l := range found {
		all[i] = ledgerJSON{Name: l.Name, Description: l.Description, Hash: l.Hash}
	}
	return c.JSON(all)
}

func (s *Surface) authority(c *fiber.Ctx) error {
	pem, err := s.ledgers.Authority(c.UserContext(), httpd.AccountOf(c), params.Path(c, "ledgerId"))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "application/x-pem-file")
	return c.SendString(pem)
}

// exportTime bounds the export of a whole ledger.
const exportTime = 10 * time.Minute

// export streams a whole ledger. One that breaks off lacks entries that its head
// has, which a verification says.
func (s *Surface) export(c *fiber.Ctx) error {
	acct, name := httpd.AccountOf(c), params.Path(c, "ledgerId")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.UserContext()), exportTime)
	write, err := s.ledgers.Export(ctx, acct, name)
	if err != nil {
		cancel()
		return err
	}
	c.Set(fiber.HeaderContentType, "text/plain; charset=utf-8")
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="ledger.txt"`)
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer cancel()
		if err := write(w); err != nil {
			s.opts.Logger.WarnContext(ctx, "export interrupted", "account", acct, "error", err)
		}
	})
	return nil
}

// nowhere reports a link that leads nowhere.
func nowhere(err error) bool { return relay.KindOf(err) == relay.KindNotFound }
