package devices

import (
	"context"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/sqlstore"
)

// The statements of lists over accounts. That of one account reads its part of the
// primary key only.
const (
	hasAlarm  = `EXISTS (SELECT 1 FROM alarm WHERE alarm.account = device.account AND alarm.device = device.id AND alarm.state = 'raised')`
	scanAll   = `SELECT account, doc FROM device WHERE (account, id) > ($1, $2) AND ($3 = 0 OR ` + hasAlarm + `) ORDER BY account, id LIMIT $4`
	scanOne   = `SELECT account, doc FROM device WHERE account = $5 AND (account, id) > ($1, $2) AND ($3 = 0 OR ` + hasAlarm + `) ORDER BY account, id LIMIT $4`
	countOpen = `
SELECT batch.n, count(*) FROM batch
JOIN alarm ON alarm.account = batch.account AND alarm.device = batch.device AND alarm.state = 'raised'
GROUP BY batch.n`
)

// ScanDevices returns devices after one, by account and id.
func (s *Store) ScanDevices(ctx context.Context, acct account.ID, after iot.DeviceRef, alarmed bool, limit int) ([]iot.FoundDevice, error) {
	query, args := scanAll, []any{after.Account, after.ID, alarmed, limit}
	if acct != 0 {
		query, args = scanOne, append(args, acct)
	}
	return sqlstore.List(ctx, s.db, "devices", query, sqlstore.Into(func(d *iot.FoundDevice) []any {
		return []any{&d.Account, sqlstore.JSON(&d.Device)}
	}), args...)
}

// RaisedAlarms counts the raised alarms of devices.
func (s *Store) RaisedAlarms(ctx context.Context, devices []iot.DeviceRef) (map[iot.DeviceRef]int, error) {
	batch := sqlstore.BatchOf("account bigint, device text", devices, func(d *iot.DeviceRef) []any { return []any{d.Account, d.ID} })
	counts, err := sqlstore.Map[int, int](ctx, s.db, "alarms of devices", countOpen, batch)
	out := make(map[iot.DeviceRef]int, len(counts))
	for n, count := range counts {
		out[devices[n-1]] = count
	}
	return out, err
}
