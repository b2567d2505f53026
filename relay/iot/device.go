package iot

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders"
)

// DeviceType is a kind of device or decoder.
type DeviceType string

// The types of the specification.
const (
	Bluetooth DeviceType = "bluetooth"
	LoRaWAN   DeviceType = "lorawan"
	Serial    DeviceType = "serial"
	Other     DeviceType = "other"
)

// DeviceTypes lists them.
func DeviceTypes() []DeviceType { return []DeviceType{Bluetooth, LoRaWAN, Serial, Other} }

// Device is something that sends frames.
type Device struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Identifier string     `json:"identifier"` // as NormalizeIdentifier leaves it
	Comment    string     `json:"comment,omitempty"`
	Longitude  *float64   `json:"longitude,omitempty"` // degrees
	Latitude   *float64   `json:"latitude,omitempty"`  // degrees
	Altitude   *float64   `json:"altitude,omitempty"`  // metres
	Type       DeviceType `json:"type"`
	DecoderID  string     `json:"decoder_id,omitempty"`
	GatewayID  string     `json:"gateway_id,omitempty"`
	LocationID string     `json:"location_id,omitempty"`
	// FrameLogging keeps the device's raw frames readable over REST.
	FrameLogging bool      `json:"frame_logging,omitempty"`
	Parameters   string    `json:"parameters,omitempty"` // a JSON document for the decoder
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
	// LastSeen is when the network heard the device last, zero when it never has.
	// It is kept apart and looked up with the device.
	LastSeen time.Time `json:"-"`
}

// NormalizeIdentifier writes devEUIs and MAC addresses in lower case without
// separators; anything else only loses its blanks at the ends. unique says that
// the identifier belongs to one account in the whole gateway.
func NormalizeIdentifier(s string) (identifier string, unique bool) {
	if eui, ok := decoders.NormalizeDevEUI(s); ok {
		return eui, true
	}
	if mac, ok := normalizeMAC(s); ok {
		return mac, true
	}
	return strings.TrimSpace(s), false
}

// normalizeMAC gives a MAC address as 12 lower-case hex digits.
func normalizeMAC(s string) (string, bool) { return decoders.HexDigits(s, 12) }

// isOneLine reports whether a text is UTF-8 without control characters.
func isOneLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// Location is a place of an account that devices belong to.
type Location struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Imported bool   `json:"imported,omitempty"` // takes devices that import themselves
}

// SensorType is a quantity that sensors measure, with its units.
type SensorType struct {
	ID             string  `json:"id"`
	Name           string  `json:"name"`
	MetricUnits    string  `json:"metric_units,omitempty"`
	ImperialUnits  string  `json:"imperial_units,omitempty"`
	ImperialSlope  float64 `json:"imperial_slope,omitempty"`
	ImperialOffset float64 `json:"imperial_offset,omitempty"`
}

// MeasuresNumber reports whether the readings of the type are numbers: it has units.
func (t SensorType) MeasuresNumber() bool { return t.MetricUnits != "" || t.ImperialUnits != "" }

// Decoder converts the frames of a kind of device to readings.
type Decoder struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	Description   string     `json:"description,omitempty"`
	Type          DeviceType `json:"type"`
	Codec         string     `json:"codec"` // a name of decoders/catalog
	Source        string     `json:"source,omitempty"`
	UseRawPayload bool       `json:"use_raw_payload,omitempty"`
	// What LoRaWAN decoders are created with; kept, not used.
	MACVersion string `json:"lorawan_mac_version,omitempty"`
	Revision   string `json:"lorawan_revision,omitempty"`
	ClassB     bool   `json:"lora_class_b,omitempty"`
	ClassC     bool   `json:"lora_class_c,omitempty"`
	// Sensors maps keys of decoded values to sensor types, in order of creation.
	Sensors []Mapping `json:"sensors,omitempty"`
}

// Mapping is a key of a decoder's values with its sensor type.
type Mapping struct {
	SensorTypeID string `json:"sensor_type_id"`
	Key          string `json:"key"`
}

// Sensor is one series of a device: stored = decoded × Slope + Offset.
type Sensor struct {
	ID            string  `json:"id"` // as SensorID makes it
	DeviceID      string  `json:"device_id"`
	Key           string  `json:"key"`
	Name          string  `json:"name"`
	Slope         float64 `json:"slope"`
	Offset        float64 `json:"offset"`
	RetentionDays int     `json:"retention_days,omitempty"` // 0 = for good
	SensorTypeID  string  `json:"sensor_type_id"`
	// Former are the types that the sensor had before; readings of that time
	// are kept under them.
	Former    []string  `json:"former_types,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// SensorID names the sensor of a key of a device: "<device id>.<hash>". Two
// gateways that add the same sensor at once give it the same id.
func SensorID(deviceID, key string) string {
	sum := sha256.Sum256([]byte(key))
	return deviceID + "." + hex.EncodeToString(sum[:6])
}

// deviceOf returns the device id within a sensor id.
func deviceOf(sensorID string) string {
	device, _, _ := strings.Cut(sensorID, ".")
	return device
}

// Known is a device with its sensors.
type Known struct {
	Device  Device
	Sensors []Sensor
}
