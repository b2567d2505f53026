package iotapi

import (
	"context"
	"encoding/json"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// Submitter journals readings that are added to a device; package uplink implements
// it.
type Submitter interface {
	Submit(ctx context.Context, acct relay.AccountID, path, identifier string, body []byte) (iot.Updated, error)
}

func (s *Surface) addReadings(c *fiber.Ctx) error {
	var in struct {
		Reading  json.RawMessage `json:"reading,omitempty"`
		Readings json.RawMessage `json:"readings,omitempty"`
	}
	if err := decodeRequest(c, &in); err != nil {
		return err
	}
	acct := httpd.AccountOf(c)
	d, err := s.IoT.Device(c.UserContext(), acct, params.Path(c, "device_id"))
	if err != nil {
		return err
	}
	data, err := json.Marshal(in) // also of parameters of the query
	if err != nil {
		return err
	}
	p := relay.Problems{}
	_, faults := netserver.ParseSubmission(d.Identifier, data)
	for _, f := range faults {
		p.Add(f.Field, f.Problem)
	}
	if err := p.Err(); err != nil {
		return err
	}
	updated, err := s.Submit.Submit(c.UserContext(), acct, utils.CopyString(c.Path()), d.Identifier, data)
	if err != nil {
		return err
	}
	return c.JSON(updated)
}
