package restv2

import (
	"context"
	"io"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/sip"
)

// Relays is inbound.Desk as the surface uses it.
type Relays interface {
	List(ctx context.Context, acct account.ID, k inbound.Kind, pattern string) ([]inbound.Relay, error)
	Get(ctx context.Context, acct account.ID, k inbound.Kind, id string) (inbound.Relay, error)
	Change(ctx context.Context, acct account.ID, k inbound.Kind, id string, c inbound.Change) (inbound.Relay, error)
	ReadInbox(ctx context.Context, acct account.ID, id string, offset, limit int) ([]inbound.InboxMessage, int, error)
	Acknowledge(ctx context.Context, acct account.ID, id, message string) error
}

// Lookups is lookup.Service as the surface uses it.
type Lookups interface {
	Lookup(ctx context.Context, acct account.ID, number relay.MSISDN) (lookup.Result, error)
}

// Credit tells what an account may spend.
type Credit interface {
	Balance(ctx context.Context, acct account.ID) (int64, error)
}

// Records is sip.Service as the surface uses it.
type Records interface {
	Request(ctx context.Context, acct account.ID, a sip.Request) (sip.Order, error)
	Archive(ctx context.Context, acct account.ID, handle string) (ready bool, err error)
}

// Archives opens archives that were made; relay.KindNotFound if there is none.
type Archives interface {
	Open(ctx context.Context, handle string) (file io.ReadCloser, size int64, err error)
}

// Trunks tells where an account's calls come from.
type Trunks interface {
	Trunks(ctx context.Context, acct account.ID) ([]sip.Trunk, error)
}

// Deps are the use cases behind the surface.
type Deps struct {
	Messages Messages
	Relays   Relays
	Lookups  Lookups
	Credit   Credit
	// Records, Archives and Trunks are those of SIP.
	Records  Records
	Archives Archives
	Trunks   Trunks
}

// Surface is the REST operations of messaging.
type Surface struct {
	messages Messages

	relays  Relays
	lookups Lookups
	credit  Credit

	records  Records
	archives Archives
	trunks   Trunks
}

// New returns the surface over the use cases.
func New(d Deps) *Surface {
	return &Surface{
		messages: d.Messages, relays: d.Relays, lookups: d.Lookups, credit: d.Credit, records: d.Records, archives: d.Archives, trunks: d.Trunks,
	}
}

// Mount adds the operations to the app, in the specification's order.
func (s *Surface) Mount(app fiber.Router, auth *httpd.Auth) {
	r := app.Group("/v2", auth.Require(account.Messaging, style()), answers().Handler)

	r.Get("/sms/credit", s.getCredit)
	r.Delete("/sms/:message", s.deleteMessage)
	r.Get("/sms/pending", s.listPending)
	r.Post("/sms/preview", s.previewMessage)
	r.Post("/sms/send", s.sendMessage)
	r.Post("/sms/send-vcard", s.sendCard)
	r.Get("/network-lookup/:number", s.lookUp)
	r.Get("/sms-relay/geo/actions", listActions(inbound.Geographic))
	r.Get("/sms-relay/geo", s.listRelays(inbound.Geographic))
	r.Get("/sms-relay/geo/:relay", s.getRelay(inbound.Geographic))
	r.Patch("/sms-relay/geo/:relay", s.patchRelay(inbound.Geographic))
	r.Get("/sms-relay/vmn/actions", listActions(inbound.VirtualNumber))
	r.Get("/sms-relay/vmn", s.listRelays(inbound.VirtualNumber))
	r.Get("/sms-relay/vmn/:relay", s.getRelay(inbound.VirtualNumber))
	r.Patch("/sms-relay/vmn/:relay", s.patchRelay(inbound.VirtualNumber))

	r.Post("/sip/cdr/request", s.requestCDR)
	r.Get("/sip/cdr/:handle/download", s.downloadCDR)
	r.Get("/sip/trunk/source-ips", s.listSourceIPs)

	r.Get("/sms-relay/vmn/:relay/inbox", s.readInbox)
	r.Delete("/sms-relay/vmn/:relay/inbox/:message", s.acknowledge)
}

// style is how the surface takes credentials and refuses them.
func style() httpd.Style {
	return httpd.Style{
		Credential:      httpd.XAuthToken,
		Unauthenticated: httpd.Refuse(fiber.StatusUnauthorized, "Unauthenticated."),
		Forbidden:       httpd.Refuse(fiber.StatusForbidden, "This action is unauthorised."),
	}
}
