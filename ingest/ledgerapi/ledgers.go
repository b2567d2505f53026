package ledgerapi

import (
	"bufio"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/ledger"
)

func (s *Surface) list(c *fiber.Ctx) error {
	if err := listInput(c).Err(); err != nil {
		return err
	}
	found, err := s.ledgers.Ledgers(c.UserContext(), httpd.AccountOf(c))
	if err != nil {
		return err
	}
	return c.JSON(httpd.Each(found, func(l ledger.Ledger) ledgerJSON {
		return ledgerJSON{Name: l.Name, Description: l.Description, Hash: l.Hash}
	}))
}

func (s *Surface) authority(c *fiber.Ctx) error {
	pem, err := s.ledgers.Authority(c.UserContext(), httpd.AccountOf(c), params.Path(c, "ledgerId"))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "application/x-pem-file")
	return c.SendString(pem)
}

// export streams a whole ledger. A verification detects an export that broke off, because the
// head covers the missing entries.
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

func (s *Surface) generate(c *fiber.Ctx) error {
	i, err := read(c)
	if err != nil {
		return err
	}
	n := ledger.NewToken{
		Metadata: i.json("metadata"), PrivateMetadata: i.json("private_metadata"), CSR: i.Text("csr"),
		RedirectURL: i.Text("redirect_url"), RedirectMeta: i.json("redirect_meta"),
	}
	if err := i.Err(); err != nil {
		return err
	}
	id, err := s.ledgers.Generate(c.UserContext(), httpd.AccountOf(c), params.Path(c, "ledgerId"), n)
	if err != nil {
		return err
	}
	return c.JSON(id)
}

func (s *Surface) annotate(c *fiber.Ctx) error {
	i, err := read(c)
	if err != nil {
		return err
	}
	token, metadata := i.Text("token"), i.json("metadata")
	if err := i.Err(); err != nil {
		return err
	}
	id, err := s.ledgers.Annotate(c.UserContext(), httpd.AccountOf(c), token, metadata)
	return answerJob(c, id, err)
}

func (s *Surface) claim(c *fiber.Ctx) error {
	i, err := read(c)
	if err != nil {
		return err
	}
	token, tokens, private := i.Text("token"), i.texts("tokens"), i.privateToken()
	if err := i.Err(); err != nil {
		return err
	}
	id, err := s.ledgers.Claim(c.UserContext(), httpd.AccountOf(c), token, tokens, private)
	return answerJob(c, id, err)
}

func answerJob(c *fiber.Ctx, id string, err error) error {
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"jobid": id})
}

func (s *Surface) validate(c *fiber.Ctx) error {
	i, err := read(c)
	if err != nil {
		return err
	}
	v := ledger.Validation{
		Token: i.Text("token"), Tokens: i.texts("tokens"), Private: i.privateToken(), PrivateMetadata: i.json("private_metadata"),
	}
	if err := i.Err(); err != nil {
		return err
	}
	found, err := s.ledgers.Validate(c.UserContext(), httpd.AccountOf(c), v)
	if err != nil {
		return err
	}
	now := s.ledgers.Now()
	if len(v.Tokens) == 0 {
		return answerData(c, validityOf(found[0], now))
	}
	return answerData(c, httpd.Each(found, func(v ledger.Validity) listedValidity { return listedValidity{v.Text, validityOf(v, now)} }))
}

func (s *Surface) history(c *fiber.Ctx) error {
	i := listInput(c)
	credential := ledger.Credential{Token: params.Path(c, "token"), Private: i.privateToken()}
	if err := i.Err(); err != nil {
		return err
	}
	h, err := s.ledgers.History(c.UserContext(), httpd.AccountOf(c), credential)
	if err != nil {
		return err
	}
	return c.JSON(h)
}

func (s *Surface) job(c *fiber.Ctx) error {
	st, err := s.ledgers.Job(c.UserContext(), httpd.AccountOf(c), params.Path(c, "jobId"))
	if err != nil {
		return err
	}
	switch {
	case st.Claims != nil:
		return answerData(c, fiber.Map{"status": st.State, "claims": st.Claims})
	case st.Token != nil:
		if !httpd.SeesSecrets(c) {
			st.Token.Private = ""
		}
		return answerData(c, s.detailsOf(*st.Token, st.State))
	}
	return answerData(c, statusJSON{st.State, httpd.OrNull(st.Error)})
}

// follow redirects a browser to the redirect URL of a token. For every problem of the token it
// answers 404.
func (s *Surface) follow(c *fiber.Ctx) error {
	if err := httpd.Admit(c, httpd.API, 0); err != nil {
		return err
	}
	i := newInput(c)
	redirectURL, err := s.ledgers.RedirectTarget(c.UserContext(), ledger.Credential{Token: params.Path(c, "token"), Private: i.privateToken()})
	if relay.KindOf(err) == relay.KindNotFound {
		return httpd.NotFound(c)
	}
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer") // the link has the token, which is a secret
	return c.Redirect(redirectURL, fiber.StatusFound)
}
