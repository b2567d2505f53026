package iotapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/iot"
)

func (s *Surface) addDecoderSensor(c *fiber.Ctx) error {
	var in iot.Mapping
	if err := decodeRequest(c, &in); err != nil {
		return err
	}
	d, err := s.iot.AddSensor(c.UserContext(), httpd.AccountOf(c), params.Path(c, "decoder_id"), in)
	if err != nil {
		return err
	}
	return sendData(c, fiber.StatusOK, d.Sensors)
}

func (s *Surface) createDecoder(c *fiber.Ctx) error {
	var in struct {
		Name          string         `json:"name"`
		Description   string         `json:"description"`
		Type          iot.DeviceType `json:"type"`
		MACVersion    string         `json:"loraWanMacVersion"`
		Revision      string         `json:"loraWanRevision"`
		ClassB        bool           `json:"loraSupportClassB"`
		ClassC        bool           `json:"loraSupportClassC"`
		UseRawPayload bool           `json:"useRawPayload"`
		Codec         string         `json:"codec"`
		Source        string         `json:"source"`
	}
	if err := decodeRequest(c, &in); err != nil {
		return err
	}
	d, err := s.iot.CreateDecoder(c.UserContext(), httpd.AccountOf(c), iot.Decoder{
		Name: in.Name, Description: in.Description, Type: in.Type, Codec: in.Codec, Source: in.Source,
		UseRawPayload: in.UseRawPayload, MACVersion: in.MACVersion, Revision: in.Revision, ClassB: in.ClassB, ClassC: in.ClassC,
	})
	if err != nil {
		return err
	}
	return sendData(c, fiber.StatusCreated, decoderOf(d))
}

func (s *Surface) deleteDecoderSensor(c *fiber.Ctx) error {
	d, err := s.iot.RemoveSensor(c.UserContext(), httpd.AccountOf(c), params.Path(c, "decoder_id"), params.Path(c, "key"))
	if err != nil {
		return err
	}
	return sendData(c, fiber.StatusOK, httpd.Each(d.Sensors, identity))
}

func identity(m iot.Mapping) iot.Mapping { return m }

func (s *Surface) getDecoder(c *fiber.Ctx) error {
	d, err := s.iot.Decoder(c.UserContext(), httpd.AccountOf(c), params.Path(c, "decoder_id"))
	if err != nil {
		return err
	}
	return c.JSON(decoderOf(d))
}

func (s *Surface) listDecoderSensors(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	d, err := s.iot.Decoder(c.UserContext(), httpd.AccountOf(c), params.Path(c, "decoder_id"))
	if err != nil {
		return err
	}
	return sendPage(c, page, d.Sensors, identity)
}

func (s *Surface) listDecoders(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	all, err := s.iot.Decoders(c.UserContext(), httpd.AccountOf(c))
	if err != nil {
		return err
	}
	return sendPage(c, page, all, decoderOf)
}

func (s *Surface) patchDecoder(c *fiber.Ctx) error {
	var in iot.DecoderChange
	if err := decodeRequest(c, &in); err != nil {
		return err
	}
	d, err := s.iot.ChangeDecoder(c.UserContext(), httpd.AccountOf(c), params.Path(c, "decoder_id"), in)
	if err != nil {
		return err
	}
	return sendData(c, fiber.StatusOK, decoderOf(d))
}
