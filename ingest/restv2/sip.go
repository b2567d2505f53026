package restv2

import (
	"io"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sip"
)

// requestCDR has an archive of call records made.
func (s *Surface) requestCDR(c *fiber.Ctx) error {
	in, err := inputOf(c)
	if err != nil {
		return err
	}
	p := relay.Problems{}
	ask := sip.Request{
		From: in.date(p, "from_date", 0), To: in.date(p, "to_date", 24*time.Hour-time.Second),
		Email: strings.TrimSpace(in.text(p, "email")), Format: in.text(p, "format"), Single: in.flag(p, "single_file"),
	}
	if err := p.Err(); err != nil {
		return err
	}
	o, err := s.records.Request(c.UserContext(), httpd.AccountOf(c), ask)
	if err != nil {
		return err
	}
	return data(c, fiber.Map{"handle": o.Handle, "expires_at": o.ExpiresAt().Format(time.DateTime)})
}

// date reads a moment that must be given, in UTC. A day alone is its midnight and
// what is added to that.
func (in input) date(p relay.Problems, name string, ofDay time.Duration) time.Time {
	text := strings.TrimSpace(in.text(p, name))
	if text == "" {
		if len(p[name]) == 0 {
			p.Add(name, "The "+name+" field is required.")
		}
		return time.Time{}
	}
	t, ok := iso8601.Parse(text)
	if _, day := iso8601.ParseDay(text); day {
		t = t.Add(ofDay)
	}
	if ok && t.Year() >= 1970 && t.Year() < 2200 {
		return t
	}
	p.Add(name, "The "+name+" must be a date like 2026-01-31 12:00:00.")
	return time.Time{}
}

// flag reads a truth; a query has it as a word.
func (in input) flag(p relay.Problems, name string) bool {
	switch v := in[name].(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		if v == "true" || v == "1" || v == "false" || v == "0" || v == "" {
			return v == "true" || v == "1"
		}
	}
	p.Add(name, "The "+name+" must be true or false.")
	return false
}

// downloadCDR streams an archive. A handle that works no more has an empty 404.
func (s *Surface) downloadCDR(c *fiber.Ctx) error {
	handle := param(c, "handle")
	ready, err := s.records.Archive(c.UserContext(), httpd.AccountOf(c), handle)
	if err == nil && !ready {
		return httpd.Message(c, fiber.StatusAccepted, "The records are being prepared. Please try again later.")
	}
	var file io.ReadCloser
	var size int64
	if err == nil {
		file, size, err = s.archives.Open(c.UserContext(), handle)
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

// listSourceIPs lists where the account's calls come from.
func (s *Surface) listSourceIPs(c *fiber.Ctx) error {
	trunks, err := s.trunks.Trunks(c.UserContext(), httpd.AccountOf(c))
	if err != nil {
		return err
	}
	return data(c, append([]sip.Trunk{}, trunks...))
}
