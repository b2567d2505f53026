package restv2

import (
	"io"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sip"
)

func (s *Surface) requestCDR(c *fiber.Ctx) error {
	i, err := inputOf(c)
	if err != nil {
		return err
	}
	request := sip.Request{
		From: i.date("from_date", 0), To: i.date("to_date", 24*time.Hour-time.Second),
		Email: strings.TrimSpace(i.Text("email")), Format: i.Text("format"), Single: i.flag("single_file"),
	}
	if err := i.Err(); err != nil {
		return err
	}
	o, err := s.deps.RequestCDR(c.UserContext(), httpd.AccountOf(c), request)
	if err != nil {
		return err
	}
	return answerData(c, fiber.Map{"handle": o.Handle, "expires_at": o.ExpiresAt().Format(time.DateTime)})
}

// downloadCDR streams an archive. It answers 404 without a body for an unknown or expired handle.
func (s *Surface) downloadCDR(c *fiber.Ctx) error {
	handle := params.Path(c, "handle")
	ready, err := s.deps.CDRReady(c.UserContext(), httpd.AccountOf(c), handle)
	if err == nil && !ready {
		return httpd.Message(c, fiber.StatusAccepted, "The records are being prepared. Please try again later.")
	}
	var file io.ReadCloser
	var size int64
	if err == nil {
		file, size, err = s.deps.OpenCDR(c.UserContext(), handle)
	}
	if relay.KindOf(err) == relay.KindNotFound {
		c.Status(fiber.StatusNotFound)
		return nil
	}
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "application/zip")
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="cdr-`+handle+`.zip"`)
	httpd.Stream(c, file, size)
	return nil
}

func (s *Surface) listSourceIPs(c *fiber.Ctx) error {
	if err := listInput(c).Err(); err != nil {
		return err
	}
	trunks, err := s.deps.Trunks(c.UserContext(), httpd.AccountOf(c))
	if err != nil {
		return err
	}
	return answerData(c, append([]sip.Trunk{}, trunks...))
}
