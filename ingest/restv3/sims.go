package restv3

import (
	"context"
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/sim"
)

func (s *Surface) getSIM(c *fiber.Ctx) (sim.SIM, error) {
	found, err := s.SIMs.Get(c.UserContext(), httpd.AccountOf(c), params.Path(c, "iccid"))
	if !httpd.SeesSecrets(c) {
		found.Codes = sim.Codes{}
	}
	return found, err
}

// withoutCodes removes the PINs and PUKs from a list of SIMs if the sender of the request may not
// see secrets.
func withoutCodes(find func(*fiber.Ctx, sim.Query) ([]sim.SIM, int, error)) func(*fiber.Ctx, sim.Query) ([]sim.SIM, int, error) {
	return func(c *fiber.Ctx, q sim.Query) ([]sim.SIM, int, error) {
		found, total, err := find(c, q)
		for i := range found {
			if !httpd.SeesSecrets(c) {
				found[i].Codes = sim.Codes{}
			}
		}
		return found, total, err
	}
}

func (i input) limit() sim.LimitChange {
	c := sim.LimitChange{
		Monthly: i.Integer("monthly_usage_limit"), NoMonthly: i.Null("monthly_usage_limit"),
		Warning: i.Integer("monthly_usage_limit_warning"), NoWarning: i.Null("monthly_usage_limit_warning"),
	}
	if text := i.Optional("cap_limit"); text != nil {
		c.Action = new(sim.LimitAction(*text))
	}
	return c
}

func (i input) recipient() sim.Recipient {
	return sim.Recipient{Email: i.Text("email"), Number: i.Text("number")}
}

func (i input) subscriber() (subscriber sim.Subscriber) {
	for _, f := range subscriber.Fields() {
		*f.Value = i.Text(f.Name)
	}
	return subscriber
}

func (i input) pool() sim.PoolChange {
	change := sim.PoolChange{Name: i.Optional("name"), Limit: i.limit()}
	if i.Value("recipients") != nil {
		change.Recipients = new(i.recipients())
	}
	return change
}

func (i input) recipients() []sim.Recipient {
	list, ok := i.Value("recipients").([]any)
	if !ok {
		i.AddNamed("recipients", "The %s must be an array.")
	}
	recipients := make([]sim.Recipient, len(list))
	for n, v := range list {
		path := fmt.Sprintf("recipients.%d", n)
		members, ok := v.(map[string]any)
		if !ok {
			i.AddNamed(path, "The %s must be an object.")
		}
		item := inputFrom(params.OfObject(members))
		recipients[n] = item.recipient()
		i.AddAll(path+".", item.Problems)
	}
	return recipients
}

func (i input) iccids() []string { return i.Texts("iccids") }

func (s *Surface) attach(c *fiber.Ctx) error {
	list, err := read(c, input.iccids)
	if err != nil {
		return err
	}
	if err := s.SIMs.Attach(c.UserContext(), httpd.AccountOf(c), params.Path(c, "poolId"), list); err != nil {
		return err
	}
	return sendResult(c, fiber.StatusCreated, "ICCIDs attached to the pool.", nil)
}

// startJob returns a handler that answers with the id of the job that start creates.
func startJob(message string, start func(*fiber.Ctx) (id string, err error)) fiber.Handler {
	return sendRecord(fiber.StatusOK, message, start, func(id string) fiber.Map { return fiber.Map{"id": id} })
}

func (i input) activation() (a provisioning.Activation) {
	for _, service := range []string{sim.Service4G, sim.Service5G} {
		if on := i.Bool(service); on != nil && *on {
			a.Services = append(a.Services, service)
		}
	}
	switch v := i.Value("subscriber").(type) {
	case nil:
	case map[string]any:
		inner := inputFrom(params.OfObject(v))
		a.NewSubscriber = new(inner.subscriber())
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
	return noContent(c, s.SIMs.SetCallback(c.UserContext(), httpd.AccountOf(c), url))
}

func noContent(c *fiber.Ctx, err error) error {
	if err != nil {
		return err
	}
	c.Status(fiber.StatusNoContent)
	return nil
}
