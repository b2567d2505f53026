package devices

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/sqlstore"
)

const documents sqlstore.Documents[iot.Device] = "device"

// firstWatch is after how long a new device is looked for: no rule takes it for
// silent earlier.
const firstWatch = time.Minute

// CreateDevice saves a device and its sensors. It counts no version up: no
// gateway caches that a device is missing.
func (s *Store) CreateDevice(ctx context.Context, acct account.ID, d iot.Device, sensors []iot.Sensor) error {
	return s.CreateDevices(ctx, acct, []iot.Known{{Device: d, Sensors: sensors}})
}

// CreateDevices saves devices and their sensors in one transaction.
func (s *Store) CreateDevices(ctx context.Context, acct account.ID, all []iot.Known) error {
	return s.db.Write(ctx, "devices", func(ctx context.Context, tx *sqlstore.Tx) error {
		for _, k := range all {
			if err := create(ctx, tx, acct, k.Device, k.Sensors); err != nil {
				return err
			}
		}
		return nil
	})
}

func create(ctx context.Context, tx *sqlstore.Tx, acct account.ID, d iot.Device, sensors []iot.Sensor) error {
	claimed := relay.Errorf(relay.KindConflict, "device %s has already been claimed", d.Identifier)
	var all []sqlstore.Statement
	if _, unique := iot.NormalizeIdentifier(d.Identifier); unique {
		// This changes no row if another account has the identifier. The row is locked in any case,
		// so that a deletion of the device that had the claim is waited for.
		claim := sqlstore.Upsert("device_claim", "identifier", "account") + " WHERE device_claim.account = excluded.account"
		all = append(all, sqlstore.Do(claim, d.Identifier, acct).Or(claimed))
	}
	// Rules look for the silence of a new device, if the account has such rules.
	return tx.RunAll(ctx, "device "+d.ID, append(all, sqlstore.Do(`
INSERT INTO device (account, id, identifier, created, doc) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING`, acct, d.ID, d.Identifier, sqlstore.Nanos(d.CreatedAt), sqlstore.JSON(d)).Or(claimed),
		sqlstore.Do(addSensors, acct, d.ID, sensorRows(sensors)), sqlstore.Do(`
INSERT INTO rule_watch (account, device, due)
SELECT CAST($1 AS BIGINT), $2, CAST($3 AS BIGINT) WHERE EXISTS (SELECT 1 FROM rule WHERE account = $4 AND silent = 1)
ON CONFLICT (account, device) DO NOTHING`, acct, d.ID, tx.Now().Add(firstWatch), acct))...)
}

// ChangeDevice saves what change makes of a device; its identifier never
// changes.
func (s *Store) ChangeDevice(ctx context.Context, acct account.ID, id string, edit func(*iot.Device) error) (iot.Device, error) {
	noun := "device " + id
	return sqlstore.Transact(ctx, s.db, noun, func(ctx context.Context, tx *sqlstore.Tx) (iot.Device, error) {
		out, changed, err := documents.Change(ctx, tx, acct, id, edit)
		if err != nil || !changed {
			return out, err
		}
		// Rules look at once for the silence of a device that has become another one.
		return out, tx.RunAll(ctx, noun, sqlstore.Do("UPDATE rule_watch SET due = $1 WHERE account = $2 AND device = $3", tx.Now(), acct, id),
			sqlstore.Bump(versionOf(acct)))
	})
}

// DeleteDevice deletes a device with its sensors, event markers and raw frames,
// clears its alarms, and lets go of its identifier.
func (s *Store) DeleteDevice(ctx context.Context, acct account.ID, id string) error {
	noun := "device " + id
	return s.write(ctx, noun, versionOf(acct), func(ctx context.Context, tx *sqlstore.Tx) error {
		identifier, err := sqlstore.Value[string](ctx, tx, noun, "SELECT identifier FROM device WHERE account = $1 AND id = $2", acct, id)
		if err != nil {
			return err
		}
		// Another gateway may have deleted it since it was read.
		all := []sqlstore.Statement{
			sqlstore.Do("DELETE FROM device_claim WHERE identifier = $1 AND account = $2", identifier, acct),
			sqlstore.Do("DELETE FROM device WHERE account = $1 AND id = $2", acct, id).Or(sqlstore.NotFound(noun)),
		}
		for _, table := range []string{"sensor", "marker", "raw_frame", "rule_state", "rule_watch"} {
			all = append(all, sqlstore.Do("DELETE FROM "+table+" WHERE account = $1 AND device = $2", acct, id))
		}
		return tx.RunAll(ctx, noun, append(all, sqlstore.Do(`
UPDATE alarm SET state = 'cleared', cleared = {greatest}(raised, $1) WHERE account = $2 AND device = $3 AND state = 'raised'`, sqlstore.Nanos(tx.Now()), acct, id))...)
	})
}

func claimFields(c *iot.Claim) []any { return []any{&c.Identifier, &c.Account, &c.DeviceID} }

// Claims lists the claims of all accounts whose identifier begins with a prefix. Identifiers
// have only hexadecimal digits, before which "g" does not stand in any collation.
func (s *Store) Claims(ctx context.Context, prefix, after string, limit int) ([]iot.Claim, error) {
	return sqlstore.List(ctx, s.db, "claims", `
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
func (s *Store) ReleaseClaim(ctx context.Context, identifier string) (iot.Claim, error) {
	noun := "claim " + identifier
	return sqlstore.Transact(ctx, s.db, noun, func(ctx context.Context, tx *sqlstore.Tx) (iot.Claim, error) {
		claim, err := sqlstore.One(ctx, tx, noun, `
SELECT device_claim.identifier, device_claim.account, device.id
FROM device_claim
JOIN device ON device.account = device_claim.account AND device.identifier = device_claim.identifier
WHERE device_claim.identifier = $1`, claimFields, identifier)
		if err != nil {
			return claim, err
		}
		// Another gateway may have released it since it was read.
		return claim, tx.RunAll(ctx, noun, sqlstore.Do(
			"DELETE FROM device_claim WHERE identifier = $1 AND account = $2", identifier, claim.Account).Or(sqlstore.NotFound(noun)))
	})
}

// lock keeps a device from being deleted until the transaction ends. It returns
// relay.KindNotFound if there is no such device.
func lock(ctx context.Context, tx *sqlstore.Tx, acct account.ID, id string) error {
	_, err := sqlstore.Value[string](ctx, tx, "device "+id, "SELECT id FROM device WHERE account = $1 AND id = $2 {for update}", acct, id)
	return err
}

// Device loads a device.
func (s *Store) Device(ctx context.Context, acct account.ID, id string) (iot.Device, error) {
	return documents.Get(ctx, s.db, acct, id)
}

// DeviceByIdentifier loads a device by its normalised identifier.
func (s *Store) DeviceByIdentifier(ctx context.Context, acct account.ID, identifier string) (iot.Device, error) {
	return sqlstore.One(ctx, s.db, "device "+identifier, `
SELECT doc FROM device WHERE account = $1 AND identifier = $2`, sqlstore.Doc[iot.Device], acct, identifier)
}

// Devices lists an account's devices in order of creation.
func (s *Store) Devices(ctx context.Context, acct account.ID) ([]iot.Device, error) {
	return sqlstore.List(ctx, s.db, "devices", "SELECT doc FROM device WHERE account = $1 ORDER BY created, id", sqlstore.Doc[iot.Device], acct)
}

// DevicesByID returns those of the devices that are there.
func (s *Store) DevicesByID(ctx context.Context, acct account.ID, ids []string) ([]iot.Device, error) {
	return sqlstore.List(ctx, s.db, "devices", `
SELECT device.doc FROM batch JOIN device ON device.account = batch.account AND device.id = batch.id`, sqlstore.Doc[iot.Device],
		sqlstore.AccountColumn(acct, "id", ids))
}

// CountDevices counts an account's devices.
func (s *Store) CountDevices(ctx context.Context, acct account.ID) (int, error) {
	return sqlstore.Value[int](ctx, s.db, "devices", "SELECT count(*) FROM device WHERE account = $1", acct)
}

// after selects what comes after a record in the order of account and id, of one or all
// accounts.
func after(acct account.ID, last account.ID, id string) (w sqlstore.Where) {
	w.AndSet("account = ?", acct)
	w.And("(account, id) > (?, ?)", last, id)
	return w
}

// ScanDevices returns devices after one, by account and id.
func (s *Store) ScanDevices(ctx context.Context, acct account.ID, from iot.Ref, alarmed bool, limit int) ([]iot.FoundDevice, error) {
	w := after(acct, from.Account, from.ID)
	if alarmed {
		w.And("EXISTS (SELECT 1 FROM alarm WHERE alarm.account = device.account AND alarm.device = device.id AND alarm.state = 'raised')")
	}
	return sqlstore.Page(ctx, s.db, "devices", "SELECT account, doc FROM device", &w, "account, id", limit, func(d *iot.FoundDevice) []any {
		return []any{&d.Account, sqlstore.JSON(&d.Device)}
	})
}

// ScanDecoders returns decoders after one, by account and id.
func (s *Store) ScanDecoders(ctx context.Context, acct account.ID, from iot.Ref, limit int) ([]iot.FoundDecoder, error) {
	w := after(acct, from.Account, from.ID)
	return sqlstore.Page(ctx, s.db, "decoders", "SELECT account, doc FROM decoder", &w, "account, id", limit, func(d *iot.FoundDecoder) []any {
		return []any{&d.Account, sqlstore.JSON(&d.Decoder)}
	})
}

// raisedAlarms has a subquery for each device. In a join, PostgreSQL reads all raised alarms
// first if it believes that there are none.
const raisedAlarms = `
SELECT n, (
  SELECT count(*) FROM alarm WHERE alarm.account = batch.account AND alarm.device = batch.device AND alarm.state = 'raised')
FROM batch`

// RaisedAlarms counts the raised alarms of devices.
func (s *Store) RaisedAlarms(ctx context.Context, devices []iot.Ref) (map[iot.Ref]int, error) {
	batch := sqlstore.BatchOf("account, device", devices, func(d *iot.Ref) []any { return []any{d.Account, d.ID} })
	counts, err := sqlstore.Map[int, int](ctx, s.db, "alarms of devices", raisedAlarms, batch)
	out := make(map[iot.Ref]int, len(counts))
	for n, count := range counts {
		if count > 0 {
			out[devices[n-1]] = count
		}
	}
	return out, err
}
