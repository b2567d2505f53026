package iotapi

import (
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strconv"
	"strings"
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
	err = json.Unmarshal(raw, to)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return relay.Invalid(wrong.Field, "The "+words(wrong.Field)+" must be "+wanted(wrong.Type)+".")
	}
	if err != nil {
		return fiber.NewError(fiber.StatusUnprocessableEntity, "Invalid JSON.")
	}
	return nil
}

// words is a field's name as messages write it.
func words(field string) string { return strings.ReplaceAll(field, "_", " ") }

// wanted is a type in the words of JSON.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

// fromQuery fills the fields that the body left empty from parameters of the
// same name: senders may put them in either.
func fromQuery(c *fiber.Ctx, to any) error {
	v := reflect.ValueOf(to).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		text := query(c, name)
		if text == "" || !v.Field(i).IsZero() {
			continue
		}
		if err := assign(v.Field(i), text); err != nil {
			return relay.Invalid(name, "The "+words(name)+" must be "+wanted(base(v.Field(i).Type()))+".")
		}
	}
	return nil
}

// assign reads a parameter's text as the type of a field.
func assign(field reflect.Value, text string) error {
	t := base(field.Type())
	v := reflect.New(t)
	if t.Kind() == reflect.String {
		v.Elem().SetString(text)
	} else if err := json.Unmarshal([]byte(text), v.Interface()); err != nil {
		return err
	}
	if field.Kind() == reflect.Pointer {
		field.Set(v)
	} else {
		field.Set(v.Elem())
	}
	return nil
}

func base(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// param copies a path parameter out of Fiber's buffer, decoded.
func param(c *fiber.Ctx, name string) string {
	raw := utils.CopyString(c.Params(name))
	if text, err := url.PathUnescape(raw); err == nil {
		return text
	}
	return raw
}

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
	LastSeenAt   string         `json:"last_seen_at,omitempty"`
}

func deviceOf(d iot.Device) deviceJSON {
	logging := "disabled"
	if d.FrameLogging {
		logging = "enabled"
	}
	out := deviceJSON{
		ID: d.ID, Name: d.Name, Identifier: d.Identifier, Comment: d.Comment,
		Longitude: decimal(d.Longitude), Latitude: decimal(d.Latitude), Altitude: decimal(d.Altitude),
		Type: d.Type, DecoderID: d.DecoderID, GatewayID: d.ID, LocationID: d.LocationID,
		FrameLogging: logging, Parameters: d.Parameters,
		CreatedAt: stamp(d.CreatedAt), UpdatedAt: stamp(d.UpdatedAt),
	}
	if !d.LastSeen.IsZero() {
		out.LastSeenAt = stamp(d.LastSeen)
	}
	return out
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
