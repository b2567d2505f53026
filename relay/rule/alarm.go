package rule

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/iot"
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

// documentOf returns an alarm with only the fields that have no column.
func documentOf(a Alarm) Alarm {
	return Alarm{Readings: a.Readings, AcknowledgedAt: a.AcknowledgedAt, AcknowledgedBy: a.AcknowledgedBy, Note: a.Note}
}

func alarmFields(a *Alarm) []any {
	return []any{
		db.JSON(a), &a.ID, &a.RuleID, &a.DeviceID, &a.State, db.NanoTime(&a.RaisedAt), db.NanoTime(&a.ClearedAt), &a.RaisedBy, &a.ClearedBy,
		db.NanoTime(&a.MutedUntil),
	}
}

// Alarm loads an alarm, or returns relay.KindNotFound if there is none.
func (s *Store) Alarm(ctx context.Context, acct relay.AccountID, id string) (Alarm, error) {
	return db.One(ctx, s.db, "alarm "+id, selectAlarm, alarmFields, acct, id)
}

// ChangeAlarm calls change with an alarm and saves the fields that have no column.
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

// AlarmsOfRecord returns the alarms that a frame raised or cleared.
func (s *Store) AlarmsOfRecord(ctx context.Context, acct relay.AccountID, deviceID, record string) ([]Alarm, error) {
	const query = `
		SELECT ` + alarmColumns + `
		FROM alarm
		WHERE account = $1 AND device = $2
		  AND (raised_by = $3 OR cleared_by = $3)
		ORDER BY raised, id`
	return db.List(ctx, s.db, "alarms of a frame", query, alarmFields, acct, deviceID, record)
}

// Alarms lists alarms of an account, or of all accounts if acct is 0, newest first. It also returns the
// cursor of the next page, which is empty on the last page.
func (s *Store) Alarms(ctx context.Context, acct relay.AccountID, f AlarmFilter) ([]AccountRecord[Alarm], string, error) {
	raisedAt, id, err := parseCursor(f.Cursor)
	if err != nil {
		return nil, "", err
	}
	var w db.Where
	w.And("(raised < ? OR raised = ? AND id < ?)", raisedAt, raisedAt, id)
	w.AndSet("account = ?", acct)
	w.AndSet("raised >= ?", db.Nanos(f.From))
	w.AndSet("raised <= ?", db.Nanos(f.To))
	w.AndSet("state = ?", f.State)
	w.AndSet("rule = ?", f.RuleID)
	w.AndSet("device = ?", f.DeviceID)
	fields := func(a *AccountRecord[Alarm]) []any { return append([]any{&a.Account}, alarmFields(&a.Record)...) }
	alarms, err := db.Page(ctx, s.db, "alarms", "SELECT account, "+alarmColumns+" FROM alarm", &w, "raised DESC, id DESC", f.Limit+1, fields)
	if err != nil || len(alarms) <= f.Limit {
		return alarms, "", err
	}
	alarms = alarms[:f.Limit]
	lastAlarm := &alarms[f.Limit-1].Record
	return alarms, formatCursor(db.Nanos(lastAlarm.RaisedAt), lastAlarm.ID), nil
}

func formatCursor(raisedAt int64, id string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", raisedAt, id))
}

// parseCursor parses a cursor. The empty cursor is the beginning of the list.
func parseCursor(cursor string) (raisedAt int64, id string, err error) {
	if cursor == "" {
		return math.MaxInt64, "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d %s", &raisedAt, &id)
	}
	// PostgreSQL refuses texts with NUL or invalid UTF-8.
	if err != nil || formatCursor(raisedAt, id) != cursor || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return 0, "", relay.Invalid("cursor", "This is not a cursor of this list.")
	}
	return raisedAt, id, nil
}

// Mute suppresses the actions of alarms from Since up to, but not including, Until. The alarms are
// still raised and cleared. An empty RuleID or DeviceID means every rule or device.
type Mute struct {
	RuleID, DeviceID string
	Since, Until     time.Time
	By               string // user or token
}

const (
	// maxMute is the longest time for which alarms are muted.
	maxMute = 30 * 24 * time.Hour
	// muteRetention is the time for which a mute is stored after its end, because frames of that
	// time may be processed late.
	muteRetention = 30 * 24 * time.Hour
)

// MuteRequest is a request to mute alarms.
type MuteRequest struct {
	RuleID   string `json:"rule_id"`
	DeviceID string `json:"device_id"`
	For      string `json:"for"`
}

// Mute mutes the alarms of a rule, of a device, or of a rule for a device, from now on. If they are
// already muted, Mute changes the end of that mute. It returns relay.KindInvalid if a field is
// invalid.
func (s *Service) Mute(ctx context.Context, acct relay.AccountID, r MuteRequest, user string) (Mute, error) {
	p := relay.Problems{}
	if r.RuleID == "" && r.DeviceID == "" {
		p.Add("rule_id", "The rule_id or the device_id is required.")
	}
	span, ok := parseDuration(r.For)
	if !ok || span <= 0 || span > maxMute {
		p.Add("for", "The for must be a duration of at most 720h, such as 1h.")
	}
	if r.RuleID != "" {
		_, err := s.deps.Store.Rule(ctx, acct, r.RuleID)
		if relay.KindOf(err) == relay.KindNotFound {
			p.Add("rule_id", "There is no such rule.")
		} else if err != nil {
			return Mute{}, err
		}
	}
	if r.DeviceID != "" {
		found, err := s.deps.Fleet.DevicesByID(ctx, acct, []string{r.DeviceID})
		if err != nil {
			return Mute{}, err
		}
		if len(found) == 0 {
			p.Add("device_id", "There is no such device.")
		}
	}
	if err := p.Err(); err != nil {
		return Mute{}, err
	}
	now := s.o.Now().UTC()
	m := Mute{RuleID: r.RuleID, DeviceID: r.DeviceID, Since: now, Until: now.Add(span), By: user}
	return m, s.deps.Store.PutMute(ctx, acct, m)
}

// Unmute ends the mute of a rule and a device. It returns relay.KindNotFound if no such mute is in
// force.
func (s *Service) Unmute(ctx context.Context, acct relay.AccountID, ruleID, deviceID string) error {
	return s.deps.Store.EndMute(ctx, acct, ruleID, deviceID, s.o.Now())
}

// PutMute saves a mute. If a mute of the same rule and device is in force, PutMute replaces its end
// and its user.
func (s *Store) PutMute(ctx context.Context, acct relay.AccountID, m Mute) error {
	const extend = `
		UPDATE alarm_mute
		SET until = $1, muted_by = $2
		WHERE account = $3 AND rule = $4 AND device = $5
		  AND until > $6`
	const insert = `
		INSERT INTO alarm_mute (account, rule, device, since, until, muted_by)
		SELECT CAST($1 AS BIGINT), $2, $3, CAST($4 AS BIGINT), CAST($5 AS BIGINT), $6
		WHERE NOT EXISTS (
		  SELECT 1
		  FROM alarm_mute
		  WHERE account = $1 AND rule = $2 AND device = $3
		    AND until > $4)
		ON CONFLICT DO NOTHING`
	since, until := db.Nanos(m.Since), db.Nanos(m.Until)
	return s.db.RunAll(ctx, "mute",
		db.Do(extend, until, m.By, acct, m.RuleID, m.DeviceID, since),
		db.Do(insert, acct, m.RuleID, m.DeviceID, since, until, m.By),
		db.Bump(iot.RulesVersionOf(acct)))
}

// EndMute ends the mute of a rule and a device that is in force.
func (s *Store) EndMute(ctx context.Context, acct relay.AccountID, ruleID, deviceID string, now time.Time) error {
	const end = `
		UPDATE alarm_mute
		SET until = $1
		WHERE account = $2 AND rule = $3 AND device = $4
		  AND until > $1`
	return s.db.RunAll(ctx, "mute",
		db.Do(end, db.Nanos(now), acct, ruleID, deviceID).Or(db.NotFound("mute")),
		db.Bump(iot.RulesVersionOf(acct)))
}

// Mutes lists the mutes of an account, including those that ended less than muteRetention ago.
func (s *Store) Mutes(ctx context.Context, acct relay.AccountID) ([]Mute, error) {
	const query = `
		SELECT rule, device, since, until, muted_by
		FROM alarm_mute
		WHERE account = $1`
	return db.List(ctx, s.db, "mutes", query, func(m *Mute) []any {
		return []any{&m.RuleID, &m.DeviceID, db.NanoTime(&m.Since), db.NanoTime(&m.Until), &m.By}
	}, acct)
}

// Alarms lists an account's alarms, newest first. It also returns the cursor of the next page, which
// is empty on the last page.
func (s *Service) Alarms(ctx context.Context, acct relay.AccountID, f AlarmFilter) ([]Alarm, string, error) {
	if acct == 0 {
		return nil, "", relay.Errorf(relay.KindNotFound, "rule: no account")
	}
	found, nextCursor, err := s.FindAlarms(ctx, acct, f)
	alarms := make([]Alarm, len(found))
	for i := range found {
		alarms[i] = found[i].Record
	}
	return alarms, nextCursor, err
}

// FindAlarms lists alarms like Alarms, but of all accounts if acct is 0.
func (s *Service) FindAlarms(ctx context.Context, acct relay.AccountID, f AlarmFilter) ([]AccountRecord[Alarm], string, error) {
	switch {
	case f.State != "" && f.State != Raised && f.State != Cleared:
		return nil, "", relay.Invalid("state", fmt.Sprintf("The state must be %s or %s, not %.40q.", Raised, Cleared, f.State))
	case f.Limit < 0 || f.Limit > relay.MaxPerPage:
		return nil, "", relay.Invalid("limit", fmt.Sprintf("The limit must be between 1 and %d.", relay.MaxPerPage))
	}
	f.Limit = cmp.Or(f.Limit, 100)
	found, nextCursor, err := s.deps.Store.Alarms(ctx, acct, f)
	for i := range found {
		found[i].Record.dropPastMute(s.o.Now())
	}
	return found, nextCursor, err
}

// dropPastMute clears MutedUntil if the mute has ended.
func (a *Alarm) dropPastMute(now time.Time) {
	if !now.Before(a.MutedUntil) {
		a.MutedUntil = time.Time{}
	}
}

// Alarm returns an alarm, or relay.KindNotFound if there is none.
func (s *Service) Alarm(ctx context.Context, acct relay.AccountID, id string) (Alarm, error) {
	a, err := s.deps.Store.Alarm(ctx, acct, id)
	a.dropPastMute(s.o.Now())
	return a, err
}

// maxNote is the largest length of a note, in bytes.
const maxNote = 4096

// Acknowledge records the acknowledgement of an alarm by a user. A second acknowledgement replaces
// the user and the note but not the time. It returns relay.KindNotFound if there is no such
// alarm.
func (s *Service) Acknowledge(ctx context.Context, acct relay.AccountID, id, user, note string) (Alarm, error) {
	if len(note) > maxNote {
		return Alarm{}, relay.Invalid("note", fmt.Sprintf("The note must not be longer than %d bytes.", maxNote))
	}
	now := s.o.Now().UTC()
	a, err := s.deps.Store.ChangeAlarm(ctx, acct, id, func(a *Alarm) error {
		if a.AcknowledgedAt.IsZero() {
			a.AcknowledgedAt = now
		}
		a.AcknowledgedBy, a.Note = user, note
		return nil
	})
	a.dropPastMute(now)
	return a, err
}

// CountRaised counts the raised alarms of each account.
func (s *Store) CountRaised(ctx context.Context) (map[relay.AccountID]int64, error) {
	const statement = `
		SELECT account, COUNT(*)
		FROM alarm
		WHERE state = 'raised'
		GROUP BY account`
	return db.Map[relay.AccountID, int64](ctx, s.db, "raised alarms", statement)
}
