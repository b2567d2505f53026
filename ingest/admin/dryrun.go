package admin

import (
	"maps"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/replay"
)

// DryRun is the answer of a dry run.
type DryRun struct {
	Count int `json:"count"` // of the events selected
	// Examined is the number of examined events: frames, at most 10,000, and for no longer
	// than 20 seconds.
	Examined int            `json:"examined"`
	Rules    bool           `json:"rules"` // rules would examine the frames
	Events   EventTally     `json:"events"`
	Readings ReadingTally   `json:"readings"`
	Data     []EventPreview `json:"data"` // the first that differ, in the order of arrival
	// More reports that there are more than data shows.
	More bool `json:"more"`
	// SearchedTo is the time back to which events were selected, if the dry run had no time
	// for all: then there may be more than count.
	SearchedTo string     `json:"searched_to,omitempty"`
	Away       []awayJSON `json:"away,omitempty"` // gateways whose events are missing
}

// EventTally counts the examined events by their new state.
type EventTally struct {
	Done        int `json:"done"`
	Quarantined int `json:"quarantined"`
	Differ      int `json:"differ"` // in state, reason or a reading
}

// ReadingTally counts readings by the effect of a replay.
type ReadingTally struct {
	Added     int `json:"added"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Stays     int `json:"stays"`
}

func (t *ReadingTally) add(u ReadingTally) {
	t.Added += u.Added
	t.Changed += u.Changed
	t.Unchanged += u.Unchanged
	t.Stays += u.Stays
}

// EventPreview is an event as it is and as it would be.
type EventPreview struct {
	ID         string          `json:"id"`
	ReceivedAt string          `json:"received_at"`
	Account    relay.AccountID `json:"account"`
	State      event.State     `json:"state"`
	Reason     string          `json:"reason"`
	NewState   event.State     `json:"new_state"`
	NewReason  string          `json:"new_reason"`
	Devices    []DeviceDelta   `json:"devices"`
}

// DeviceDelta is the changes to one device.
type DeviceDelta struct {
	Identifier string         `json:"identifier"`
	DeviceID   string         `json:"device_id"` // empty for one that would be made
	Duplicate  bool           `json:"duplicate"` // another event brought the frame
	Notes      []string       `json:"notes"`
	Readings   []ReadingDelta `json:"readings"`
}

// ReadingDelta is a reading before and after; a number, a text or null.
type ReadingDelta struct {
	Effect       iot.Effect `json:"effect"`
	Key          string     `json:"key"`
	SensorID     string     `json:"sensor_id"`
	SensorTypeID string     `json:"sensor_type_id"`
	Time         string     `json:"time"`
	Old          any        `json:"old"`
	New          any        `json:"new"`
	Latest       bool       `json:"latest"` // it is, or would be, the sensor's latest
}

// dryRun answers a dry run. Of messages it only counts: the result of one is explained by the
// operation that explains.
func (s *Surface) dryRun(c *fiber.Ctx, intakes []*intake.Intake, f event.Filter, rules bool, limit int, otherGateways []gateway.Gateway) error {
	if err := httpd.AdmitTo(c, httpd.Searches, principalOf(c).SearchAccount()); err != nil {
		return err
	}
	dryRun := DryRun{Rules: rules, Data: []EventPreview{}}
	for _, intake := range intakes {
		if intake.Kind() == event.Uplink && s.Inspector != nil {
			run, err := replay.Preview(c.UserContext(), s.Inspector, f, limit, s.Now)
			if err != nil {
				return err
			}
			dryRun.join(dryRunOf(run), limit)
			continue
		}
		n, reached, err := intake.Count(c.UserContext(), f, time.Now().Add(searchTime))
		if err != nil {
			return err
		}
		dryRun.join(DryRun{Count: n, SearchedTo: timeOrNone(reached.Time)}, limit)
	}
	answers, views := each[DryRun](c, s.Peers, otherGateways, repeated(c))
	for _, node := range slices.Sorted(maps.Keys(answers)) {
		dryRun.join(answers[node], limit)
	}
	dryRun.Away = views
	return c.JSON(dryRun)
}

func dryRunOf(run replay.DryRun) DryRun {
	return DryRun{
		SearchedTo: timeOrNone(run.BackTo), Count: run.Count, Examined: run.Examined, Events: EventTally(run.Events), Readings: ReadingTally(run.Readings),
		Data: httpd.Each(run.Differ, func(d replay.PreviewedEvent) EventPreview {
			return EventPreview{
				ID: d.Event.ID, ReceivedAt: formatTime(d.Event.ReceivedAt), Account: d.Event.Account, State: d.Event.State, Reason: d.Event.Reason,
				NewState: d.Preview.State, NewReason: d.Preview.Reason, Devices: httpd.Each(d.Preview.Frames, deviceDeltaOf),
			}
		}),
		More: run.More,
	}
}

// timeOrNone formats a time; "" for none.
func timeOrNone(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return formatTime(t)
}

// join adds the result of another gateway or journal.
func (r *DryRun) join(otherDryRun DryRun, limit int) {
	r.Count += otherDryRun.Count
	r.SearchedTo = max(r.SearchedTo, otherDryRun.SearchedTo)
	r.Examined += otherDryRun.Examined
	r.Events.Done += otherDryRun.Events.Done
	r.Events.Quarantined += otherDryRun.Events.Quarantined
	r.Events.Differ += otherDryRun.Events.Differ
	r.Readings.add(otherDryRun.Readings)
	room := min(limit-len(r.Data), len(otherDryRun.Data))
	r.Data = append(r.Data, otherDryRun.Data[:room]...)
	r.More = r.More || otherDryRun.More || room < len(otherDryRun.Data)
}

func deviceDeltaOf(f iot.PreviewedFrame) DeviceDelta {
	return DeviceDelta{
		Identifier: f.Identifier, DeviceID: f.DeviceID, Duplicate: f.Duplicate, Notes: append([]string{}, f.Notes...),
		Readings: httpd.Each(f.Readings, func(r iot.Difference) ReadingDelta {
			return ReadingDelta{
				Effect: r.Effect, Key: r.Key, SensorID: r.SensorID, SensorTypeID: r.SensorTypeID, Time: formatTime(r.Time),
				Old: pointValue(r.Old), New: pointValue(r.New), Latest: r.Latest,
			}
		}),
	}
}

// pointValue is a point's number or text, nil for none.
func pointValue(p *iot.Point) any {
	switch {
	case p == nil:
		return nil
	case p.IsText:
		return p.Text
	}
	return p.Value
}
