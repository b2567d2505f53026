package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/replay"
)

// maxCounted is the largest number of events of a replay that are examined for what it
// changed.
const maxCounted = 1000

// replayedJSON is the answer of a replay.
type replayedJSON struct {
	Count int `json:"count"`
	// Examined is the number of events that Readings, Deliveries and Alarms are about.
	Examined   int          `json:"examined"`
	Rules      bool         `json:"rules"`
	Readings   ReadingTally `json:"readings"`
	Deliveries int64        `json:"deliveries"`     // created
	Alarms     int64        `json:"alarms"`         // raised
	Away       []awayJSON   `json:"away,omitempty"` // gateways that did not replay theirs
}

// replayEvents processes events again and answers what that changed.
func (s *Surface) replayEvents(c *fiber.Ctx, sel *selection) error {
	ctx := c.UserContext()
	intakes, f := s.events(sel)
	f.Reason = sel.text("reason")
	decoder, relayID := sel.text("decoder"), sel.text("relay")
	dry, rules, limit := sel.flag("dry_run"), sel.flag("rules"), sel.limit()
	sel.require()
	if err := sel.Err(); err != nil {
		return err
	}
	// 1. A decoder and a relay select by what the events are about. Nothing is about both.
	if decoder != "" {
		match, err := s.readBy(ctx, f.Account, decoder)
		if err != nil {
			return err
		}
		f.Match, intakes = match, ofKind(intakes, event.Uplink)
	}
	if relayID != "" {
		match, err := s.takenBy(ctx, f.Account, relayID)
		if err != nil {
			return err
		}
		f.Match, intakes = match, ofKind(intakes, event.SMS)
	}
	otherGateways, err := s.Peers.others(c)
	if err != nil {
		return err
	}
	if dry {
		return s.dryRun(c, intakes, f, rules, limit, otherGateways)
	}
	// 2. Replay, and compare what the events have led to before and after.
	done := replayedJSON{Rules: rules}
	for _, in := range intakes {
		if err := s.replayOf(ctx, in, f, &done); err != nil {
			return err
		}
	}
	answers, views := each[replayedJSON](c, s.Peers, otherGateways, repeated(c))
	for _, a := range answers {
		done.Count, done.Examined = done.Count+a.Count, done.Examined+a.Examined
		done.Deliveries, done.Alarms = done.Deliveries+a.Deliveries, done.Alarms+a.Alarms
		done.Readings.add(a.Readings)
	}
	done.Away = views
	s.Logger.InfoContext(ctx, "events replayed", "count", done.Count, "selection", sel.String(), "address", httpd.ClientIP(c))
	return c.JSON(done)
}

// replayOf replays events of one journal and adds what that changed. The readings are those
// of a preview: what processing writes does not say what was there before. A replay is made
// even if its effects cannot be counted.
func (s *Surface) replayOf(ctx context.Context, in *intake.Intake, f event.Filter, done *replayedJSON) error {
	var ids []string
	err := in.Events(ctx, f, 0, func(e event.Event, _ uint64) bool {
		ids = append(ids, e.ID)
		return len(ids) < maxCounted
	})
	if err != nil {
		return err
	}
	oldCounts, countErr := s.Effects.Count(ctx, ids)
	if len(ids) > 0 && in.Kind() == event.Uplink && s.Inspector != nil {
		preview, err := replay.Preview(ctx, s.Inspector, event.Filter{IDs: ids}, 0, s.Now)
		if err == nil {
			done.Readings.add(ReadingTally(preview.Readings))
		}
		countErr = errors.Join(countErr, err)
	}
	n, err := in.Replay(ctx, f, done.Rules)
	done.Count, done.Examined = done.Count+n, done.Examined+len(ids)
	if err != nil {
		return err
	}
	counts, err := s.Effects.Count(ctx, ids)
	if countErr = errors.Join(countErr, err); countErr != nil {
		s.Logger.WarnContext(ctx, "effects of a replay not counted", "error", countErr)
		return nil
	}
	done.Deliveries += max(0, counts.Deliveries-oldCounts.Deliveries) // old ones may have expired
	done.Alarms += max(0, counts.Alarms-oldCounts.Alarms)
	return nil
}

// ofKind returns the intake of a kind among others.
func ofKind(intakes []*intake.Intake, kind event.Kind) []*intake.Intake {
	return slices.DeleteFunc(slices.Clone(intakes), func(in *intake.Intake) bool { return in.Kind() != kind })
}

// readBy returns a function that selects posts with frames of devices with a decoder.
func (s *Surface) readBy(ctx context.Context, acct relay.AccountID, decoder string) (func(relay.AccountID, []string) bool, error) {
	type owned struct {
		account    relay.AccountID
		identifier string
	}
	accounts, err := s.accountNames(ctx)
	if err != nil {
		return nil, err
	}
	devices := make(map[owned]bool)
	for id := range accounts {
		if acct != 0 && id != acct {
			continue
		}
		found, err := s.Types.Devices(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			if d.DecoderID == decoder {
				devices[owned{id, d.Identifier}] = true
			}
		}
	}
	if len(devices) == 0 {
		return nil, relay.Invalid("decoder", fmt.Sprintf("There is no device with the decoder %q.", decoder))
	}
	return func(acct relay.AccountID, identifiers []string) bool {
		return slices.ContainsFunc(identifiers, func(identifier string) bool { return devices[owned{acct, identifier}] })
	}, nil
}

// takenBy returns a function that selects the messages that a relay takes: those to its
// number, or those whose longest prefix is the relay's.
func (s *Surface) takenBy(ctx context.Context, acct relay.AccountID, id string) (func(relay.AccountID, []string) bool, error) {
	numbers, prefixes, known := make(map[string]bool), make(map[string]bool), false
	_, err := s.Relays.Find(ctx, 0, inbound.Ref{}, math.MaxInt, func(r inbound.Relay) bool {
		named := r.ID == id && (acct == 0 || r.Account == acct)
		if r.Kind == inbound.VirtualNumber {
			numbers[r.Number] = named
		} else {
			prefixes[r.Number] = named
		}
		known = known || named
		return false
	})
	if err == nil && !known {
		err = relay.Invalid("relay", fmt.Sprintf("There is no relay %q.", id))
	}
	takes := func(number string) bool {
		if named, taken := numbers[number]; taken {
			return named
		}
		for n := len(number); n > 0; n-- {
			if named, taken := prefixes[number[:n]]; taken {
				return named
			}
		}
		return false
	}
	return func(_ relay.AccountID, destinations []string) bool { return slices.ContainsFunc(destinations, takes) }, err
}
