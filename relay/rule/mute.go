package rule

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/iot"
)

// Mute suppresses the actions of alarms for a time. The alarms are raised and cleared as
// without it. An empty RuleID or DeviceID stands for every rule or device.
type Mute struct {
	RuleID, DeviceID string
	Until            time.Time
	By               string // a user, or a token
}

// covers reports whether the mute suppresses the actions of a rule for a device.
func (m Mute) covers(ruleID, deviceID string, now time.Time) bool {
	return (m.RuleID == "" || m.RuleID == ruleID) && (m.DeviceID == "" || m.DeviceID == deviceID) && now.Before(m.Until)
}

// maxMute is the longest time for which alarms are muted.
const maxMute = 30 * 24 * time.Hour

// MuteRequest is a request to mute alarms.
type MuteRequest struct {
	RuleID   string `json:"rule_id"`
	DeviceID string `json:"device_id"`
	For      string `json:"for"`
}

// Mute mutes the alarms of a rule, of a device, or of a rule for a device, from now on. It
// replaces a mute of the same. It returns an Invalid error, by field.
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
	m := Mute{RuleID: r.RuleID, DeviceID: r.DeviceID, Until: s.o.Now().UTC().Add(span), By: user}
	return m, s.deps.Store.PutMute(ctx, acct, m)
}

// Unmute ends a mute. It returns a NotFound error if there is none of this rule and device.
func (s *Service) Unmute(ctx context.Context, acct relay.AccountID, ruleID, deviceID string) error {
	return s.deps.Store.DeleteMute(ctx, acct, ruleID, deviceID)
}

// muted reports whether the actions of an occurrence are suppressed. The mutes are those
// of the rules that were read last.
func (s *Service) muted(acct relay.AccountID, o *Occurrence) bool {
	if o.State != Raised && o.State != Cleared {
		return false
	}
	s.mu.Lock()
	set := s.sets[acct]
	s.mu.Unlock()
	if set == nil {
		return false
	}
	now := s.o.Now()
	for _, m := range set.mutes {
		if m.covers(o.Rule.ID, o.Device.ID, now) {
			return true
		}
	}
	return false
}

// PutMute saves a mute, in the place of one of the same rule and device.
func (s *Store) PutMute(ctx context.Context, acct relay.AccountID, m Mute) error {
	return s.db.RunAll(ctx, "mute",
		db.Do(db.Upsert("alarm_mute", "account, rule, device", "until, muted_by"), acct, m.RuleID, m.DeviceID, db.Nanos(m.Until), m.By),
		db.Bump(iot.RulesVersionOf(acct)))
}

// DeleteMute deletes a mute.
func (s *Store) DeleteMute(ctx context.Context, acct relay.AccountID, ruleID, deviceID string) error {
	return s.db.RunAll(ctx, "mute",
		db.Do("DELETE FROM alarm_mute WHERE account = $1 AND rule = $2 AND device = $3", acct, ruleID, deviceID).Or(db.NotFound("mute")),
		db.Bump(iot.RulesVersionOf(acct)))
}

// Mutes lists the mutes of an account, with those that have ended and are not swept yet.
func (s *Store) Mutes(ctx context.Context, acct relay.AccountID) ([]Mute, error) {
	const statement = `
		SELECT rule, device, until, muted_by
		FROM alarm_mute
		WHERE account = $1
		ORDER BY rule, device`
	return db.List(ctx, s.db, "mutes", statement, func(m *Mute) []any {
		return []any{&m.RuleID, &m.DeviceID, db.NanoTime(&m.Until), &m.By}
	}, acct)
}
