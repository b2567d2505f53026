package restv2

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

// lookUp answers with the network that serves a number, for one credit.
func (s *Surface) lookUp(c *fiber.Ctx) error {
	number, err := relay.ParseMSISDN(params.Path(c, "number"))
	if err != nil {
		return relay.Invalid("number", "The number must be 7 to 15 digits, country code first, without a plus sign or leading zeros.")
	}
	r, err := s.deps.Lookup(c.UserContext(), httpd.AccountOf(c), number)
	if err != nil {
		return err
	}
	return answerData(c, lookupJSON{
		Number: string(r.Number), Status: statusJSON{int(r.Code), r.Code.String()},
		MCC: r.MCC, MNC: r.MNC, Network: networkJSON{r.Network, r.Country, httpd.OrNull(r.Contact)},
		IMSI: httpd.OrNull(r.IMSI), Ported: r.Ported, Roaming: r.Roaming,
	})
}

// lookupJSON is a lookup result. Values that the network does not report are empty, or null
// where the specification allows null.
type lookupJSON struct {
	Number  string      `json:"number"`
	Status  statusJSON  `json:"status"`
	MCC     string      `json:"mcc"`
	MNC     string      `json:"mnc"`
	Network networkJSON `json:"network"`
	IMSI    *string     `json:"imsi"`
	Ported  bool        `json:"ported"`
	Roaming bool        `json:"roaming"`
}

type statusJSON struct {
	Code        int    `json:"code"`
	Description string `json:"description"`
}

type networkJSON struct {
	Name    string  `json:"name"`
	Country string  `json:"country"`
	Contact *string `json:"contact"`
}
