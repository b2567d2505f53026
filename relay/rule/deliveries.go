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
// occurrences. Only a rule with a batch has several occurrences.
//
// The error joins the failures of body expressions. An action with a failed expression sends the
// default content.
func (a *actions) deliveries(occurrences []Occurrence, acct relay.AccountID, s Settings, limit int) ([]outbox.Delivery, error) {
	if len(occurrences) == 0 || limit == 0 {
		return nil, nil
	}
	firstOccurrence, now := &occurrences[0], s.Now()
	placeholder := func(name string) string { return firstOccurrence.placeholder(name, s.Zone) }
	var deliveries []outbox.Delivery
	var errs []error
	for i := range a.actions {
		action := &a.actions[i]
		kind := action.declared.Action
		content, err := action.content(occurrences, a.conditionKeys, &s)
		if err != nil {
			errs = append(errs, fmt.Errorf("actions[%d].body: %w", i, err))
		}
		for j, parameter := range action.declared.Parameters {
			if len(deliveries) == limit {
				return deliveries, errors.Join(errs...)
			}
			d := outbox.Delivery{
				ID: firstOccurrence.deliveryID(acct, i, j), Account: acct, Kind: outbox.KindRule, Relay: firstOccurrence.Rule.ID,
				MessageID: cmp.Or(firstOccurrence.AlarmID, firstOccurrence.Record), State: outbox.Queued, CreatedAt: now.Add(time.Duration(len(deliveries))),
				Trace: firstOccurrence.Trace, Pace: outbox.Pace{Ordered: firstOccurrence.Rule.Ordered},
				Endpoint: outbox.EndpointID(acct, string(outbox.KindRule), firstOccurrence.Rule.ID, kind, parameter),
			}
			switch kind {
			case Email:
				d.Mail = &outbox.Mail{To: parameter, Subject: content.message.subject, Text: content.message.text, MessageID: d.ID + "@" + s.MailDomain}
			case SMS:
				d.SMS = &outbox.SMS{Originator: action.declared.Originator, To: parameter, Text: content.message.text}
				d.Originator, d.Destination = action.declared.Originator, parameter
			case HTTPGet:
				d.Request = &outbox.Request{Method: http.MethodGet, URL: action.urls[j].Expand(placeholder)}
			default:
				d.Request = &outbox.Request{Method: http.MethodPost, URL: action.urls[j].Expand(placeholder), ContentType: "application/json", Body: content.body}
			}
			deliveries = append(deliveries, d)
		}
	}
	return deliveries, errors.Join(errs...)
}

// FrameKey returns a key of the occurrence's frame, or an empty key without a frame. A frame with a
// counter has the same key when it is posted again, because the cache may have lost the key that
// detects duplicates. The key of another frame is its journal record.
func (o *Occurrence) FrameKey() string {
	if o.Record == "" || o.Radio == nil || o.Radio.FCnt == nil {
		return o.Record
	}
	kind, _ := o.Event["type"].(string)
	return fmt.Sprint(o.Device.ID, " ", o.Time.UnixNano(), " ", *o.Radio.FCnt, kind)
}

// actionContent is the content that an action sends to each of its parameters.
type actionContent struct {
	body    []byte
	message message
}

// content returns the content of an action. The body of http_post is an object, or a list for a rule
// with a batch.
func (a *action) content(occurrences []Occurrence, conditionKeys []string, s *Settings) (c actionContent, err error) {
	switch a.declared.Action {
	case Email:
		c.message, err = a.mail(occurrences, conditionKeys, s)
		return c, err
	case SMS:
		c.message, err = a.compose(&occurrences[0], conditionKeys, s)
		return c, err
	case HTTPGet:
		return c, nil
	}
	if occurrences[0].Rule.Batch == (Batch{}) && len(occurrences) == 1 {
		c.body, err = a.json(&occurrences[0], s)
		return c, err
	}
	list, firstErr := make([]json.RawMessage, len(occurrences)), error(nil)
	for i := range occurrences {
		if list[i], err = a.json(&occurrences[i], s); list[i] == nil {
			return c, err
		}
		if firstErr == nil {
			firstErr = err
		}
	}
	if c.body, err = json.Marshal(list); err != nil {
		return c, fmt.Errorf("encode: %w", err)
	}
	return c, firstErr
}

// deliveryID returns the ID of the delivery of an occurrence to a parameter. The ID is the same when the
// frame is processed or posted again, so that the frame is delivered once. The ID of a batch is that of
// its first frame, which is in no other batch. A changed parameter results in another ID.
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

type postBody struct {
	Rule     map[string]string        `json:"rule"`     // id and name
	AlarmID  *string                  `json:"alarm_id"` // null for a forwarded frame
	State    State                    `json:"state"`
	Device   postBodyDevice           `json:"device"`
	Time     string                   `json:"time"` // RFC 3339, UTC
	Readings map[string]ValueDocument `json:"readings"`
	// Previous and Event are omitted if they are empty.
	Previous map[string]ValueDocument `json:"previous,omitempty"`
	Event    map[string]any           `json:"event,omitempty"`
	Links    map[string]string        `json:"links,omitempty"`
}

type postBodyDevice struct {
	ID         string   `json:"id"`
	Identifier string   `json:"identifier"`
	Name       string   `json:"name"`
	DecoderID  string   `json:"decoder_id,omitempty"`
	LocationID string   `json:"location_id,omitempty"`
	LastSeenAt string   `json:"last_seen_at,omitempty"`
	Longitude  *float64 `json:"longitude,omitempty"`
	Latitude   *float64 `json:"latitude,omitempty"`
}

func (o *Occurrence) newPostBody(s *Settings) postBody {
	d := &o.Device
	p := postBody{
		Rule: map[string]string{"id": o.Rule.ID, "name": o.Rule.Name}, State: o.State, Time: postBodyTime(o.Time),
		Device: postBodyDevice{
			ID: d.ID, Identifier: d.Identifier, Name: d.Name, DecoderID: d.DecoderID, LocationID: d.LocationID,
			Longitude: d.Longitude, Latitude: d.Latitude, LastSeenAt: postBodyTime(d.LastSeen),
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

func postBodyTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// json returns the body of http_post. If the action's expression fails, json returns the default body
// with the error, so that the alarm is sent in any case.
func (a *action) json(o *Occurrence, s *Settings) (json.RawMessage, error) {
	var expressionErr error
	if a.body != nil {
		body, err := a.bodyJSON(o, s)
		if err == nil {
			return body, nil
		}
		expressionErr = err
	}
	body, err := json.Marshal(o.newPostBody(s))
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return body, expressionErr
}

// bodyJSON returns the result of the action's expression.
func (a *action) bodyJSON(o *Occurrence, s *Settings) (json.RawMessage, error) {
	return a.body.JSON(o.conditionSubject(s.Zone), map[string]any{
		"rule": map[string]any{"id": o.Rule.ID, "name": o.Rule.Name}, "state": string(o.State), "alarm_id": o.AlarmID,
	})
}
