package restv3

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/sim"
)

// begin returns a handler that answers with the job that start has created.
func begin(message string, start func(*fiber.Ctx) (id string, err error)) fiber.Handler {
	return record(fiber.StatusOK, message, start, func(id string) fiber.Map { return fiber.Map{"id": id} })
}

func (i input) activation() (a provisioning.Activation) {
	for _, service := range []string{sim.Service4G, sim.Service5G} {
		if on := i.Flag(service); on != nil && *on {
			a.Services = append(a.Services, service)
		}
	}
	switch v := i.Value("subscriber").(type) {
	case nil:
	case map[string]any:
		inner := inputFrom(params.OfObject(v))
		a.New = new(inner.subscriber())
		i.AddAll("subscriber.", inner.Problems)
	case string, params.QueryText:
		a.Subscriber = i.Text("subscriber")
	default:
		i.AddNamed("subscriber", "The %s must be a string or an object.")
	}
	return a
}

func (s *Surface) setService(do provisioning.Action) func(*fiber.Ctx) (string, error) {
	service := func(i input) string { return i.Text("service") }
	return change("iccid", service, func(ctx context.Context, acct relay.AccountID, iccid, service string) (string, error) {
		return s.Actions.SetService(ctx, acct, iccid, do, service)
	})
}

func (s *Surface) changeState(do provisioning.Action) func(*fiber.Ctx) (string, error) {
	return func(c *fiber.Ctx) (string, error) {
		return s.Actions.Change(c.UserContext(), httpd.AccountOf(c), params.Path(c, "iccid"), do)
	}
}

func (i input) reassignment() provisioning.Reassignment {
	return provisioning.Reassignment{Target: i.Text("target_subscriber"), Source: i.Text("source_subscriber"), Named: i.iccids()}
}

func (s *Surface) setCallback(c *fiber.Ctx) error {
	url, err := read(c, func(i input) string { return i.Text("callback_url") })
	if err != nil {
		return err
	}
	return nothing(c, s.SIMs.SetCallback(c.UserContext(), httpd.AccountOf(c), url))
}

func nothing(c *fiber.Ctx, err error) error {
	if err != nil {
		return err
	}
	c.Status(fiber.StatusNoContent)
	return nil
}
