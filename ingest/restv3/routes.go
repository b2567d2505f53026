package restv3

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/usage"
)

// Deps are the use cases behind the surface.
type Deps struct {
	SIMs *sim.Service
	// Actions is what takes a job.
	Actions *provisioning.Actions
	Usage   *usage.Service
}

// Surface is the REST operations of SIM management.
type Surface struct{ Deps }

// New returns the surface over the use cases.
func New(d Deps) *Surface { return &Surface{d} }

// Mount adds the operations to the app, in the specification's order, except that
// what an ICCID would be mistaken for stands before it.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	// Errors of a handler become answers before they are recorded.
	r := app.Group("/v3/mno", problems(), auth.Require(account.Cellular, style()), problems())

	sims, subscribers := sim.Columns(), sim.SubscriberColumns()

	r.Get("/", httpd.Search, list("SIMs found.", sims, sims, withoutCodes(s.listSIMs), simOf))
	r.Post("/:iccid/activate", begin("SIM activation requested.", change("iccid", input.activation, s.Actions.Activate)))
	r.Post("/:iccid/service/add", begin("Service addition requested.", s.setService(provisioning.AddService)))
	r.Post("/:iccid/unsuspend", params.WithoutQuery(begin("SIM unsuspension requested.", s.changeState(provisioning.Unsuspend))))
	r.Put("/:iccid/usage-limit", record(fiber.StatusOK, "Usage limit updated.", change("iccid", input.limit, s.SIMs.SetLimit), limitedOf))
	r.Post("/sim/bulk-reassign", begin("Reassignment requested.", s.reassign))
	r.Post("/:iccid/suspend", params.WithoutQuery(begin("SIM suspension requested.", s.changeState(provisioning.Suspend))))
	r.Post("/:iccid/terminate", params.WithoutQuery(begin("SIM termination requested.", s.changeState(provisioning.Terminate))))
	r.Post("/:iccid/service/remove", begin("Service removal requested.", s.setService(provisioning.RemoveService)))

	r.Post("/:iccid/recipient", record(fiber.StatusCreated, "Recipient added.", change("iccid", input.recipient, s.SIMs.AddRecipient), watchedOf))
	r.Delete("/recipient/:simRecipientId", params.WithoutQuery(s.removeRecipient))

	r.Get("/job", httpd.Search, s.listJobs)
	r.Get("/job/:jobId/status", record(fiber.StatusOK, "Job found.", s.jobStatus, statusOf))
	r.Post("/job/cdr", bare, order("CDR report requested.", s.Usage.RequestCDR))
	r.Get("/job/:id/cdr/stream", httpd.Export, s.streamCDR)
	r.Post("/job/usage", bare, order("Usage report requested.", s.Usage.RequestUsage))
	r.Get("/job/:id/usage", httpd.Search, s.usageReport)

	r.Post("/pool", record(fiber.StatusCreated, "Pool created.", s.createPool, poolOf))
	r.Put("/pool/:poolId", record(fiber.StatusOK, "Pool updated.", change("poolId", input.pool, s.SIMs.ChangePool), poolOf))
	r.Post("/pool/:poolId/recipient", record(fiber.StatusCreated, "Recipient added.", change("poolId", input.recipient, s.SIMs.AddPoolRecipient), poolOf))
	r.Delete("/pool/:poolId/recipient/:recipientId", params.WithoutQuery(s.removePoolRecipient))
	r.Post("/pool/:poolId/iccid", s.attach)
	r.Delete("/pool/:poolId/iccid/detach", record(fiber.StatusOK, "ICCIDs detached from the pool.", change("poolId", input.iccids, s.SIMs.Detach), poolOf))
	r.Get("/pool/:poolId/iccid", httpd.Search, list("SIMs found.", sims, sims, withoutCodes(s.listPoolSIMs), simOf))

	r.Get("/subscriber", httpd.Search, list("Subscribers found.", subscribers, subscribers[1:], s.listSubscribers, subscriberOf))
	r.Get("/subscriber/:subscriber", httpd.Search, list("SIMs found.", sims, sims, withoutCodes(s.listSubscriberSIMs), simOf))
	r.Post("/subscriber/register", record(fiber.StatusCreated, "Subscriber registered.", s.register, subscriberOf))

	r.Put("/callback", s.setCallback)

	r.Get("/:iccid", record(fiber.StatusOK, "SIM found.", s.getSIM, simOf))

	app.Use("/v3", unknown)
}

// unknown answers what is no operation, wherever under /v3 it is.
func unknown(c *fiber.Ctx) error {
	if remaining := c.Path()[len("/v3"):]; remaining != "" && remaining[0] != '/' {
		return c.Next() // the router takes /v30 for it
	}
	return refused(c, fiber.StatusNotFound, "Not found.")
}

// style is how the surface takes credentials and refuses them.
func style() httpd.Style {
	refuse := func(status int, message string) fiber.Handler {
		return func(c *fiber.Ctx) error { return refused(c, status, message) }
	}
	return httpd.Style{
		Kind:            httpd.API,
		Credential:      httpd.XAuthTokenOrBearer,
		Unauthenticated: refuse(fiber.StatusUnauthorized, "Unauthenticated."),
		Forbidden:       refuse(fiber.StatusForbidden, "This action is unauthorised."),
	}
}
