package restv3

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
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
func (s *Surface) Mount(app fiber.Router, auth *httpd.Auth) {
	r := app.Group("/v3/mno", problems(), auth.Require(account.Cellular, style()))

	sims, subscribers := sim.Columns(), sim.SubscriberColumns()

	r.Get("/", list("SIMs found.", sims, sims, s.listSIMs, simOf))
	r.Post("/:iccid/activate", s.activate)
	r.Post("/:iccid/service/add", s.setService(provisioning.AddService, "Service addition requested."))
	r.Post("/:iccid/unsuspend", s.change(provisioning.Unsuspend, "SIM unsuspension requested."))
	r.Put("/:iccid/usage-limit", record(fiber.StatusOK, "Usage limit updated.", s.setLimit, limitedOf))
	r.Post("/sim/bulk-reassign", s.reassign)
	r.Post("/:iccid/suspend", s.change(provisioning.Suspend, "SIM suspension requested."))
	r.Post("/:iccid/terminate", s.change(provisioning.Terminate, "SIM termination requested."))
	r.Post("/:iccid/service/remove", s.setService(provisioning.RemoveService, "Service removal requested."))

	r.Post("/:iccid/recipient", record(fiber.StatusCreated, "Recipient added.", s.addRecipient, watchedOf))
	r.Delete("/recipient/:simRecipientId", s.removeRecipient)

	r.Get("/job", s.listJobs)
	r.Get("/job/:jobId/status", record(fiber.StatusOK, "Job found.", s.jobStatus, statusOf))
	r.Post("/job/cdr", bare, order("CDR report requested.", s.Usage.RequestCDR))
	r.Get("/job/:id/cdr/stream", s.streamCDR)
	r.Post("/job/usage", bare, order("Usage report requested.", s.Usage.RequestUsage))
	r.Get("/job/:id/usage", s.usageReport)

	r.Post("/pool", record(fiber.StatusCreated, "Pool created.", s.createPool, poolOf))
	r.Put("/pool/:poolId", record(fiber.StatusOK, "Pool updated.", s.changePool, poolOf))
	r.Post("/pool/:poolId/recipient", record(fiber.StatusCreated, "Recipient added.", s.addPoolRecipient, poolOf))
	r.Delete("/pool/:poolId/recipient/:recipientId", s.removePoolRecipient)
	r.Post("/pool/:poolId/iccid", s.attach)
	r.Delete("/pool/:poolId/iccid/detach", record(fiber.StatusOK, "ICCIDs detached from the pool.", s.detach, poolOf))
	r.Get("/pool/:poolId/iccid", list("SIMs found.", sims, sims, s.listPoolSIMs, simOf))

	r.Get("/subscriber", list("Subscribers found.", subscribers, subscribers[1:], s.listSubscribers, subscriberOf))
	r.Get("/subscriber/:subscriber", list("SIMs found.", sims, sims, s.listSubscriberSIMs, simOf))
	r.Post("/subscriber/register", record(fiber.StatusCreated, "Subscriber registered.", s.register, subscriberOf))

	r.Put("/callback", s.setCallback)

	r.Get("/:iccid", record(fiber.StatusOK, "SIM found.", s.getSIM, simOf))

	app.Use("/v3", unknown)
}

// unknown answers what is no operation, wherever under /v3 it is.
func unknown(c *fiber.Ctx) error {
	if rest := c.Path()[len("/v3"):]; rest != "" && rest[0] != '/' {
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
		Credential:      httpd.XAuthToken,
		Unauthenticated: refuse(fiber.StatusUnauthorized, "Unauthenticated."),
		Forbidden:       refuse(fiber.StatusForbidden, "This action is unauthorised."),
	}
}
