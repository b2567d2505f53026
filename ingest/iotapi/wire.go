package iotapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/rule"
)

// maxBody is the longest body of an operation, in bytes: a decoder's source may have 1 MiB, and
// more with JSON escapes.
const maxBody = 4 << 20

// readQuery sets the fields that are missing in the body from the query parameters of the same
// names. It refuses other parameters.
func readQuery(c *fiber.Ctx, target any) error {
	v, known := reflect.ValueOf(target).Elem(), []string(nil)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		known = append(known, name)
		text := params.Query(c, name)
		if text == "" || !v.Field(i).IsZero() {
			continue
		}
		t := baseType(v.Field(i).Type())
		value := reflect.New(t)
		if t.Kind() == reflect.String {
			value.Elem().SetString(text)
		} else if json.Unmarshal([]byte(text), value.Interface()) != nil {
			return relay.Invalid(name, "The "+relay.FieldWords(name)+" must be "+params.TypeName(t)+".")
		}
		if v.Field(i).Kind() != reflect.Pointer {
			value = value.Elem()
		}
		v.Field(i).Set(value)
	}
	problems := relay.Problems{}
	params.RefuseUnknown(c, problems, known)
	return problems.Err()
}

func baseType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func sendData(c *fiber.Ctx, status int, v any) error {
	return c.Status(status).JSON(fiber.Map{"data": v})
}

type decoderJSON struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Type        iot.DeviceType `json:"type"`
	// Unmapped has the keys of frames that the decoder does not map. Only the answer with a
	// single decoder has it, and only if there are such keys.
	Unmapped []unmappedJSON `json:"unmapped,omitempty"`
}

type unmappedJSON struct {
	Key      string `json:"key"`
	LastSeen string `json:"last_seen"`
	Count    int64  `json:"count"`
}

func decoderOf(d iot.Decoder) decoderJSON {
	return decoderJSON{ID: d.ID, Name: d.Name, Description: d.Description, Type: d.Type}
}

// deviceJSON is a device in the answers of get operations.
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
	view := deviceJSON{
		ID: d.ID, Name: d.Name, Identifier: d.Identifier, Comment: d.Comment,
		Longitude: formatDecimal(d.Longitude), Latitude: formatDecimal(d.Latitude), Altitude: formatDecimal(d.Altitude),
		Type: d.Type, DecoderID: d.DecoderID, GatewayID: d.ID, LocationID: d.LocationID,
		FrameLogging: logging, Parameters: d.Parameters,
		CreatedAt: formatTime(d.CreatedAt), UpdatedAt: formatTime(d.UpdatedAt),
	}
	if !d.LastSeen.IsZero() {
		view.LastSeenAt = formatTime(d.LastSeen)
	}
	return view
}

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
	return sensorJSON{
		ID: s.ID, DeviceID: s.DeviceID, Key: s.Key, Name: s.Name, Slope: s.Slope, Offset: s.Offset, RetentionDays: httpd.OrNull(max(0, s.RetentionDays)),
		SensorTypeID: s.SensorTypeID, CreatedAt: formatTime(s.CreatedAt), UpdatedAt: formatTime(s.UpdatedAt),
	}
}

func formatDecimal(v *float64) *string {
	if v == nil {
		return nil
	}
	return new(strconv.FormatFloat(*v, 'f', -1, 64))
}

func formatTime(t time.Time) string { return t.UTC().Format(iot.TimeFormat) }

// invalidDevice answers 422 for an unknown device, as the specification requires for some
// operations.
func invalidDevice(c *fiber.Ctx, err error) error {
	if relay.KindOf(err) == relay.KindNotFound {
		return httpd.Message(c, fiber.StatusUnprocessableEntity, "Invalid Device.")
	}
	return err
}

// decodeRequest decodes the parameters of an operation from a JSON body, the query, or both. The
// body takes precedence.
func decodeRequest(c *fiber.Ctx, target any) error {
	raw, err := httpd.Body(c, maxBody)
	if err != nil {
		return err
	}
	if len(raw) == 0 && len(c.Request().URI().QueryString()) > 0 {
		return readQuery(c, target)
	}
	if !params.IsJSON(c) {
		return params.ErrNotJSON
	}
	if err := params.Decode(raw, target); err != nil {
		return err
	}
	return readQuery(c, target)
}

func decodeBody(c *fiber.Ctx, target any) ([]byte, error) {
	raw, err := httpd.Body(c, maxRule)
	if err != nil {
		return nil, err
	}
	if !params.IsJSON(c) {
		return nil, params.ErrNotJSON
	}
	return raw, params.Decode(raw, target)
}

const (
	maxRule    = 1 << 20 // the longest body with a rule or an alarm, in bytes
	maxIgnored = 10      // the largest number of unknown fields in warnings
)

// decodeRule decodes a rule. It returns a warning for each unknown field, because a rule with a
// misspelt condition would apply to all readings.
func decodeRule(c *fiber.Ctx, target *rule.Change) (warnings []string, err error) {
	raw, err := decodeBody(c, target)
	if err != nil {
		return nil, err
	}
	unknown := unknownFields(raw, reflect.TypeFor[rule.Change](), "")
	for _, path := range unknown[:min(maxIgnored, len(unknown))] {
		warnings = append(warnings, fmt.Sprintf("The field %.80s is unknown and was ignored.", path))
	}
	return warnings, nil
}
