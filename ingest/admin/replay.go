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

// maxCounted is the maximum number of events per journal of which a replay counts the effects.
const maxCounted = 1000

// replayedJSON is the answer to a replay.
type replayedJSON struct {
	Count int `json:"count"`
	// Examined is the number of events with effects in Readings, Deliveries and Alarms.
	Examined   int                 `json:"examined"`
	Rules      bool                `json:"rules"`
	Readings   replay.ReadingTally `json:"readings"`
	Deliveries int64               `json:"deliveries"`     // created
	Alarms     int64               `json:"alarms"`         // raised
	Away       []awayJSON          `json:"away,omitempty"` // gateways without an answer, which did not replay their events
}

// replayEvents processes events again and answers with the effects.
func (s *Surface) replayEvents(c *fiber.Ctx, sel *selection) error {
	ctx := c.UserContext()
	intakes, f := s.readEventFilter(sel)
	f.Reason = sel.text("reason")
	decoder, relayID := sel.text("decoder"), sel.text("relay")
	dryRun, rules, limit := sel.flag("dry_run"), sel.flag("rules"), sel.limit()
	sel.requireFilter()
	if err := sel.Err(); err != nil {
		return err
	}
	// 1. Limit the selection to a decoder or a relay. A decoder selects frames, a relay messages.
	if decoder != "" {
		match, err := s.matchDecoder(ctx, f.Account, decoder)
		if err != nil {
			return err
		}
		f.Match, intakes = match, ofKind(intakes, event.Uplink)
	}
	if relayID != "" {
		match, err := s.matchRelay(ctx, f.Account, relayID)
		if err != nil {
			return err
		}
		f.Match, intakes = match, ofKind(intakes, event.SMS)
	}
	otherGateways, err := s.Peers.otherGateways(c)
	if err != nil {
		return err
	}
	if dryRun {
		return s.dryRun(c, intakes, f, rules, limit, otherGateways)
	}
	// 2. Replay the events, and compare the effects before and after.
	replayed := replayedJSON{Rules: rules}
	for _, i := range intakes {
		if err := s.replayJournal(ctx, i, f, &replayed); err != nil {
			return err
		}
	}
	answers, awayGateways := forwardToAll[replayedJSON](c, s.Peers, otherGateways)
	for _, a := range answers {
		replayed.Count, replayed.Examined = replayed.Count+a.Count, replayed.Examined+a.Examined
		replayed.Deliveries, replayed.Alarms = replayed.Deliveries+a.Deliveries, replayed.Alarms+a.Alarms
		replayed.Readings.Add(a.Readings)
	}
	replayed.Away = awayGateways
	s.Logger.InfoContext(ctx, "events replayed", "count", replayed.Count, "selection", sel.String(), "address", httpd.ClientIP(c))
	return c.JSON(replayed)
}

// replayJournal replays the events of one journal and adds the effects to replayed. A preview
// counts the readings, because the replay does not read old values. An error while counting effects
// does not prevent the replay.
func (s *Surface) replayJournal(ctx context.Context, i *intake.Intake, f event.Filter, replayed *replayedJSON) error {
	var ids []string
	err := i.Events(ctx, f, 0, func(e event.Event, _ uint64) bool {
		ids = append(ids, e.ID)
		return len(ids) < maxCounted
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	oldCounts, countErr := s.Effects.Count(ctx, ids)
	counted := event.Filter{IDs: ids}
	if i.Kind() == event.Uplink {
		preview, err := replay.Preview(ctx, s.Inspector, counted, 0, s.Now)
		if err == nil {
			replayed.Readings.Add(preview.Readings)
		}
		countErr = errors.Join(countErr, err)
	}
	// If ids has all selected events, avoid a second search of the journal. The other fields of
	// the filter still apply, because an event may have been replayed in the meantime.
	if len(ids) < maxCounted {
		f.IDs = ids
	}
	n, err := i.Replay(ctx, f, replayed.Rules)
	replayed.Count, replayed.Examined = replayed.Count+n, replayed.Examined+len(ids)
	if err != nil {
		return err
	}
	counts, err := s.Effects.Count(ctx, ids)
	if countErr = errors.Join(countErr, err); countErr != nil {
		s.Logger.WarnContext(ctx, "effects of a replay not counted", "error", countErr)
		return nil
	}
	replayed.Deliveries += max(0, counts.Deliveries-oldCounts.Deliveries) // old deliveries may have expired
	replayed.Alarms += max(0, counts.Alarms-oldCounts.Alarms)
	return nil
}

// ofKind returns the intakes of a kind.
func ofKind(intakes []*intake.Intake, kind event.Kind) []*intake.Intake {
	return slices.DeleteFunc(slices.Clone(intakes), func(i *intake.Intake) bool { return i.Kind() != kind })
}

// matchDecoder returns a function that selects posts with frames of devices that use the decoder.
func (s *Surface) matchDecoder(ctx context.Context, acct relay.AccountID, decoder string) (func(relay.AccountID, []string) bool, error) {
	type deviceKey struct {
		account    relay.AccountID
		identifier string
	}
	accounts, err := s.accountNames(ctx)
	if err != nil {
		return nil, err
	}
	devices := make(map[deviceKey]bool)
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
				devices[deviceKey{id, d.Identifier}] = true
			}
		}
	}
	if len(devices) == 0 {
		return nil, relay.Invalid("decoder", fmt.Sprintf("There is no device with the decoder %q.", decoder))
	}
	return func(acct relay.AccountID, identifiers []string) bool {
		return slices.ContainsFunc(identifiers, func(identifier string) bool { return devices[deviceKey{acct, identifier}] })
	}, nil
}

// matchRelay returns a function that selects messages to destinations of a relay. The relay of a
// virtual number takes messages to the number. The geographic relay with the longest matching prefix
// takes messages to other numbers.
func (s *Surface) matchRelay(ctx context.Context, acct relay.AccountID, id string) (func(relay.AccountID, []string) bool, error) {
	// The maps have all relays by number and by prefix. The value reports whether the relay is
	// selected.
	numbers, prefixes, exists := make(map[string]bool), make(map[string]bool), false
	_, err := s.Relays.Find(ctx, 0, inbound.Ref{}, math.MaxInt, func(r inbound.Relay) bool {
		selected := r.ID == id && (acct == 0 || r.Account == acct)
		if r.Kind == inbound.VirtualNumber {
			numbers[r.Number] = selected
		} else {
			prefixes[r.Number] = selected
		}
		exists = exists || selected
		return false
	})
	if err == nil && !exists {
		err = relay.Invalid("relay", fmt.Sprintf("There is no relay %q.", id))
	}
	matches := func(number string) bool {
		if selected, found := numbers[number]; found {
			return selected
		}
		for n := len(number); n > 0; n-- {
			if selected, found := prefixes[number[:n]]; found {
				return selected
			}
		}
		return false
	}
	return func(_ relay.AccountID, destinations []string) bool { return slices.ContainsFunc(destinations, matches) }, err
}
