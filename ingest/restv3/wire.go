package restv3

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/sim"
)

type envelope struct {
	Success bool      `json:"success"`
	Message string    `json:"message"`
	Data    any       `json:"data,omitempty"`
	Meta    *metaJSON `json:"meta,omitempty"`
}

// sendResult answers a successful operation. data may be nil.
func sendResult(c *fiber.Ctx, status int, message string, data any) error {
	return c.Status(status).JSON(envelope{Success: true, Message: message, Data: data})
}

// sendRecord returns a handler that answers with the rendered record of handle.
func sendRecord[A, B any](status int, message string, handle func(*fiber.Ctx) (A, error), render func(A) B) fiber.Handler {
	return func(c *fiber.Ctx) error {
		v, err := handle(c)
		if err != nil {
			return err
		}
		return sendResult(c, status, message, render(v))
	}
}

type simJSON struct {
	ICCID          string `json:"iccid"`
	IMSI           string `json:"imsi,omitempty"`
	MSISDN         string `json:"msisdn"`
	Service4G      bool   `json:"service_4g"`
	Service5G      bool   `json:"service_5g"`
	PIN            string `json:"pin"`
	PIN2           string `json:"pin2"`
	PUK            string `json:"puk"`
	PUK2           string `json:"puk2"`
	CurrentState   string `json:"current_state"`
	RequestedState string `json:"requested_state"`
	SubscriberID   string `json:"subscriber_id,omitempty"`
}

func simOf(s sim.SIM) simJSON {
	return simJSON{
		ICCID: string(s.ICCID), IMSI: s.IMSI, MSISDN: s.MSISDN, Service4G: s.Service4G, Service5G: s.Service5G,
		PIN: s.Codes.PIN, PIN2: s.Codes.PIN2, PUK: s.Codes.PUK, PUK2: s.Codes.PUK2,
		CurrentState: string(s.State), RequestedState: string(s.RequestedState), SubscriberID: s.Subscriber,
	}
}

type simWithLimitJSON struct {
	simJSON
	MonthlyLimit int64  `json:"monthly_usage_limit"`
	Warning      *int64 `json:"monthly_usage_limit_warning"`
	CapLimitType string `json:"cap_limit_type"`
}

func simWithLimitOf(s sim.SIM) simWithLimitJSON {
	return simWithLimitJSON{simOf(s), s.Limit.Monthly, httpd.OrNull(s.Limit.Warning), string(s.Limit.Action)}
}

type recipientJSON struct {
	ID     string  `json:"id"`
	Email  string  `json:"email"`
	Number *string `json:"number"`
}

func recipientOf(r sim.Recipient) recipientJSON {
	return recipientJSON{r.ID, r.Email, httpd.OrNull(r.Number)}
}

type simWithRecipientsJSON struct {
	simJSON
	Recipients []recipientJSON `json:"recipients"`
}

func simWithRecipientsOf(s sim.SIM) simWithRecipientsJSON {
	return simWithRecipientsJSON{simOf(s), httpd.Each(s.Recipients, recipientOf)}
}

type poolJSON struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	MonthlyLimit *int64          `json:"monthly_usage_limit"`
	Warning      *int64          `json:"monthly_usage_limit_warning"`
	CapLimitType string          `json:"cap_limit_type"`
	Recipients   []recipientJSON `json:"recipients"`
}

func poolOf(p sim.Pool) poolJSON {
	return poolJSON{
		ID: p.ID, Name: p.Name, MonthlyLimit: httpd.OrNull(p.Limit.Monthly), Warning: httpd.OrNull(p.Limit.Warning),
		CapLimitType: string(p.Limit.Action), Recipients: httpd.Each(p.Recipients, recipientOf),
	}
}

// subscriberJSON is a subscriber in an answer. Unlike in sim.Subscriber, empty fields are present.
type subscriberJSON struct {
	ID           string `json:"id"`
	Forename     string `json:"forename"`
	Surname      string `json:"surname"`
	Title        string `json:"title"`
	Address      string `json:"address"`
	Address2     string `json:"address2"`
	Address3     string `json:"address3"`
	City         string `json:"city"`
	PostCode     string `json:"post_code"`
	CompanyName  string `json:"company_name"`
	ContactNo    string `json:"contact_no"`
	ContactEmail string `json:"contact_email"`
}

func subscriberOf(s sim.Subscriber) subscriberJSON {
	return subscriberJSON{
		ID: s.ID, Forename: s.Forename, Surname: s.Surname, Title: s.Title, Address: s.Address, Address2: s.Address2,
		Address3: s.Address3, City: s.City, PostCode: s.PostCode, CompanyName: s.CompanyName, ContactNo: s.ContactNo,
		ContactEmail: s.ContactEmail,
	}
}
