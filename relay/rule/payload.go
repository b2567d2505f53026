package rule

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// payload is the body of http_post without an expression.
type payload struct {
	Rule     payloadRule          `json:"rule"`
	AlarmID  *string              `json:"alarm_id"` // null when a frame is forwarded
	State    State                `json:"state"`
	Device   payloadDevice        `json:"device"`
	Time     string               `json:"time"` // RFC 3339, UTC
	Readings map[string]ValueText `json:"readings"`
	// Previous and Event are left out if the rule does not look at them.
	Previous map[string]ValueText `json:"previous,omitempty"`
	Event    map[string]any       `json:"event,omitempty"`
	Links    map[string]string    `json:"links,omitempty"`
}

type payloadRule struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type payloadDevice struct {
	ID         string   `json:"id"`
	Identifier string   `json:"identifier"`
	Name       string   `json:"name"`
	DecoderID  string   `json:"decoder_id,omitempty"`
	LocationID string   `json:"location_id,omitempty"`
	LastSeenAt string   `json:"last_seen_at,omitempty"`
	Longitude  *float64 `json:"longitude,omitempty"`
	Latitude   *float64 `json:"latitude,omitempty"`
}

// payloadOf returns the usual body of an occurrence.
func (o *Occurrence) payload(s *Settings) payload {
	d := &o.Device
	p := payload{
		Rule: payloadRule{o.Rule.ID, o.Rule.Name}, State: o.State, Time: payloadTime(o.Time),
		Device: payloadDevice{
			ID: d.ID, Identifier: d.Identifier, Name: d.Name, DecoderID: d.DecoderID, LocationID: d.LocationID,
			Longitude: d.Longitude, Latitude: d.Latitude, LastSeenAt: payloadTime(d.LastSeen),
		},
		Readings: ValuesOf(o.Readings), Previous: ValuesOf(o.Previous), Event: o.Event,
	}
	if o.AlarmID != "" {
		p.AlarmID = &o.AlarmID
	}
	if s.PublicURL != "" {
		p.Links = map[string]string{
			"rule": s.PublicURL + "/iot/rules/" + url.PathEscape(o.Rule.ID), "device": s.PublicURL + "/iot/devices/" + url.PathEscape(d.ID),
		}
		if o.AlarmID != "" {
			p.Links["alarm"] = s.PublicURL + "/iot/alarms/" + url.PathEscape(o.AlarmID)
		}
	}
	return p
}

func payloadTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// json returns the body of an occurrence as an action shapes it. If its expression
// fails, the usual body is returned with the error, so that the alarm is sent in any case.
func (a *action) json(o *Occurrence, s *Settings) (json.RawMessage, error) {
	var failed error
	if a.body != nil {
		body, err := a.shaped(o, s)
		if err == nil {
			return body, nil
		}
		failed = err
	}
	body, err := json.Marshal(o.payload(s))
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return body, failed
}

// shaped returns the result of an action's expression.
func (a *action) shaped(o *Occurrence, s *Settings) (json.RawMessage, error) {
	return a.body.JSON(o.subject(s.Zone), map[string]any{
		"rule": map[string]any{"id": o.Rule.ID, "name": o.Rule.Name}, "state": string(o.State), "alarm_id": o.AlarmID,
	})
}

// post returns the body of http_post: one object, or a list of a rule with a batch.
func (a *action) post(occurrences []Occurrence, s *Settings) ([]byte, error) {
	if occurrences[0].Rule.Batch == (Batch{}) && len(occurrences) == 1 {
		return a.json(&occurrences[0], s)
	}
	list, failed := make([]json.RawMessage, len(occurrences)), error(nil)
	for i := range occurrences {
		body, err := a.json(&occurrences[i], s)
		if body == nil {
			return nil, err
		}
		if err != nil && failed == nil {
			failed = err
		}
		list[i] = body
	}
	body, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return body, failed
}
