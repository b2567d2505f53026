package rule

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// deliveries returns one delivery for each parameter of each action. Several
// occurrences, of a rule with a batch, share one.
//
// The deliveries are complete, up to limit, even with an error: it names bodies whose
// expression failed, in whose place the usual ones are sent.
func (a *actions) deliveries(occurrences []Occurrence, acct relay.AccountID, s Settings, limit int) ([]outbox.Delivery, error) {
	if len(occurrences) == 0 || limit == 0 {
		return nil, nil
	}
	earliest, now := &occurrences[0], s.Now()
	var ds []outbox.Delivery
	var failed []error
	for i := range a.actions {
		action := &a.actions[i]
		content, err := action.content(occurrences, a.named, &s)
		if err != nil {
			failed = append(failed, fmt.Errorf("actions[%d].body: %w", i, err))
		}
		for j, parameter := range action.declared.Parameters {
			if len(ds) == limit {
				return ds, errors.Join(failed...)
			}
			d := outbox.Delivery{
				ID: earliest.deliveryID(acct, i, j), Account: acct, Kind: outbox.KindRule, Relay: earliest.Rule.ID, MessageID: earliest.fn(),
				State: outbox.Queued, CreatedAt: now.Add(time.Duration(len(ds))), Trace: earliest.Trace, Pace: outbox.Pace{Ordered: earliest.Rule.Ordered},
				Endpoint: outbox.EndpointID(acct, string(outbox.KindRule), earliest.Rule.ID, action.declared.Action, parameter),
			}
			content.fill(&d, action, j, earliest, &s)
			ds = append(ds, d)
		}
	}
	return ds, errors.Join(failed...)
}

// about is the alarm, or the frame that is forwarded.
func (o *Occurrence) fn() string {
	if o.AlarmID != "" {
		return o.AlarmID
	}
	return o.Record
}

// FrameKey names the frame of an occurrence, empty if there was none. A frame with a
// counter has the same key when it is posted again, also after its first post was
// forgotten, since keys of duplicates are not kept for certain; any other is named by
// its journal record.
func (o *Occurrence) FrameKey() string {
	if o.Record == "" || o.Radio == nil || o.Radio.FCnt == nil {
		return o.Record
	}
	kind, _ := o.Event["type"].(string)
	return fmt.Sprint(o.Device.ID, " ", o.Time.UnixNano(), " ", *o.Radio.FCnt, kind)
}

// content is what an action sends to all of its parameters.
type content struct {
	body []byte
	note note
}

func (a *action) content(occurrences []Occurrence, named []string, s *Settings) (c content, err error) {
	switch a.declared.Action {
	case HTTPPost:
		c.body, err = a.post(occurrences, s)
	case Email:
		c.note, err = a.mail(occurrences, named, s)
	case SMS:
		c.note, err = a.note(&occurrences[0], named, s)
	}
	return c, err
}

// fill completes a delivery with what goes to a parameter.
func (c *content) fill(d *outbox.Delivery, a *action, parameter int, o *Occurrence, s *Settings) {
	target := a.declared.Parameters[parameter]
	switch a.declared.Action {
	case Email:
		d.Mail = &outbox.Mail{To: target, Subject: c.note.subject, Text: c.note.text, MessageID: d.ID + "@" + s.MailDomain}
		return
	case SMS:
		d.SMS = &outbox.SMS{Originator: a.declared.Originator, To: target, Text: c.note.text}
		d.Originator, d.Destination = a.declared.Originator, target
		return
	}
	url := a.urls[parameter].Expand(func(name string) string { return o.placeholder(name, s.Zone) })
	if a.declared.Action == HTTPGet {
		d.Request = &outbox.Request{Method: http.MethodGet, URL: url}
		return
	}
	d.Request = &outbox.Request{Method: http.MethodPost, URL: url, ContentType: "application/json", Body: c.body}
}

// deliveryID names the delivery of an occurrence to one parameter. The same again
// gives the same id, so that a frame that is processed or posted twice sends once; a batch is
// named after its first frame, which is in no other. A corrected parameter gives
// another id.
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
