package rule

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// deliveries returns a delivery for each parameter of each action, up to limit. Each delivery has all
// occurrences; only a rule with a batch has several.
//
// The error joins the failures of body expressions. An action whose expression failed sends the
// usual content.
func (a *actions) deliveries(occurrences []Occurrence, acct relay.AccountID, s Settings, limit int) ([]outbox.Delivery, error) {
	if len(occurrences) == 0 || limit == 0 {
		return nil, nil
	}
	first, now := &occurrences[0], s.Now()
	placeholder := func(name string) string { return first.placeholder(name, s.Zone) }
	var ds []outbox.Delivery
	var failed []error
	for i := range a.actions {
		action := &a.actions[i]
		kind := action.declared.Action
		content, err := action.content(occurrences, a.named, &s)
		if err != nil {
			failed = append(failed, fmt.Errorf("actions[%d].body: %w", i, err))
		}
		for j, parameter := range action.declared.Parameters {
			if len(ds) == limit {
				return ds, errors.Join(failed...)
			}
			d := outbox.Delivery{
				ID: first.deliveryID(acct, i, j), Account: acct, Kind: outbox.KindRule, Relay: first.Rule.ID,
				MessageID: cmp.Or(first.AlarmID, first.Record), State: outbox.Queued, CreatedAt: now.Add(time.Duration(len(ds))),
				Trace: first.Trace, Pace: outbox.Pace{Ordered: first.Rule.Ordered},
				Endpoint: outbox.EndpointID(acct, string(outbox.KindRule), first.Rule.ID, kind, parameter),
			}
			switch kind {
			case Email:
				d.Mail = &outbox.Mail{To: parameter, Subject: content.note.subject, Text: content.note.text, MessageID: d.ID + "@" + s.MailDomain}
			case SMS:
				d.SMS = &outbox.SMS{Originator: action.declared.Originator, To: parameter, Text: content.note.text}
				d.Originator, d.Destination = action.declared.Originator, parameter
			case HTTPGet:
				d.Request = &outbox.Request{Method: http.MethodGet, URL: action.urls[j].Expand(placeholder)}
			default:
				d.Request = &outbox.Request{Method: http.MethodPost, URL: action.urls[j].Expand(placeholder), ContentType: "application/json", Body: content.body}
			}
			ds = append(ds, d)
		}
	}
	return ds, errors.Join(failed...)
}

// FrameKey returns a key of the occurrence's frame; empty without a frame. A frame with a counter
// has the same key when it is posted again, because the cache may have lost the key by which
// duplicates are detected. The key of other frames is the journal record.
func (o *Occurrence) FrameKey() string {
	if o.Record == "" || o.Radio == nil || o.Radio.FCnt == nil {
		return o.Record
	}
	kind, _ := o.Event["type"].(string)
	return fmt.Sprint(o.Device.ID, " ", o.Time.UnixNano(), " ", *o.Radio.FCnt, kind)
}

// content is the content that an action sends to all of its parameters.
type content struct {
	body []byte
	note note
}

// content returns the content of an action. The body of http_post is an object, or a list for a rule
// with a batch.
func (a *action) content(occurrences []Occurrence, named []string, s *Settings) (c content, err error) {
	switch a.declared.Action {
	case Email:
		c.note, err = a.mail(occurrences, named, s)
		return c, err
	case SMS:
		c.note, err = a.note(&occurrences[0], named, s)
		return c, err
	case HTTPGet:
		return c, nil
	}
	if occurrences[0].Rule.Batch == (Batch{}) && len(occurrences) == 1 {
		c.body, err = a.json(&occurrences[0], s)
		return c, err
	}
	list, failed := make([]json.RawMessage, len(occurrences)), error(nil)
	for i := range occurrences {
		if list[i], err = a.json(&occurrences[i], s); list[i] == nil {
			return c, err
		}
		if failed == nil {
			failed = err
		}
	}
	if c.body, err = json.Marshal(list); err != nil {
		return c, fmt.Errorf("encode: %w", err)
	}
	return c, failed
}

// deliveryID returns the id of the delivery of an occurrence to a parameter. It is the same when the
// frame is processed or posted again, so that the frame is delivered once. The occurrence of a
// batch is its first frame, which is in no other batch. A changed parameter results in another
// id.
func (o *Occurrence) deliveryID(acct relay.AccountID, action, parameter int) string {
	a := &o.Rule.Actions[action]
	h := sha256.New()
	var n [8]byte
	for _, s := range []string{
		acct.String(), o.Rule.ID, string(o.State), o.AlarmID, o.Device.ID, o.FrameKey(), strconv.Itoa(o.Repeats),
		strconv.Itoa(action), a.Action, strconv.Itoa(parameter), a.Parameters[parameter],
	} {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

type payload struct {
	Rule     map[string]string    `json:"rule"`     // id and name
	AlarmID  *string              `json:"alarm_id"` // null when a frame is forwarded
	State    State                `json:"state"`
	Device   payloadDevice        `json:"device"`
	Time     string               `json:"time"` // RFC 3339, UTC
	Readings map[string]ValueText `json:"readings"`
	// Previous and Event are omitted if they are empty.
	Previous map[string]ValueText `json:"previous,omitempty"`
	Event    map[string]any       `json:"event,omitempty"`
	Links    map[string]string    `json:"links,omitempty"`
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

func (o *Occurrence) payload(s *Settings) payload {
	d := &o.Device
	p := payload{
		Rule: map[string]string{"id": o.Rule.ID, "name": o.Rule.Name}, State: o.State, Time: payloadTime(o.Time),
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

// json returns the body of http_post. If the action's expression fails, json returns the usual body
// with the error, so that the alarm is sent in any case.
func (a *action) json(o *Occurrence, s *Settings) (json.RawMessage, error) {
	var failed error
	if a.body != nil {
		body, err := a.bodyJSON(o, s)
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

// bodyJSON returns the result of the action's expression.
func (a *action) bodyJSON(o *Occurrence, s *Settings) (json.RawMessage, error) {
	return a.body.JSON(o.subject(s.Zone), map[string]any{
		"rule": map[string]any{"id": o.Rule.ID, "name": o.Rule.Name}, "state": string(o.State), "alarm_id": o.AlarmID,
	})
}
