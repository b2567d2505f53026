package iotapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// decode reads a JSON object strictly: a value of the wrong type names its
// field, anything that is no JSON is Invalid JSON.
func decode(c *fiber.Ctx, to any) error {
	raw, err := httpd.Body(c, 1<<20)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	err = d.Decode(to)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := wrong.Field
		if field == "" {
			return fiber.NewError(fiber.StatusUnprocessableEntity, "Invalid JSON.")
		}
		return relay.Invalid(field, "The "+field+" must be a "+wrong.Type.String()+".")
	}
	if err != nil || d.More() {
		return fiber.NewError(fiber.StatusUnprocessableEntity, "Invalid JSON.")
	}
	return nil
}

// param copies a path parameter out of Fiber's buffer.
func param(c *fiber.Ctx, name string) string { return utils.CopyString(c.Params(name)) }

func query(c *fiber.Ctx, name string) string { return utils.CopyString(c.Query(name)) }

func data(c *fiber.Ctx, status int, v any) error {
	return c.Status(status).JSON(fiber.Map{"data": v})
}

// decoderJSON is a decoder as the API shows it.
type decoderJSON struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Type        iot.DeviceType `json:"type"`
}

func decoderOf(d iot.Decoder) decoderJSON {
	return decoderJSON{ID: d.ID, Name: d.Name, Description: d.Description, Type: d.Type}
}

// deviceJSON is a device as get operations show it.
type deviceJSON struct {
	ID           string         `json:"id"`
	Name         string         `json:"name"`
	Identifier   string         `json:"identifier"`
	Comment      string         `json:"comment"`
	Longitude    *string        `json:"longitude"`
	Latitude     *string        `json:"latitude"`
	Altitude     *string        `json:"altitude"`
	Type         iot.DeviceType `json:"type"`
	DecoderID    string         `json:"decoder_id"`
	GatewayID    string         `json:"gateway_id"`
	LocationID   string         `json:"location_id"`
	FrameLogging string         `json:"frame_logging"`
	Parameters   string         `json:"parameters"`
	CreatedAt    string         `json:"created_at"`
	UpdatedAt    string         `json:"updated_at"`
}

func deviceOf(d iot.Device) deviceJSON {
	logging := "disabled"
	if d.FrameLogging {
		logging = "enabled"
	}
	return deviceJSON{
		ID: d.ID, Name: d.Name, Identifier: d.Identifier, Comment: d.Comment,
		Longitude: decimal(d.Longitude), Latitude: decimal(d.Latitude), Altitude: decimal(d.Altitude),
		Type: d.Type, DecoderID: d.DecoderID, GatewayID: d.ID, LocationID: d.LocationID,
		FrameLogging: logging, Parameters: d.Parameters,
		CreatedAt: stamp(d.CreatedAt), UpdatedAt: stamp(d.UpdatedAt),
	}
}

// sensorJSON is a sensor as the API shows it.
type sensorJSON struct {
	ID            string  `json:"id"`
	DeviceID      string  `json:"device_id"`
	Key           string  `json:"key"`
	Name          string  `json:"name"`
	Slope         float64 `json:"slope"`
	Offset        float64 `json:"offset"`
	RetentionDays *int    `json:"retention_days"`
	SensorTypeID  string  `json:"sensor_type_id"`
	CreatedAt     string  `json:"created_at"`
	UpdatedAt     string  `json:"updated_at"`
}

func sensorOf(s iot.Sensor) sensorJSON {
	out := sensorJSON{
		ID: s.ID, DeviceID: s.DeviceID, Key: s.Key, Name: s.Name, Slope: s.Slope, Offset: s.Offset,
		SensorTypeID: s.SensorTypeID, CreatedAt: stamp(s.CreatedAt), UpdatedAt: stamp(s.UpdatedAt),
	}
	if s.RetentionDays > 0 {
		out.RetentionDays = &s.RetentionDays
	}
	return out
}

func decimal(v *float64) *string {
	if v == nil {
		return nil
	}
	return new(strconv.FormatFloat(*v, 'f', -1, 64))
}

func stamp(t time.Time) string { return t.UTC().Format(iot.TimeFormat) }

// each maps a list; an empty one stays a list.
func each[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}
