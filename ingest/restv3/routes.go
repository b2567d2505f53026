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

// Deps are the dependencies of the surface; all are required.
type Deps struct {
	SIMs *sim.Service
	// Actions has the operations that create jobs.
	Actions *provisioning.Actions
	Usage   *usage.Service
}

// Surface implements the REST operations of SIM management.
type Surface struct{ Deps }

// New returns the surface.
func New(d Deps) *Surface { return &Surface{d} }

// Mount adds the operations to the app, in the order of the specification, except that /:iccid
// comes last, because it would match other paths.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	// The inner errorHandler answers errors of handlers before they are recorded.
	refuse := func(status int, message string) fiber.Handler {
		return func(c *fiber.Ctx) error { return sendError(c, status, message) }
	}
	r := app.Group("/v3/mno", errorHandler(), auth.Require(account.Cellular, httpd.Style{
		Kind:            httpd.API,
		Credential:      httpd.XAuthTokenOrBearer,
		Unauthenticated: refuse(fiber.StatusUnauthorized, "Unauthenticated."),
		Forbidden:       refuse(fiber.StatusForbidden, "This action is unauthorised."),
	}), errorHandler())

	sims, subscribers := sim.Columns(), sim.SubscriberColumns()

	r.Get("/", httpd.Search, list("SIMs found.", sims, sims, withoutCodes(find(s.SIMs.List)), simOf))
	r.Post("/:iccid/activate", startJob("SIM activation requested.", change("iccid", input.activation, s.Actions.Activate)))
	r.Post("/:iccid/service/add", startJob("Service addition requested.", s.setService(provisioning.AddService)))
	r.Post("/:iccid/unsuspend", params.WithoutQuery(startJob("SIM unsuspension requested.", s.changeState(provisioning.Unsuspend))))
	r.Put("/:iccid/usage-limit", sendRecord(fiber.StatusOK, "Usage limit updated.", change("iccid", input.limit, s.SIMs.SetLimit), simWithLimitOf))
	r.Post("/sim/bulk-reassign", startJob("Reassignment requested.", create(input.reassignment, s.Actions.Reassign)))
	r.Post("/:iccid/suspend", params.WithoutQuery(startJob("SIM suspension requested.", s.changeState(provisioning.Suspend))))
	r.Post("/:iccid/terminate", params.WithoutQuery(startJob("SIM termination requested.", s.changeState(provisioning.Terminate))))
	r.Post("/:iccid/service/remove", startJob("Service removal requested.", s.setService(provisioning.RemoveService)))

	r.Post("/:iccid/recipient", sendRecord(fiber.StatusCreated, "Recipient added.", change("iccid", input.recipient, s.SIMs.AddRecipient), simWithRecipientsOf))
	r.Delete("/recipient/:simRecipientId", params.WithoutQuery(func(c *fiber.Ctx) error {
		return noContent(c, s.SIMs.RemoveRecipient(c.UserContext(), httpd.AccountOf(c), params.Path(c, "simRecipientId")))
	}))

	r.Get("/job", httpd.Search, s.listJobs)
	r.Get("/job/:jobId/status", sendRecord(fiber.StatusOK, "Job found.", getByID("jobId", s.Actions.Job), statusOf))
	r.Post("/job/cdr", omitSuccess, requestReport("CDR report requested.", s.Usage.RequestCDR))
	r.Get("/job/:id/cdr/stream", httpd.Export, s.streamCDR)
	r.Post("/job/usage", omitSuccess, requestReport("Usage report requested.", s.Usage.RequestUsage))
	r.Get("/job/:id/usage", httpd.Search, s.usageReport)

	r.Post("/pool", sendRecord(fiber.StatusCreated, "Pool created.", create(input.pool, s.SIMs.CreatePool), poolOf))
	r.Put("/pool/:poolId", sendRecord(fiber.StatusOK, "Pool updated.", change("poolId", input.pool, s.SIMs.ChangePool), poolOf))
	r.Post("/pool/:poolId/recipient", sendRecord(fiber.StatusCreated, "Recipient added.", change("poolId", input.recipient, s.SIMs.AddPoolRecipient), poolOf))
	r.Delete("/pool/:poolId/recipient/:recipientId", params.WithoutQuery(func(c *fiber.Ctx) error {
		return noContent(c, s.SIMs.RemovePoolRecipient(c.UserContext(), httpd.AccountOf(c), params.Path(c, "poolId"), params.Path(c, "recipientId")))
	}))
	r.Post("/pool/:poolId/iccid", s.attach)
	r.Delete("/pool/:poolId/iccid/detach", sendRecord(fiber.StatusOK, "ICCIDs detached from the pool.", change("poolId", input.iccids, s.SIMs.Detach), poolOf))
	r.Get("/pool/:poolId/iccid", httpd.Search, list("SIMs found.", sims, sims, withoutCodes(findIn("poolId", s.SIMs.PoolSIMs)), simOf))

	r.Get("/subscriber", httpd.Search, list("Subscribers found.", subscribers, subscribers[1:], find(s.SIMs.ListSubscribers), subscriberOf))
	r.Get("/subscriber/:subscriber", httpd.Search, list("SIMs found.", sims, sims, withoutCodes(findIn("subscriber", s.SIMs.SubscriberSIMs)), simOf))
	r.Post("/subscriber/register", sendRecord(fiber.StatusCreated, "Subscriber registered.", create(input.subscriber, s.SIMs.Register), subscriberOf))

	r.Put("/callback", s.setCallback)

	r.Get("/:iccid", sendRecord(fiber.StatusOK, "SIM found.", s.getSIM, simOf))

	app.Use("/v3", func(c *fiber.Ctx) error { // all other paths below /v3
		if remaining := c.Path()[len("/v3"):]; remaining != "" && remaining[0] != '/' {
			return c.Next() // Fiber also calls the handler for /v30
		}
		return sendError(c, fiber.StatusNotFound, "Not found.")
	})
}
