package rule

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/iot"
)

// Mute suppresses the actions of alarms from Since until before Until. The alarms are raised
// and cleared as without it. An empty RuleID or DeviceID stands for every rule or device.
type Mute struct {
	RuleID, DeviceID string
	Since, Until     time.Time
	By               string // a user, or a token
}

const (
	// maxMute is the longest time for which alarms are muted.
	maxMute = 30 * 24 * time.Hour
	// muteRetention is how long a mute is stored after its end: frames of its time may be
	// processed late.
	muteRetention = 30 * 24 * time.Hour
)

// MuteRequest is a request to mute alarms.
type MuteRequest struct {
	RuleID   string `json:"rule_id"`
	DeviceID string `json:"device_id"`
	For      string `json:"for"`
}

// Mute mutes the alarms of a rule, of a device, or of a rule for a device, from now on. If a
// mute of the same is in force, Mute changes its end. It returns an Invalid error, by field.
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

// Unmute ends the mute that is in force. It returns a NotFound error if there is none of this
// rule and device.
func (s *Service) Unmute(ctx context.Context, acct relay.AccountID, ruleID, deviceID string) error {
	return s.deps.Store.EndMute(ctx, acct, ruleID, deviceID, s.o.Now())
}

// muted reports whether the actions of a firing are suppressed, because a mute was in force
// at its time. That an alarm was cleared is reported unless the alarm was also raised during
// a mute: the receiver knows of the alarm. The mutes are those of the rules that were read
// last.
func (s *Service) muted(acct relay.AccountID, f *firing) bool {
	s.mu.Lock()
	set := s.sets[acct]
	s.mu.Unlock()
	if set == nil || f.State == Forwarded {
		return false
	}
	covered := func(t time.Time) bool {
		return slices.ContainsFunc(set.mutes, func(m Mute) bool {
			return (m.RuleID == "" || m.RuleID == f.Rule.ID) && (m.DeviceID == "" || m.DeviceID == f.Device.ID) &&
				!t.Before(m.Since) && t.Before(m.Until)
		})
	}
	return covered(f.Time) && (f.State == Raised || covered(f.raisedAt))
}

// PutMute saves a mute. If one of the same rule and device is in force, it gets the end of
// the new one.
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

// Mutes lists the mutes of an account, with those that ended within muteRetention.
func (s *Store) Mutes(ctx context.Context, acct relay.AccountID) ([]Mute, error) {
	const query = `
		SELECT rule, device, since, until, muted_by
		FROM alarm_mute
		WHERE account = $1`
	return db.List(ctx, s.db, "mutes", query, func(m *Mute) []any {
		return []any{&m.RuleID, &m.DeviceID, db.NanoTime(&m.Since), db.NanoTime(&m.Until), &m.By}
	}, acct)
}
