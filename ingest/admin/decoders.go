package admin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// DecoderView is a decoder as the operator sees it.
type DecoderView struct {
	Account       account.ID     `json:"account"`
	ID            string         `json:"id"`
	Name          string         `json:"name"`
	Description   string         `json:"description"`
	Type          iot.DeviceType `json:"type"`
	Codec         string         `json:"codec"`
	Source        string         `json:"source"`
	UseRawPayload bool           `json:"use_raw_payload"`
	Sensors       []SensorView   `json:"sensors"`
}

// SensorView is a key that a decoder maps, with its sensor type.
type SensorView struct {
	Key           string `json:"key"`
	SensorTypeID  string `json:"sensor_type_id"`
	Name          string `json:"name"` // the sensor type's
	MetricUnits   string `json:"metric_units"`
	ImperialUnits string `json:"imperial_units"`
}

func (s *Surface) getDecoder(c *fiber.Ctx, sel *selection) error {
	acct := sel.account()
	if err := sel.Err(); err != nil {
		return err
	}
	acct, d, err := s.findDecoder(c.UserContext(), acct, params.Path(c, "decoder_id"))
	if err != nil {
		return err
	}
	types, err := s.Types.SensorTypes(c.UserContext())
	if err != nil {
		return err
	}
	return c.JSON(viewOf(acct, d, types))
}

func viewOf(acct account.ID, d iot.Decoder, types map[string]iot.SensorType) DecoderView {
	out := DecoderView{
		Account: acct, ID: d.ID, Name: d.Name, Description: d.Description, Type: d.Type,
		Codec: d.Codec, Source: d.Source, UseRawPayload: d.UseRawPayload, Sensors: make([]SensorView, len(d.Sensors)),
	}
	for i, m := range d.Sensors {
		t := types[m.SensorTypeID]
		out.Sensors[i] = SensorView{Key: m.Key, SensorTypeID: m.SensorTypeID, Name: t.Name, MetricUnits: t.MetricUnits, ImperialUnits: t.ImperialUnits}
	}
	return out
}
