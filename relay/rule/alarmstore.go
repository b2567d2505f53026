package rule

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

const alarmColumns = `doc, id, rule, device, state, raised, cleared, raised_by, cleared_by,
		(SELECT COALESCE(MAX(m.until), 0)
		 FROM alarm_mute m
		 WHERE m.account = alarm.account
		   AND m.rule IN ('', alarm.rule)
		   AND m.device IN ('', alarm.device))`

const selectAlarm = `
		SELECT ` + alarmColumns + `
		FROM alarm
		WHERE account = $1 AND id = $2`

// documentOf returns the fields of an alarm that have no column.
func documentOf(a Alarm) Alarm {
	return Alarm{Readings: a.Readings, AcknowledgedAt: a.AcknowledgedAt, AcknowledgedBy: a.AcknowledgedBy, Note: a.Note}
}

// alarmFields returns pointers to the fields of a in the order of alarmColumns.
func alarmFields(a *Alarm) []any {
	return []any{
		db.JSON(a), &a.ID, &a.RuleID, &a.DeviceID, &a.State, db.NanoTime(&a.RaisedAt), db.NanoTime(&a.ClearedAt), &a.RaisedBy, &a.ClearedBy,
		db.NanoTime(&a.MutedUntil),
	}
}

// Alarm loads an alarm; relay.KindNotFound if there is none.
func (s *Store) Alarm(ctx context.Context, acct relay.AccountID, id string) (Alarm, error) {
	return db.One(ctx, s.db, "alarm "+id, selectAlarm, alarmFields, acct, id)
}

// ChangeAlarm saves what change makes of an alarm.
func (s *Store) ChangeAlarm(ctx context.Context, acct relay.AccountID, id string, change func(*Alarm) error) (Alarm, error) {
	label := "alarm " + id
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (Alarm, error) {
		a, err := db.One(ctx, tx, label, selectAlarm+" {for update}", alarmFields, acct, id)
		if err == nil {
			err = change(&a)
		}
		if err != nil {
			return a, err
		}
		return a, tx.Run(ctx, label, "UPDATE alarm SET doc = $1 WHERE account = $2 AND id = $3", db.JSON(documentOf(a)), acct, id)
	})
}

// OfRecord returns the alarms that a frame raised or cleared.
func (s *Store) OfRecord(ctx context.Context, acct relay.AccountID, deviceID, record string) ([]Alarm, error) {
	const query = `
		SELECT ` + alarmColumns + `
		FROM alarm
		WHERE account = $1 AND device = $2
		  AND (raised_by = $3 OR cleared_by = $3)
		ORDER BY raised, id`
	return db.List(ctx, s.db, "alarms of a frame", query, alarmFields, acct, deviceID, record)
}

// Alarms lists alarms of an account, 0 for all, newest first, and the cursor of the next
// page, empty at the end.
func (s *Store) Alarms(ctx context.Context, acct relay.AccountID, f AlarmFilter) ([]Owned[Alarm], string, error) {
	raised, id, err := parseCursor(f.Cursor)
	if err != nil {
		return nil, "", err
	}
	var w db.Where
	w.And("raised BETWEEN ? AND ?", lowest(f.From), highest(f.To))
	w.And("(raised < ? OR raised = ? AND id < ?)", raised, raised, id)
	w.AndSet("account = ?", acct)
	w.AndSet("state = ?", f.State)
	w.AndSet("rule = ?", f.RuleID)
	w.AndSet("device = ?", f.DeviceID)
	fields := func(a *Owned[Alarm]) []any { return append([]any{&a.Account}, alarmFields(&a.Of)...) }
	alarms, err := db.Page(ctx, s.db, "alarms", "SELECT account, "+alarmColumns+" FROM alarm", &w, "raised DESC, id DESC", f.Limit+1, fields)
	if err != nil || len(alarms) <= f.Limit {
		return alarms, "", err
	}
	alarms = alarms[:f.Limit]
	lastAlarm := &alarms[f.Limit-1].Of
	return alarms, formatCursor(db.Nanos(lastAlarm.RaisedAt), lastAlarm.ID), nil
}

func lowest(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return db.Nanos(t)
}

func highest(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return db.Nanos(t)
}

func formatCursor(raised int64, id string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", raised, id))
}

// parseCursor reads a cursor; the empty one is the beginning of the list.
func parseCursor(cursor string) (raised int64, id string, err error) {
	if cursor == "" {
		return math.MaxInt64, "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d %s", &raised, &id)
	}
	// PostgreSQL takes no NUL in a text, and nothing that is no UTF-8.
	if err != nil || formatCursor(raised, id) != cursor || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return 0, "", relay.Invalid("cursor", "This is not a cursor of this list.")
	}
	return raised, id, nil
}
