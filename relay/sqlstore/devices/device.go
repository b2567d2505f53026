package devices

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/sqlstore"
)

func documents() sqlstore.Documents[iot.Device] {
	return sqlstore.Documents[iot.Device]{Noun: "device", Table: "device"}
}

// claimIdentifier changes no row if another account has the identifier. The row
// is locked in any case, so that a deletion of the device that had the claim is
// waited for.
const claimIdentifier = `
INSERT INTO device_claim (identifier, account) VALUES ($1, $2)
ON CONFLICT (identifier) DO UPDATE SET account = excluded.account WHERE device_claim.account = excluded.account`

const createDevice = `
INSERT INTO device (account, id, identifier, created, doc) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING`

// CreateDevice saves a device and its sensors. It counts no version up: no
// gateway caches that a device is missing.
func (s *Store) CreateDevice(ctx context.Context, acct account.ID, d iot.Device, sensors []iot.Sensor) error {
	noun := "device " + d.ID
	doc, err := sqlstore.Encode(d)
	if err != nil {
		return sqlstore.Wrap(noun, err)
	}
	rows, err := sensorRows(sensors)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		if _, unique := iot.NormalizeIdentifier(d.Identifier); unique {
			if n, err := tx.Exec(ctx, noun, claimIdentifier, d.Identifier, int64(acct)); err != nil || n == 0 {
				return conflict(d.Identifier, err)
			}
		}
		if n, err := tx.Exec(ctx, noun, createDevice, int64(acct), d.ID, d.Identifier, nanos(d.CreatedAt), doc); err != nil || n == 0 {
			return conflict(d.Identifier, err)
		}
		_, err := tx.Exec(ctx, noun, addSensors, int64(acct), d.ID, rows)
		return err
	})
}

// conflict is the error of a creation that failed or changed nothing.
func conflict(identifier string, err error) error {
	if err != nil {
		return err
	}
	return relay.Errorf(relay.KindConflict, "device %s has already been claimed", identifier)
}

// ChangeDevice saves what change makes of a device; its identifier never
// changes.
func (s *Store) ChangeDevice(ctx context.Context, acct account.ID, id string, edit func(*iot.Device) error) (iot.Device, error) {
	return change(ctx, s, documents(), acct, id, edit)
}

// The statements that delete a device, in the order in which they run.
const (
	identifierOf  = `SELECT identifier FROM device WHERE account = $1 AND id = $2`
	releaseClaim  = `DELETE FROM device_claim WHERE identifier = $1 AND account = $2`
	deleteDevice  = `DELETE FROM device WHERE account = $1 AND id = $2`
	deleteSensors = `DELETE FROM sensor WHERE account = $1 AND device = $2`
	deleteMarkers = `DELETE FROM marker WHERE account = $1 AND device = $2`
	deleteFrames  = `DELETE FROM raw_frame WHERE account = $1 AND device = $2`
)

// DeleteDevice deletes a device with its sensors, event markers and raw frames,
// and lets go of its identifier.
func (s *Store) DeleteDevice(ctx context.Context, acct account.ID, id string) error {
	noun := "device " + id
	return s.write(ctx, noun, versionOf(acct), func(ctx context.Context, tx *sqlstore.Tx) error {
		identifier, err := sqlstore.Value[string](ctx, tx, noun, identifierOf, int64(acct), id)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, noun, releaseClaim, identifier, int64(acct)); err != nil {
			return err
		}
		// Another gateway may have deleted it since it was read.
		if n, err := tx.Exec(ctx, noun, deleteDevice, int64(acct), id); err != nil || n == 0 {
			return missing(id, err)
		}
		for _, rest := range []string{deleteSensors, deleteMarkers, deleteFrames} {
			if _, err := tx.Exec(ctx, noun, rest, int64(acct), id); err != nil {
				return err
			}
		}
		return nil
	})
}

func missing(id string, err error) error {
	if err != nil {
		return err
	}
	return relay.Errorf(relay.KindNotFound, "device %s: not found", id)
}

const lockDevice = `SELECT id FROM device WHERE account = $1 AND id = $2 {for update}`

// lock keeps a device from being deleted until the transaction ends. It returns
// relay.KindNotFound if there is no such device.
func lock(ctx context.Context, tx *sqlstore.Tx, acct account.ID, id string) error {
	_, err := sqlstore.Value[string](ctx, tx, "device "+id, lockDevice, int64(acct), id)
	return err
}

// Device loads a device.
func (s *Store) Device(ctx context.Context, acct account.ID, id string) (iot.Device, error) {
	return documents().Get(ctx, s.db, acct, id)
}

const deviceByIdentifier = `SELECT doc FROM device WHERE account = $1 AND identifier = $2`

// DeviceByIdentifier loads a device by its normalised identifier.
func (s *Store) DeviceByIdentifier(ctx context.Context, acct account.ID, identifier string) (iot.Device, error) {
	return sqlstore.One(ctx, s.db, "device "+identifier, deviceByIdentifier, sqlstore.ScanDoc[iot.Device], int64(acct), identifier)
}

const listDevices = `SELECT doc FROM device WHERE account = $1 ORDER BY created, id`

// Devices lists an account's devices in order of creation.
func (s *Store) Devices(ctx context.Context, acct account.ID) ([]iot.Device, error) {
	return sqlstore.List(ctx, s.db, "devices", listDevices, sqlstore.ScanDoc[iot.Device], int64(acct))
}

const countDevices = `SELECT count(*) FROM device WHERE account = $1`

// CountDevices counts an account's devices.
func (s *Store) CountDevices(ctx context.Context, acct account.ID) (int, error) {
	return sqlstore.Value[int](ctx, s.db, "devices", countDevices, int64(acct))
}
