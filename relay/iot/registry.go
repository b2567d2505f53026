package iot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/relay"
)

// NewDevice is a request to create a device over REST.
type NewDevice struct {
	// Type determines the form of the identifier: a devEUI for LoRaWAN, a MAC address for
	// Bluetooth, else one line of text.
	Type       DeviceType
	Identifier string
	LocationID string
	DeviceChange
}

// DeviceChange has the changeable fields of a device. Nil fields do not change. Numbers are texts. An
// empty text removes the value.
type DeviceChange struct {
	Name, Comment       *string
	Longitude, Latitude *string // degrees, WGS 84
	Altitude            *string // metres
	DecoderID           *string
	LocationID          *string // used by ChangeDevice only
	FrameLogging        *string // enabled or disabled
	ParserParams        *string // a JSON object
}

// maxParams is the largest length of a device's parser parameters, in bytes of JSON.
const maxParams = 16 << 10

// CreateDevice creates a device with its sensors and returns it.
//
// It returns relay.KindInvalid if a field is missing or invalid or the account would have too many
// series, and relay.KindConflict if this account or another one already has the identifier.
func (s *Service) CreateDevice(ctx context.Context, acct relay.AccountID, n NewDevice) (Device, error) {
	now := s.options.Now().UTC()
	d := Device{ID: s.options.NewID(), Type: n.Type, LocationID: n.LocationID, CreatedAt: now, UpdatedAt: now}
	p := relay.Problems{}
	d.Identifier = n.checkIdentifier(p)
	p.Require("location_id", n.LocationID)
	if n.Name == nil {
		p.Require("name", "")
	}
	n.apply(p, &d)
	p.Require("decoder_id", d.DecoderID)
	if d.LocationID != "" {
		if err := s.checkLocation(ctx, acct, p, d.LocationID); err != nil {
			return d, err
		}
	}
	decoder, err := s.selectedDecoder(ctx, acct, p, d.DecoderID)
	if err != nil {
		return d, err
	}
	sensors := s.sensorsFor(d, &compiledDecoder{Decoder: decoder}, nil)
	hasRoom, err := s.hasRoomForSensors(ctx, acct, len(sensors))
	if err != nil {
		return d, err
	}
	if !hasRoom {
		p.Add("decoder_id", "The decoder adds too many sensors: "+s.seriesLimitReason()+".")
	}
	if err := p.Err(); err != nil {
		return d, err
	}
	return d, s.store.CreateDevice(ctx, acct, d, sensors)
}

func (n *NewDevice) checkIdentifier(p relay.Problems) string {
	field, form := "identifier", ""
	identifier, _ := NormalizeIdentifier(n.Identifier)
	eui, isEUI := decoders.NormalizeDevEUI(n.Identifier)
	switch n.Type {
	case LoRaWAN:
		identifier = eui
		if !isEUI {
			form = "a device EUI, 16 hexadecimal digits"
		}
	case Bluetooth:
		field = "mac_address"
		if mac, ok := normalizeMAC(n.Identifier); !ok {
			form = "a MAC address, 12 hexadecimal digits"
		} else {
			identifier = mac
		}
	default:
		if !isOneLine(identifier) {
			form = "one line of text"
		}
		p.Limit(field, identifier, maxIdentifier)
	}
	if p.Require(field, n.Identifier); len(p[field]) == 0 && form != "" {
		p.AddNamed(field, "The %s must be "+form+".")
	}
	return identifier
}

// Locations lists the locations of an account.
func (s *Service) Locations(ctx context.Context, acct relay.AccountID) ([]Location, error) {
	return s.store.Locations(ctx, acct)
}

// CreateLocation saves a new location and returns it with its ID. It returns relay.KindInvalid if the
// name is missing or invalid, or if both the location and a stored location of the account are
// Imported.
func (s *Service) CreateLocation(ctx context.Context, acct relay.AccountID, l Location) (Location, error) {
	p := relay.Problems{}
	p.Require("name", l.Name)
	p.Limit("name", l.Name, maxName)
	if !isOneLine(l.Name) {
		p.Add("name", "The name must be one line of text.")
	}
	if err := p.Err(); err != nil {
		return l, err
	}
	l.ID = s.options.NewID()
	return l, s.store.CreateLocation(ctx, acct, l)
}

// AddSensorType adds a sensor type for all accounts. It returns relay.KindConflict if the ID is
// taken.
func (s *Service) AddSensorType(ctx context.Context, t SensorType) error {
	p := relay.Problems{}
	for name, text := range map[string]string{"id": t.ID, "name": t.Name} {
		p.Require(name, text)
		p.Limit(name, text, maxName)
	}
	for name, text := range map[string]string{"id": t.ID, "name": t.Name, "metric_units": t.MetricUnits, "imperial_units": t.ImperialUnits} {
		if !isOneLine(text) {
			p.Add(name, "The "+name+" must be one line of text.")
		}
	}
	if t.ImperialSlope < 0 {
		p.Add("imperial_slope", "The imperial_slope must be a number above 0.")
	}
	if err := p.Err(); err != nil {
		return err
	}
	types, err := s.SensorTypes(ctx)
	if err != nil {
		return err
	}
	if _, exists := types[t.ID]; exists {
		return relay.Errorf(relay.KindConflict, "The sensor type %s already exists.", t.ID)
	}
	return s.store.PutSensorType(ctx, t)
}

func (s *Service) checkLocation(ctx context.Context, acct relay.AccountID, p relay.Problems, id string) error {
	locations, err := s.store.Locations(ctx, acct)
	if err != nil {
		return fmt.Errorf("iot: locations: %w", err)
	}
	if !slices.ContainsFunc(locations, func(l Location) bool { return l.ID == id }) {
		p.Add("location_id", "The selected location id is invalid.")
	}
	return nil
}

func (s *Service) selectedDecoder(ctx context.Context, acct relay.AccountID, p relay.Problems, id string) (Decoder, error) {
	if id == "" {
		return Decoder{}, nil
	}
	decoder, err := s.store.Decoder(ctx, acct, id)
	if relay.KindOf(err) == relay.KindNotFound {
		p.Add("decoder_id", "The selected decoder id is invalid.")
		return decoder, nil
	}
	return decoder, err
}

// ChangeDevice applies a change, which takes effect with the device's next frame.
//
// It returns relay.KindInvalid for an invalid field, and relay.KindNotFound for an unknown device.
func (s *Service) ChangeDevice(ctx context.Context, acct relay.AccountID, id string, c DeviceChange) (Device, error) {
	p := relay.Problems{}
	c.apply(p, &Device{})
	if c.DecoderID != nil {
		if _, err := s.selectedDecoder(ctx, acct, p, *c.DecoderID); err != nil {
			return Device{}, err
		}
	}
	if c.LocationID != nil {
		if err := s.checkLocation(ctx, acct, p, *c.LocationID); err != nil {
			return Device{}, err
		}
	}
	if err := p.Err(); err != nil {
		return Device{}, err
	}
	d, err := s.store.ChangeDevice(ctx, acct, id, func(d *Device) error {
		c.apply(relay.Problems{}, d)
		d.UpdatedAt = s.options.Now().UTC()
		return nil
	})
	return s.withLastSeen(ctx, acct, d, err)
}

// DeleteDevice deletes a device with its sensors, latest values, event markers and raw frames, and
// releases its identifier. Its readings stay in the reading store until they are older than the
// retention_days of their sensor.
//
// It returns relay.KindNotFound if the account has no such device.
func (s *Service) DeleteDevice(ctx context.Context, acct relay.AccountID, id string) error {
	sensors, err := s.store.Sensors(ctx, acct, id)
	if err != nil {
		return err
	}
	// Save the retention of the sensors first, because Expire needs it after the deletion.
	var retired []RetiredSensor
	for _, sensor := range sensors {
		if sensor.RetentionDays > 0 {
			retired = append(retired, RetiredSensor{SensorID: sensor.ID, RetentionDays: sensor.RetentionDays, DeletedAt: s.options.Now().UTC()})
		}
	}
	if len(retired) > 0 {
		if err := s.store.Retire(ctx, acct, retired); err != nil {
			return fmt.Errorf("iot: device %s: save its retention: %w", id, err)
		}
	}
	if err := s.store.DeleteDevice(ctx, acct, id); err != nil {
		return err
	}
	return s.optional.change(ctx, func() error { return s.cache.ForgetDevice(ctx, acct, id) })
}

func (c DeviceChange) apply(p relay.Problems, d *Device) {
	if c.Name != nil {
		p.Require("name", *c.Name)
		p.Limit("name", *c.Name, maxName)
	}
	if c.Comment != nil {
		p.Limit("comment", *c.Comment, maxComment)
	}
	relay.Assign(&d.Name, c.Name)
	relay.Assign(&d.Comment, c.Comment)
	relay.Assign(&d.DecoderID, c.DecoderID)
	relay.Assign(&d.LocationID, c.LocationID)
	assignNumber(p, "longitude", c.Longitude, 180, &d.Longitude)
	assignNumber(p, "latitude", c.Latitude, 90, &d.Latitude)
	assignNumber(p, "altitude", c.Altitude, 1e6, &d.Altitude)
	if c.FrameLogging != nil {
		d.FrameLogging = *c.FrameLogging == "enabled"
		if !d.FrameLogging && *c.FrameLogging != "disabled" {
			p.Add("frame_logging", "The selected frame logging is invalid.")
		}
	}
	if c.ParserParams != nil {
		d.Parameters = ""
		var object map[string]any
		if text := strings.TrimSpace(*c.ParserParams); text == "" {
		} else if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
			p.Add("parser_params", "The parser params must be a JSON object.")
		} else {
			var compact bytes.Buffer
			_ = json.Compact(&compact, []byte(text)) // text is valid JSON
			d.Parameters = compact.String()
			p.Limit("parser_params", d.Parameters, maxParams)
		}
	}
}

// assignNumber sets value to a decimal number between -limit and limit, or to nil for an empty
// text. A nil text changes nothing.
func assignNumber(p relay.Problems, field string, text *string, limit float64, value **float64) {
	if text == nil {
		return
	}
	*value = nil
	if strings.TrimSpace(*text) == "" {
		return
	}
	v, ok := decimal.Float(strings.TrimSpace(*text))
	switch {
	case !ok:
		p.Add(field, "The "+field+" must be a number.")
	case math.Abs(v) > limit:
		p.Add(field, fmt.Sprintf("The %s must be between -%.0f and %.0f.", field, limit, limit))
	default:
		*value = &v
	}
}
