package replay

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/relay/db"
)

// Counts are the numbers of records caused by events.
type Counts struct {
	Deliveries int64 // deliveries of the events and of the alarms they raised or cleared
	Alarms     int64 // alarms raised by the events
}

// Store counts the records caused by events.
type Store struct{ db *db.DB }

// NewStore returns the store in a database.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// maxFrames is the largest number of frames or messages of an event whose effects are counted. A frame
// is identified by the event's ID and a number: ID.0, ID.1 and so on.
const maxFrames = 10

// Count returns the total numbers of records caused by events so far.
func (s *Store) Count(ctx context.Context, ids []string) (counts Counts, err error) {
	const (
		countAlarms = `
			SELECT COUNT(*)
			FROM alarm
			JOIN batch ON batch.id = alarm.raised_by`
		countOwnDeliveries = `
			SELECT COUNT(*)
			FROM batch
			JOIN delivery ON delivery.message_id = batch.id
			WHERE delivery.message_id <> ''`
		countAlarmDeliveries = `
			SELECT COUNT(*)
			FROM delivery
			WHERE message_id <> ''
			  AND message_id IN (
			    SELECT alarm.id
			    FROM alarm
			    JOIN batch ON batch.id = alarm.raised_by OR batch.id = alarm.cleared_by
			  )`
	)
	if len(ids) == 0 {
		return counts, nil
	}
	frameIDs := make([]string, 0, len(ids)*(maxFrames+1))
	for _, id := range ids {
		frameIDs = append(frameIDs, id)
		for n := range maxFrames {
			frameIDs = append(frameIDs, fmt.Sprintf("%s.%d", id, n))
		}
	}
	for query, sum := range map[string]*int64{
		countAlarms: &counts.Alarms, countOwnDeliveries: &counts.Deliveries, countAlarmDeliveries: &counts.Deliveries,
	} {
		n, err := db.Value[int64](ctx, s.db, "effects of events", query, db.Column("id", frameIDs))
		if err != nil {
			return counts, err
		}
		*sum += n
	}
	return counts, nil
}
