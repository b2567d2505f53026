package restv2

import (
	"context"
	"io"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/sip"
)

// Deps are the dependencies of the surface; all are required.
type Deps struct {
	Messages *message.Service
	Relays   *inbound.RelayService
	// TryRelay passes a message to a relay; see inbound.Service.
	TryRelay func(ctx context.Context, r inbound.Relay, t inbound.Trial) (inbound.Explanation, error)
	// Lookup returns the network of a number; see lookup.Service.
	Lookup func(ctx context.Context, acct relay.AccountID, number relay.MSISDN) (lookup.Result, error)
	// Balance returns the credits of an account.
	Balance func(ctx context.Context, acct relay.AccountID) (int64, error)
	// RequestCDR orders an archive of call records, and CDRReady reports whether the archive
	// is complete; see sip.Service.
	RequestCDR func(ctx context.Context, acct relay.AccountID, r sip.Request) (sip.Order, error)
	CDRReady   func(ctx context.Context, acct relay.AccountID, handle string) (bool, error)
	// OpenCDR opens a complete archive; relay.KindNotFound if it does not exist.
	OpenCDR func(ctx context.Context, handle string) (file io.ReadCloser, size int64, err error)
	// Trunks lists the SIP trunks of an account with their source addresses.
	Trunks func(ctx context.Context, acct relay.AccountID) ([]sip.Trunk, error)
}

// Surface implements the REST operations of messaging.
type Surface struct{ deps Deps }

// New returns the surface.
func New(d Deps) *Surface { return &Surface{d} }

// Mount adds the operations to the app, in the order of the specification. The operations of both
// kinds of relays are together.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	r := app.Group("/v2", auth.Require(account.Messaging, httpd.APIStyle(httpd.XAuthTokenOrBearer)), httpd.ErrorsOf(httpd.Errors{
		relay.KindInvalid:  sendProblems,
		relay.KindNoCredit: httpd.Fixed(fiber.StatusPaymentRequired, "Insufficient credit."),
		relay.KindConflict: httpd.Fixed(fiber.StatusConflict, "The record was changed by another request."),
	}).Handler)

	r.Get("/sms/credit", s.getCredit)
	r.Delete("/sms/:message", params.WithoutQuery(s.deleteMessage))
	r.Get("/sms/pending", httpd.Search, s.listPending)
	r.Post("/sms/preview", s.previewMessage)
	r.Post("/sms/send", s.sendMessage)
	r.Post("/sms/send-vcard", s.sendCard)
	r.Get("/network-lookup/:number", s.lookUp)
	for path, relays := range map[string]relayHandlers{"/sms-relay/geo": {s, inbound.Geographic}, "/sms-relay/vmn": {s, inbound.VirtualNumber}} {
		r.Get(path+"/actions", relays.actions)
		r.Get(path, relays.list)
		r.Get(path+"/:relay", relays.get)
		r.Patch(path+"/:relay", relays.patch)
		r.Post(path, relays.create)
		r.Delete(path+"/:relay", params.WithoutQuery(relays.delete))
		r.Post(path+"/:relay/try", relays.try)
	}

	r.Post("/sip/cdr/request", s.requestCDR)
	r.Get("/sip/cdr/:handle/download", httpd.Export, s.downloadCDR)
	r.Get("/sip/trunk/source-ips", s.listSourceIPs)

	r.Get("/sms-relay/vmn/:relay/inbox", httpd.Search, s.readInbox)
	r.Delete("/sms-relay/vmn/:relay/inbox/:message", params.WithoutQuery(s.acknowledge))
}
