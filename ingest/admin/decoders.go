package admin

import (
	"maps"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

type decoderJSON struct {
	ID          string          `json:"id"`
	Account     relay.AccountID `json:"account"`
	AccountName string          `json:"account_name"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Type        iot.DeviceType  `json:"type"`
	Codec       string          `json:"codec"`
	Keys        []string        `json:"keys"` // the keys that are mapped to sensors
}

// listDecoders lists the decoders of one or all accounts, without their sources.
func (s *Surface) listDecoders(c *fiber.Ctx, sel *selection) error {
	ctx := c.UserContext()
	acct, limit, cursor := sel.account(), sel.limit(), sel.option("cursor")
	names, err := s.namesIfValid(sel)
	if err != nil {
		return err
	}
	found, nextCursor, err := s.IoT.FindDecoders(ctx, acct, cursor, limit)
	if err != nil {
		return err
	}
	views := httpd.Each(found, func(d iot.FoundDecoder) decoderJSON {
		return decoderJSON{
			ID: d.ID, Account: d.Account, AccountName: names[d.Account], Name: d.Name, Description: d.Description, Type: d.Type, Codec: d.Codec,
			Keys: httpd.Each(d.Sensors, func(m iot.Mapping) string { return m.Key }),
		}
	})
	return sendPage(c, views, nextCursor)
}

// DecoderView is a decoder with its source and its mappings.
type DecoderView struct {
	Account       relay.AccountID `json:"account"`
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Description   string          `json:"description"`
	Type          iot.DeviceType  `json:"type"`
	Codec         string          `json:"codec"`
	Source        string          `json:"source"`
	UseRawPayload bool            `json:"use_raw_payload"`
	Sensors       []SensorView    `json:"sensors"`
	// Unmapped are the keys of frames that the decoder does not map.
	Unmapped []iot.UnmappedKey `json:"unmapped,omitempty"`
}

// SensorView is a mapped key with its sensor type.
type SensorView struct {
	Key           string `json:"key"`
	SensorTypeID  string `json:"sensor_type_id"`
	Name          string `json:"name"` // of the sensor type
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
	unmapped, err := s.IoT.UnmappedKeys(c.UserContext(), acct, d)
	if err != nil {
		return err
	}
	return c.JSON(DecoderView{
		Account: acct, ID: d.ID, Name: d.Name, Description: d.Description, Type: d.Type, Codec: d.Codec, Source: d.Source, UseRawPayload: d.UseRawPayload,
		Sensors: httpd.Each(d.Sensors, func(m iot.Mapping) SensorView {
			t := types[m.SensorTypeID]
			return SensorView{Key: m.Key, SensorTypeID: m.SensorTypeID, Name: t.Name, MetricUnits: t.MetricUnits, ImperialUnits: t.ImperialUnits}
		}),
		Unmapped: unmapped,
	})
}

// listSensorTypes lists the sensor types by id.
func (s *Surface) listSensorTypes(c *fiber.Ctx) error {
	types, err := s.Types.SensorTypes(c.UserContext())
	if err != nil {
		return err
	}
	sorted := slices.SortedFunc(maps.Values(types), func(a, b iot.SensorType) int { return strings.Compare(a.ID, b.ID) })
	return c.JSON(fiber.Map{"data": append([]iot.SensorType{}, sorted...)})
}

// addSensorType adds a sensor type, which decoders of all accounts may use.
func (s *Surface) addSensorType(c *fiber.Ctx) error {
	var t iot.SensorType
	if err := readJSON(c, maxForm, &t); err != nil {
		return err
	}
	if err := s.IoT.AddSensorType(c.UserContext(), t); err != nil {
		return err
	}
	httpd.NoteOf(c).Target = t.ID
	return c.Status(fiber.StatusCreated).JSON(fiber.Map{"data": t})
}
