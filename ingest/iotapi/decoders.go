package iotapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/iot"
)

func (s *Surface) addDecoderSensor(c *fiber.Ctx) (iot.Decoder, error) {
	var mapping iot.Mapping
	if err := decodeRequest(c, &mapping); err != nil {
		return iot.Decoder{}, err
	}
	return s.IoT.AddSensor(c.UserContext(), httpd.AccountOf(c), params.Path(c, "decoder_id"), mapping)
}

func (s *Surface) createDecoder(c *fiber.Ctx) (iot.Decoder, error) {
	var change iot.DecoderChange
	if err := decodeRequest(c, &change); err != nil {
		return iot.Decoder{}, err
	}
	return s.IoT.CreateDecoder(c.UserContext(), httpd.AccountOf(c), change)
}

func (s *Surface) deleteDecoderSensor(c *fiber.Ctx) (iot.Decoder, error) {
	return s.IoT.RemoveSensor(c.UserContext(), httpd.AccountOf(c), params.Path(c, "decoder_id"), params.Path(c, "key"))
}

// mappingsOf returns the mappings of a decoder; never nil, which would be null in JSON.
func mappingsOf(d iot.Decoder) []iot.Mapping { return append([]iot.Mapping{}, d.Sensors...) }

func (s *Surface) getDecoder(c *fiber.Ctx) error {
	d, err := s.IoT.Decoder(c.UserContext(), httpd.AccountOf(c), params.Path(c, "decoder_id"))
	if err != nil {
		return err
	}
	unmapped, err := s.IoT.UnmappedKeys(c.UserContext(), httpd.AccountOf(c), d)
	if err != nil {
		return err
	}
	answer := decoderOf(d)
	answer.Unmapped = httpd.Each(unmapped, func(k iot.UnmappedKey) unmappedJSON {
		return unmappedJSON{Key: k.Key, LastSeen: formatTime(k.LastSeen), Count: k.Count}
	})
	return c.JSON(answer)
}

func (s *Surface) listDecoderSensors(c *fiber.Ctx) ([]iot.Mapping, error) {
	d, err := s.IoT.Decoder(c.UserContext(), httpd.AccountOf(c), params.Path(c, "decoder_id"))
	if err != nil {
		return nil, err
	}
	return d.Sensors, nil
}

func (s *Surface) patchDecoder(c *fiber.Ctx) (iot.Decoder, error) {
	var change iot.DecoderChange
	if err := decodeRequest(c, &change); err != nil {
		return iot.Decoder{}, err
	}
	acct, id := httpd.AccountOf(c), params.Path(c, "decoder_id")
	oldDecoder, err := s.IoT.Decoder(c.UserContext(), acct, id)
	if err != nil {
		return iot.Decoder{}, err
	}
	d, err := s.IoT.ChangeDecoder(c.UserContext(), acct, id, change)
	n := httpd.NoteOf(c)
	n.Before, n.After = oldDecoder, d
	return d, err
}

func (s *Surface) deleteDecoder(c *fiber.Ctx) error {
	acct, id := httpd.AccountOf(c), params.Path(c, "decoder_id")
	d, err := s.IoT.Decoder(c.UserContext(), acct, id)
	if err != nil {
		return err
	}
	httpd.NoteOf(c).Before = d
	if err := s.IoT.DeleteDecoder(c.UserContext(), acct, id); err != nil {
		return err
	}
	return c.SendStatus(fiber.StatusNoContent)
}

func listTemplates(*fiber.Ctx) ([]catalog.Template, error) { return catalog.Templates(), nil }
