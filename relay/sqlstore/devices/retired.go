package devices

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/sqlstore"
)

func retiredSensors() sqlstore.Documents[iot.Retired] {
	return sqlstore.Documents[iot.Retired]{Noun: "retired sensor", Table: "retired_sensor"}
}

const retire = `
INSERT INTO retired_sensor (account, id, doc)
SELECT $1, id, doc FROM batch WHERE true
ON CONFLICT (account, id) DO UPDATE SET doc = excluded.doc`

// Retire saves the retention of sensors of a device that is deleted next.
func (s *Store) Retire(ctx context.Context, acct account.ID, sensors []iot.Retired) error {
	rows, seen := sqlstore.NewBatch("id text, doc text"), make(map[string]bool, len(sensors))
	for _, r := range sensors {
		doc, err := sqlstore.Encode(r)
		if err != nil {
			return fmt.Errorf("retired sensor %s: encode: %w", r.SensorID, err)
		}
		if !seen[r.SensorID] {
			seen[r.SensorID] = true
			rows.Add(r.SensorID, doc)
		}
	}
	_, err := s.db.Exec(ctx, "retired sensors", retire, int64(acct), rows)
	return err
}

// Retired lists sensors of deleted devices by id.
func (s *Store) Retired(ctx context.Context, acct account.ID) ([]iot.Retired, error) {
	return retiredSensors().All(ctx, s.db, acct)
}

const unretire = `DELETE FROM retired_sensor WHERE account = $1 AND id IN (SELECT id FROM batch)`

// Unretire deletes sensors of deleted devices.
func (s *Store) Unretire(ctx context.Context, acct account.ID, sensorIDs []string) error {
	ids := sqlstore.NewBatch("id text")
	for _, id := range sensorIDs {
		ids.Add(id)
	}
	_, err := s.db.Exec(ctx, "retired sensors", unretire, int64(acct), ids)
	return err
}
