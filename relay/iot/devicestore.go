package iot

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

const deviceTable db.Documents[Device] = "device"

// firstWatch is after how long a new device is looked for: no rule takes it for
// silent earlier.
const firstWatch = time.Minute

// CreateDevice saves a device and its sensors. It counts no version up: no
// gateway caches that a device is missing.
func (s *Store) CreateDevice(ctx context.Context, acct relay.AccountID, d Device, sensors []Sensor) error {
	return s.CreateDevices(ctx, acct, []Known{{Device: d, Sensors: sensors}})
}

// CreateDevices saves devices and their sensors in one transaction.
func (s *Store) CreateDevices(ctx context.Context, acct relay.AccountID, all []Known) error {
	return s.db.Write(ctx, "devices", func(ctx context.Context, tx *db.Tx) error {
		for _, k := range all {
			if err := create(ctx, tx, acct, k.Device, k.Sensors); err != nil {
				return err
			}
		}
		return nil
	})
}

func create(ctx context.Context, tx *db.Tx, acct relay.AccountID, d Device, sensors []Sensor) error {
	claimed := relay.Errorf(relay.KindConflict, "device %s has already been claimed", d.Identifier)
	var all []db.Statement
	if _, unique := NormalizeIdentifier(d.Identifier); unique {
		// This changes no row if another account has the identifier. The row is locked in any case,
		// so that a deletion of the device that had the claim is waited for.
		claim := db.Upsert("device_claim", "identifier", "account") + " WHERE device_claim.account = excluded.account"
		all = append(all, db.Do(claim, d.Identifier, acct).Or(claimed))
	}
	// Rules look for the silence of a new device, if the account has such rules.
	return tx.RunAll(ctx, "device "+d.ID, append(all, db.Do(`
INSERT INTO device (account, id, identifier, created, doc) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING`, acct, d.ID, d.Identifier, db.Nanos(d.CreatedAt), db.JSON(d)).Or(claimed),
		db.Do(addSensors, acct, d.ID, sensorRows(sensors)), db.Do(`
INSERT INTO rule_watch (account, device, due)
SELECT CAST($1 AS BIGINT), $2, CAST($3 AS BIGINT) WHERE EXISTS (SELECT 1 FROM rule WHERE account = $4 AND silent = 1)
ON CONFLICT (account, device) DO NOTHING`, acct, d.ID, tx.Now().Add(firstWatch), acct))...)
}

// ChangeDevice saves what change makes of a device; its identifier never
// changes.
func (s *Store) ChangeDevice(ctx context.Context, acct relay.AccountID, id string, edit func(*Device) error) (Device, error) {
	noun := "device " + id
	return db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) (Device, error) {
		out, changed, err := deviceTable.Change(ctx, tx, acct, id, edit)
		if err != nil || !changed {
			return out, err
		}
		// Rules look at once for the silence of a device that has become another one.
		return out, tx.RunAll(ctx, noun, db.Do("UPDATE rule_watch SET due = $1 WHERE account = $2 AND device = $3", tx.Now(), acct, id),
			db.Bump(versionOf(acct)))
	})
}

// DeleteDevice deletes a device with its sensors, event markers and raw frames,
// clears its alarms, and lets go of its identifier.
func (s *Store) DeleteDevice(ctx context.Context, acct relay.AccountID, id string) error {
	noun := "device " + id
	return s.write(ctx, noun, versionOf(acct), func(ctx context.Context, tx *db.Tx) error {
		identifier, err := db.Value[string](ctx, tx, noun, "SELECT identifier FROM device WHERE account = $1 AND id = $2", acct, id)
		if err != nil {
			return err
		}
		// Another gateway may have deleted it since it was read.
		all := []db.Statement{
			db.Do("DELETE FROM device_claim WHERE identifier = $1 AND account = $2", identifier, acct),
			db.Do("DELETE FROM device WHERE account = $1 AND id = $2", acct, id).Or(db.NotFound(noun)),
		}
		for _, table := range []string{"sensor", "marker", "raw_frame", "rule_state", "rule_watch"} {
			all = append(all, db.Do("DELETE FROM "+table+" WHERE account = $1 AND device = $2", acct, id))
		}
		return tx.RunAll(ctx, noun, append(all, db.Do(`
UPDATE alarm SET state = 'cleared', cleared = {greatest}(raised, $1) WHERE account = $2 AND device = $3 AND state = 'raised'`, db.Nanos(tx.Now()), acct, id))...)
	})
}

func claimFields(c *Claim) []any { return []any{&c.Identifier, &c.Account, &c.DeviceID} }

// Claims lists the claims of all accounts whose identifier begins with a prefix. Identifiers
// have only hexadecimal digits, before which "g" does not stand in any collation.
func (s *Store) Claims(ctx context.Context, prefix, after string, limit int) ([]Claim, error) {
	return db.List(ctx, s.db, "claims", `
SELECT device_claim.identifier, device_claim.account, device.id
FROM device_claim
JOIN device ON device.account = device_claim.account AND device.identifier = device_claim.identifier
WHERE device_claim.identifier >= $1
  AND device_claim.identifier < $2
  AND device_claim.identifier > $3
ORDER BY device_claim.identifier
LIMIT $4`, claimFields, prefix, prefix+"g", after, limit)
}

// ReleaseClaim deletes the claim of an identifier and leaves its device.
func (s *Store) ReleaseClaim(ctx context.Context, identifier string) (Claim, error) {
	noun := "claim " + identifier
	return db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) (Claim, error) {
		claim, err := db.One(ctx, tx, noun, `
SELECT device_claim.identifier, device_claim.account, device.id
FROM device_claim
JOIN device ON device.account = device_claim.account AND device.identifier = device_claim.identifier
WHERE device_claim.identifier = $1`, claimFields, identifier)
		if err != nil {
			return claim, err
		}
		// Another gateway may have released it since it was read.
		return claim, tx.RunAll(ctx, noun, db.Do(
			"DELETE FROM device_claim WHERE identifier = $1 AND account = $2", identifier, claim.Account).Or(db.NotFound(noun)))
	})
}

// lock keeps a device from being deleted until the transaction ends. It returns
// relay.KindNotFound if there is no such device.
func lock(ctx context.Context, tx *db.Tx, acct relay.AccountID, id string) error {
	_, err := db.Value[string](ctx, tx, "device "+id, "SELECT id FROM device WHERE account = $1 AND id = $2 {for update}", acct, id)
	return err
}

// Device loads a device.
func (s *Store) Device(ctx context.Context, acct relay.AccountID, id string) (Device, error) {
	return deviceTable.Get(ctx, s.db, acct, id)
}

// DeviceByIdentifier loads a device by its normalised identifier.
func (s *Store) DeviceByIdentifier(ctx context.Context, acct relay.AccountID, identifier string) (Device, error) {
	return db.One(ctx, s.db, "device "+identifier, `
SELECT doc FROM device WHERE account = $1 AND identifier = $2`, db.Doc[Device], acct, identifier)
}

// Devices lists an account's devices in order of creation.
func (s *Store) Devices(ctx context.Context, acct relay.AccountID) ([]Device, error) {
	return db.List(ctx, s.db, "devices", "SELECT doc FROM device WHERE account = $1 ORDER BY created, id", db.Doc[Device], acct)
}

// DevicesByID returns those of the devices that are there.
func (s *Store) DevicesByID(ctx context.Context, acct relay.AccountID, ids []string) ([]Device, error) {
	return db.List(ctx, s.db, "devices", `
SELECT device.doc FROM batch JOIN device ON device.account = batch.account AND device.id = batch.id`, db.Doc[Device],
		db.AccountColumn(acct, "id", ids))
}

// CountDevices counts an account's devices.
func (s *Store) CountDevices(ctx context.Context, acct relay.AccountID) (int, error) {
	return db.Value[int](ctx, s.db, "devices", "SELECT count(*) FROM device WHERE account = $1", acct)
}

// after selects what comes after a record in the order of account and id, of one or all
// accounts.
func after(acct relay.AccountID, last relay.AccountID, id string) (w db.Where) {
	w.AndSet("account = ?", acct)
	w.And("(account, id) > (?, ?)", last, id)
	return w
}

// ScanDevices returns devices after one, by account and id.
func (s *Store) ScanDevices(ctx context.Context, acct relay.AccountID, from Ref, alarmed bool, limit int) ([]FoundDevice, error) {
	w := after(acct, from.Account, from.ID)
	if alarmed {
		w.And("EXISTS (SELECT 1 FROM alarm WHERE alarm.account = device.account AND alarm.device = device.id AND alarm.state = 'raised')")
	}
	return db.Page(ctx, s.db, "devices", "SELECT account, doc FROM device", &w, "account, id", limit, func(d *FoundDevice) []any {
		return []any{&d.Account, db.JSON(&d.Device)}
	})
}

// ScanDecoders returns decoders after one, by account and id.
func (s *Store) ScanDecoders(ctx context.Context, acct relay.AccountID, from Ref, limit int) ([]FoundDecoder, error) {
	w := after(acct, from.Account, from.ID)
	return db.Page(ctx, s.db, "decoders", "SELECT account, doc FROM decoder", &w, "account, id", limit, func(d *FoundDecoder) []any {
		return []any{&d.Account, db.JSON(&d.Decoder)}
	})
}

// raisedAlarms has a subquery for each device. In a join, PostgreSQL reads all raised alarms
// first if it believes that there are none.
const raisedAlarms = `
SELECT n, (
  SELECT count(*) FROM alarm WHERE alarm.account = batch.account AND alarm.device = batch.device AND alarm.state = 'raised')
FROM batch`

// RaisedAlarms counts the raised alarms of devices.
func (s *Store) RaisedAlarms(ctx context.Context, devices []Ref) (map[Ref]int, error) {
	batch := db.BatchOf("account, device", devices, func(d *Ref) []any { return []any{d.Account, d.ID} })
	counts, err := db.Map[int, int](ctx, s.db, "alarms of devices", raisedAlarms, batch)
	out := make(map[Ref]int, len(counts))
	for n, count := range counts {
		if count > 0 {
			out[devices[n-1]] = count
		}
	}
	return out, err
}
