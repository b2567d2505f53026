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
type Surface struct {
	sims    *sim.Service
	actions *provisioning.Actions
	usage   *usage.Service
}

// New returns the surface over the use cases.
func New(d Deps) *Surface { return &Surface{sims: d.SIMs, actions: d.Actions, usage: d.Usage} }

// Mount adds the operations to the app, in the specification's order, except that
// what an ICCID would be mistaken for stands before it.
func (s *Surface) Mount(app fiber.Router, auth *httpd.Auth) {
	r := app.Group("/v3/mno", problems(), auth.Require(account.Cellular, style()))

	r.Get("/", s.listSIMs)
	r.Post("/:iccid/activate", s.activate)
	r.Post("/:iccid/service/add", s.setService(provisioning.AddService, "Service addition requested."))
	r.Post("/:iccid/unsuspend", s.change(provisioning.Unsuspend, "SIM unsuspension requested."))
	r.Put("/:iccid/usage-limit", s.setLimit)
	r.Post("/sim/bulk-reassign", s.reassign)
	r.Post("/:iccid/suspend", s.change(provisioning.Suspend, "SIM suspension requested."))
	r.Post("/:iccid/terminate", s.change(provisioning.Terminate, "SIM termination requested."))
	r.Post("/:iccid/service/remove", s.setService(provisioning.RemoveService, "Service removal requested."))

	r.Post("/:iccid/recipient", s.addRecipient)
	r.Delete("/recipient/:simRecipientId", s.removeRecipient)

	r.Get("/job", s.listJobs)
	r.Get("/job/:jobId/status", s.jobStatus)
	r.Post("/job/cdr", bare, s.requestCDR)
	r.Get("/job/:id/cdr/stream", s.streamCDR)
	r.Post("/job/usage", bare, s.requestUsage)
	r.Get("/job/:id/usage", s.usageReport)

	r.Post("/pool", s.createPool)
	r.Put("/pool/:poolId", s.changePool)
	r.Post("/pool/:poolId/recipient", s.addPoolRecipient)
	r.Delete("/pool/:poolId/recipient/:recipientId", s.removePoolRecipient)
	r.Post("/pool/:poolId/iccid", s.attach)
	r.Delete("/pool/:poolId/iccid/detach", s.detach)
	r.Get("/pool/:poolId/iccid", s.listPoolSIMs)

	r.Get("/subscriber", s.listSubscribers)
	r.Get("/subscriber/:subscriber", s.listSubscriberSIMs)
	r.Post("/subscriber/register", s.register)

	r.Put("/callback", s.setCallback)

	r.Get("/:iccid", s.getSIM)

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
