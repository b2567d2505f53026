package iot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
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

// DeviceTypes lists the types.
func DeviceTypes() []DeviceType { return []DeviceType{Bluetooth, LoRaWAN, Serial, Other} }

// Device is a device that sends frames.
type Device struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Identifier string     `json:"identifier"` // normalized by NormalizeIdentifier
	Comment    string     `json:"comment,omitempty"`
	Longitude  *float64   `json:"longitude,omitempty"` // degrees
	Latitude   *float64   `json:"latitude,omitempty"`  // degrees
	Altitude   *float64   `json:"altitude,omitempty"`  // metres
	Type       DeviceType `json:"type"`
	DecoderID  string     `json:"decoder_id,omitempty"`
	GatewayID  string     `json:"gateway_id,omitempty"`
	LocationID string     `json:"location_id,omitempty"`
	// FrameLogging means that the device's raw frames are stored.
	FrameLogging bool      `json:"frame_logging,omitempty"`
	Parameters   string    `json:"parameters,omitempty"` // a JSON document for the decoder
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
	// LastSeen is the time at which the network last received a frame of the device, or zero. It is
	// stored separately.
	LastSeen time.Time `json:"-"`
}

// NormalizeIdentifier converts devEUIs and MAC addresses to lower case without separators. It removes
// white space around other identifiers. unique reports whether only one account can have a device
// with the identifier.
func NormalizeIdentifier(s string) (identifier string, unique bool) {
	if eui, ok := decoders.NormalizeDevEUI(s); ok {
		return eui, true
	}
	if mac, ok := normalizeMAC(s); ok {
		return mac, true
	}
	return strings.TrimSpace(s), false
}

// normalizeMAC converts a MAC address to 12 lower-case hex digits.
func normalizeMAC(s string) (string, bool) { return decoders.HexDigits(s, 12) }

// isOneLine reports whether a text is UTF-8 without control characters.
func isOneLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// Location is a place of an account with devices.
type Location struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Imported bool   `json:"imported,omitempty"` // location of devices that frames create
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

// MeasuresNumber reports whether the readings of the type are numbers: the type has units.
func (t SensorType) MeasuresNumber() bool { return t.MetricUnits != "" || t.ImperialUnits != "" }

// Decoder converts the frames of a kind of device to readings.
type Decoder struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	Description   string     `json:"description,omitempty"`
	Type          DeviceType `json:"type"`
	Codec         string     `json:"codec"` // name in package decoders/catalog
	Source        string     `json:"source,omitempty"`
	UseRawPayload bool       `json:"use_raw_payload,omitempty"`
	// Fields of LoRaWAN decoders. They are stored but not used.
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

// Sensor is a series of a device: stored value = decoded value × Slope + Offset.
type Sensor struct {
	ID            string  `json:"id"` // made by SensorID
	DeviceID      string  `json:"device_id"`
	Key           string  `json:"key"`
	Name          string  `json:"name"`
	Slope         float64 `json:"slope"`
	Offset        float64 `json:"offset"`
	RetentionDays int     `json:"retention_days,omitempty"` // 0 means no limit
	SensorTypeID  string  `json:"sensor_type_id"`
	// Former has the former types of the sensor. Older readings are stored under them.
	Former    []string  `json:"former_types,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// SensorID returns the ID of a device's sensor: "<device id>.<hash of the key>". Gateways that add the
// same sensor concurrently give it the same ID.
func SensorID(deviceID, key string) string {
	sum := sha256.Sum256([]byte(key))
	return deviceID + "." + hex.EncodeToString(sum[:6])
}

func deviceOf(sensorID string) string {
	device, _, _ := strings.Cut(sensorID, ".")
	return device
}

// DeviceWithSensors is a device with its sensors.
type DeviceWithSensors struct {
	Device  Device
	Sensors []Sensor
}

const deviceTable db.Documents[Device] = "device"

// CreateDevice saves a device and its sensors. It returns relay.KindConflict if this account has a
// device with the identifier or another account has claimed it, and relay.KindInvalid if the decoder
// is missing. The version does not change, because gateways do not cache that a device is
// missing.
func (s *Store) CreateDevice(ctx context.Context, acct relay.AccountID, d Device, sensors []Sensor) error {
	return s.CreateDevices(ctx, acct, []DeviceWithSensors{{Device: d, Sensors: sensors}})
}

// CreateDevices saves all devices with their sensors, or none. It returns the errors of
// CreateDevice.
func (s *Store) CreateDevices(ctx context.Context, acct relay.AccountID, devices []DeviceWithSensors) error {
	// If another account has the identifier, the statement changes no row but locks it, so that
	// the transaction waits for a concurrent deletion of the device that has the claim.
	const claim = `
		INSERT INTO device_claim (identifier, account)
		VALUES ($1, $2)
		ON CONFLICT (identifier) DO UPDATE
		SET account = excluded.account
		WHERE device_claim.account = excluded.account`
	const insert = `
		INSERT INTO device (account, id, identifier, created, doc)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT DO NOTHING`

	decoderIDs := make([]string, len(devices))
	for i := range devices {
		decoderIDs[i] = devices[i].Device.DecoderID
	}
	return s.db.Write(ctx, "devices", func(ctx context.Context, tx *db.Tx) error {
		if err := lockDecoders(ctx, tx, acct, decoderIDs); err != nil {
			return err
		}
		for _, known := range devices {
			d := known.Device
			claimed := relay.Errorf(relay.KindConflict, "device %s has already been claimed", d.Identifier)
			var statements []db.Statement
			if _, unique := NormalizeIdentifier(d.Identifier); unique {
				statements = append(statements, db.Do(claim, d.Identifier, acct).Or(claimed))
			}
			statements = append(statements,
				db.Do(insert, acct, d.ID, d.Identifier, db.Nanos(d.CreatedAt), db.JSON(d)).Or(claimed),
				db.Do(insertSensors, acct, d.ID, sensorRows(known.Sensors)))
			statements = append(statements, s.onDevice(tx, acct, d.ID, DeviceCreated)...)
			if err := tx.RunAll(ctx, "device "+d.ID, statements...); err != nil {
				return err
			}
		}
		return nil
	})
}

// ChangeDevice calls change with a device and saves the result, like ChangeDecoder. change must not
// change the identifier. It returns relay.KindInvalid if the device's new decoder is
// missing.
func (s *Store) ChangeDevice(ctx context.Context, acct relay.AccountID, id string, change func(*Device) error) (Device, error) {
	label := "device " + id
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (Device, error) {
		oldDecoderID := ""
		device, changed, err := deviceTable.Change(ctx, tx, acct, id, func(d *Device) error {
			oldDecoderID = d.DecoderID
			return change(d)
		})
		if err != nil || !changed {
			return device, err
		}
		if device.DecoderID != oldDecoderID {
			if err := lockDecoders(ctx, tx, acct, []string{device.DecoderID}); err != nil {
				return device, err
			}
		}
		return device, tx.RunAll(ctx, label, append(s.onDevice(tx, acct, id, DeviceChanged), db.Bump(versionOf(acct)))...)
	})
}

// DeleteDevice deletes a device with its sensors, event markers and raw frames, and releases its
// identifier. Batches in progress do not restore it.
func (s *Store) DeleteDevice(ctx context.Context, acct relay.AccountID, id string) error {
	label := "device " + id
	return s.write(ctx, label, versionOf(acct), func(ctx context.Context, tx *db.Tx) error {
		identifier, err := db.Value[string](ctx, tx, label, "SELECT identifier FROM device WHERE account = $1 AND id = $2", acct, id)
		if err != nil {
			return err
		}
		return tx.RunAll(ctx, label, append([]db.Statement{
			db.Do("DELETE FROM device_claim WHERE identifier = $1 AND account = $2", identifier, acct),
			// Another gateway may have deleted the device since its identifier was read.
			db.Do("DELETE FROM device WHERE account = $1 AND id = $2", acct, id).Or(db.NotFound(label)),
			db.Do("DELETE FROM sensor WHERE account = $1 AND device = $2", acct, id),
			db.Do("DELETE FROM marker WHERE account = $1 AND device = $2", acct, id),
			db.Do("DELETE FROM raw_frame WHERE account = $1 AND device = $2", acct, id),
		}, s.onDevice(tx, acct, id, DeviceDeleted)...)...)
	})
}

// lockDevice locks a device, so that it cannot be deleted before the transaction ends. It returns
// relay.KindNotFound if there is no such device.
func lockDevice(ctx context.Context, tx *db.Tx, acct relay.AccountID, id string) error {
	_, err := db.Value[string](ctx, tx, "device "+id, "SELECT id FROM device WHERE account = $1 AND id = $2 {for update}", acct, id)
	return err
}

// Device loads a device.
func (s *Store) Device(ctx context.Context, acct relay.AccountID, id string) (Device, error) {
	return deviceTable.Get(ctx, s.db, acct, id)
}

// DeviceByIdentifier loads a device by its normalized identifier.
func (s *Store) DeviceByIdentifier(ctx context.Context, acct relay.AccountID, identifier string) (Device, error) {
	const query = "SELECT doc FROM device WHERE account = $1 AND identifier = $2"
	return db.One(ctx, s.db, "device "+identifier, query, db.Doc[Device], acct, identifier)
}

// Devices lists an account's devices in order of creation.
func (s *Store) Devices(ctx context.Context, acct relay.AccountID) ([]Device, error) {
	const query = "SELECT doc FROM device WHERE account = $1 ORDER BY created, id"
	return db.List(ctx, s.db, "devices", query, db.Doc[Device], acct)
}

// DevicesByID returns the devices with the given IDs, in any order. It omits missing ones.
func (s *Store) DevicesByID(ctx context.Context, acct relay.AccountID, ids []string) ([]Device, error) {
	const query = `
		SELECT device.doc
		FROM batch
		JOIN device ON device.account = batch.account AND device.id = batch.id`
	return db.List(ctx, s.db, "devices", query, db.Doc[Device], db.AccountColumn(acct, "id", ids))
}

// CountDevices counts an account's devices.
func (s *Store) CountDevices(ctx context.Context, acct relay.AccountID) (int, error) {
	return db.Value[int](ctx, s.db, "devices", "SELECT count(*) FROM device WHERE account = $1", acct)
}
