package ledgerapi

import (
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/ledger"
)

func answerData(c *fiber.Ctx, v any) error { return c.JSON(fiber.Map{"data": v}) }

type ledgerJSON struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Hash        string `json:"hash"`
}

// validityJSON is the result of a token's validation.
type validityJSON struct {
	Valid           bool            `json:"valid"`
	ExpiresAt       *string         `json:"expires_at"`
	ExpiryPeriod    *int64          `json:"expiry_period"` // the seconds until it expires
	RemainingClaims *int64          `json:"remaining_claims"`
	RedirectURL     *string         `json:"redirect_url"`
	RedirectMeta    json.RawMessage `json:"redirect_meta"`
}

// listedValidity is the result for one of several tokens.
type listedValidity struct {
	Token string `json:"token"`
	validityJSON
}

func validityOf(v ledger.Validity, now time.Time) validityJSON {
	view := validityJSON{Valid: v.Valid}
	if !v.Known {
		return view
	}
	view.ExpiresAt, view.ExpiryPeriod, view.RemainingClaims = formatTimeOrNil(v.Token.ExpiresAt), v.RemainingSeconds(now), v.Token.Remaining()
	view.RedirectURL, view.RedirectMeta = httpd.OrNull(v.Token.RedirectURL), v.Token.RedirectMeta
	return view
}

// statusJSON is the status of a job without details.
type statusJSON struct {
	Status job.State `json:"status"`
	Error  *string   `json:"error"`
}

// detailsJSON has the details of a token whose job is completed.
type detailsJSON struct {
	Status          job.State      `json:"status"`
	Token           string         `json:"token"`
	Ledger          string         `json:"ledger"` // the hash of the ledger
	PrivateToken    *string        `json:"private_token"`
	Certificate     *string        `json:"certificate"`
	ExpiresAt       *string        `json:"expires_at"`
	RemainingClaims *int64         `json:"remaining_claims"`
	Metadata        map[string]any `json:"metadata"`
	Link            *string        `json:"link"` // redirects a browser to the redirect URL
}

func (s *Surface) detailsOf(d ledger.Details, state job.State) detailsJSON {
	view := detailsJSON{
		Status: state, Token: d.Text, Ledger: d.LedgerHash, PrivateToken: httpd.OrNull(d.Private), Certificate: httpd.OrNull(d.Certificate),
		ExpiresAt: formatTimeOrNil(d.ExpiresAt), RemainingClaims: d.Remaining(), Metadata: d.AllMetadata(),
	}
	if d.RedirectURL != "" {
		view.Link = new(s.opts.PublicURL + "/t/" + d.Text)
	}
	return view
}

func formatTimeOrNil(t time.Time) *string { return httpd.TimeOrNull(t, ledger.TimeFormat) }
