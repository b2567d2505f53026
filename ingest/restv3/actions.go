package restv3

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/sim"
)

// begun answers with the job that was begun.
func begun(c *fiber.Ctx, message, id string, err error) error {
	if err != nil {
		return err
	}
	return done(c, fiber.StatusOK, message, fiber.Map{"id": id})
}

// activate is operation 3.
func (s *Surface) activate(c *fiber.Ctx) error {
	in, err := inputOf(c)
	if err != nil {
		return err
	}
	a := provisioning.Activation{}
	for _, service := range []string{sim.Service4G, sim.Service5G} {
		if on := in.Flag(service); on != nil && *on {
			a.Services = append(a.Services, service)
		}
	}
	switch v := in.Value("subscriber").(type) {
	case nil:
	case string:
		a.Subscriber = v
	case map[string]any:
		inner := inputFrom(params.OfObject(v))
		a.New = new(inner.subscriber())
		in.AddAll("subscriber.", inner.Problems)
	default:
		in.AddNamed("subscriber", "The %s must be a string or an object.")
	}
	if err := in.Err(); err != nil {
		return err
	}
	id, err := s.Actions.Activate(c.UserContext(), httpd.AccountOf(c), params.Path(c, "iccid"), a)
	return begun(c, "SIM activation requested.", id, err)
}

// setService is operation 4, and its opposite.
func (s *Surface) setService(do provisioning.Action, message string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		in, err := inputOf(c)
		if err != nil {
			return err
		}
		service := in.Text("service")
		if err := in.Err(); err != nil {
			return err
		}
		id, err := s.Actions.SetService(c.UserContext(), httpd.AccountOf(c), params.Path(c, "iccid"), do, service)
		return begun(c, message, id, err)
	}
}

// change is operation 5, and what the states call for beside it.
func (s *Surface) change(do provisioning.Action, message string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := s.Actions.Change(c.UserContext(), httpd.AccountOf(c), params.Path(c, "iccid"), do)
		return begun(c, message, id, err)
	}
}

// reassign is operation 7.
func (s *Surface) reassign(c *fiber.Ctx) error {
	in, err := inputOf(c)
	if err != nil {
		return err
	}
	r := provisioning.Reassignment{
		Target: in.Text("target_subscriber"), Source: in.Text("source_subscriber"), Named: in.Texts("iccids"),
	}
	if err := in.Err(); err != nil {
		return err
	}
	id, err := s.Actions.Reassign(c.UserContext(), httpd.AccountOf(c), r)
	return begun(c, "Reassignment requested.", id, err)
}

// setCallback is operation 27.
func (s *Surface) setCallback(c *fiber.Ctx) error {
	in, err := inputOf(c)
	if err != nil {
		return err
	}
	url := in.Text("callback_url")
	if err := in.Err(); err != nil {
		return err
	}
	return nothing(c, s.SIMs.SetCallback(c.UserContext(), httpd.AccountOf(c), url))
}
