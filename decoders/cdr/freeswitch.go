package cdr

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/decimal"
)

// leg is a part of a callflow.
type leg struct {
	Profile struct {
		UUID   string `json:"uuid"`
		From   string `json:"caller_id_number"`
		ANI    string `json:"ani"`
		To     string `json:"destination_number"`
		Source string `json:"network_addr"`
	} `json:"caller_profile"`
	Times struct {
		Created  string `json:"created_time"` // µs
		Answered string `json:"answered_time"`
		Hangup   string `json:"hangup_time"`
	} `json:"times"`
}

// parseFreeSWITCH parses a call of mod_json_cdr. Its values are strings, which many versions
// percent-encode.
func parseFreeSWITCH(raw json.RawMessage, offset int, notes *decoders.Notes) (Call, error) {
	var doc struct {
		Variables map[string]any  `json:"variables"`
		Callflow  json.RawMessage `json:"callflow"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return Call{}, newError("freeswitch", "variables", offset, "is not an object")
	}
	l, err := firstLeg(doc.Callflow)
	if err != nil {
		return Call{}, newError("freeswitch", "callflow", offset, "has no caller_profile")
	}
	v := variables{values: doc.Variables, offset: offset, notes: notes}
	c := Call{
		ID: cmp.Or(v.text("uuid"), unescapePercent(l.Profile.UUID)), From: unescapePercent(cmp.Or(l.Profile.From, l.Profile.ANI)), To: unescapePercent(l.Profile.To),
		Start:       v.time("start", l.Times.Created),
		Answer:      v.time("answer", l.Times.Answered),
		End:         v.time("end", l.Times.Hangup),
		Disposition: v.text("hangup_cause"), Trunk: cmp.Or(v.text("sip_gateway_name"), v.text("sip_gateway"), unescapePercent(l.Profile.Source)),
	}
	c.Duration, c.Billsec = v.integer("duration", secondsBetween(c.Start, c.End)), v.integer("billsec", secondsBetween(c.Answer, c.End))
	return finish(c, "freeswitch", offset)
}

// firstLeg returns the newest leg of a callflow, which is a list or, in older versions, one leg.
func firstLeg(callflow json.RawMessage) (l leg, err error) {
	var legs []leg
	switch {
	case len(callflow) == 0:
		return l, nil
	case json.Unmarshal(callflow, &legs) != nil:
		return l, json.Unmarshal(callflow, &l)
	case len(legs) > 0:
		l = legs[0]
	}
	return l, nil
}

// variables reads the variables of a channel.
type variables struct {
	values map[string]any
	offset int
	notes  *decoders.Notes
}

// ignore notes a variable that cannot be read, and the replacement.
func (v variables) ignore(name, text, replacement string) {
	v.notes.Add(fmt.Sprintf("freeswitch: %s: offset %d: %.40q is not a whole number; %s", name, v.offset, text, replacement))
}

func (v variables) text(name string) string {
	switch x := v.values[name].(type) {
	case string:
		return unescapePercent(x)
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return ""
}

// time reads the variable <name>_epoch in seconds or, if that is missing, 0 or invalid, a time
// of the callflow in microseconds.
func (v variables) time(name, micros string) time.Time {
	text := v.text(name + "_epoch")
	n, err := decimal.PlainInt(text)
	switch {
	case err == nil && n > 0:
		return time.Unix(n, 0).UTC()
	case text != "" && (err != nil || n < 0):
		v.ignore(name+"_epoch", text, "the callflow's time is used")
	}
	if n, err := decimal.PlainInt(unescapePercent(micros)); err == nil && n > 0 {
		return time.UnixMicro(n).UTC().Truncate(time.Second)
	}
	return time.Time{}
}

// integer reads a whole number of seconds. It returns computed if the variable is missing or
// invalid.
func (v variables) integer(name string, computed int64) int64 {
	text := v.text(name)
	n, err := decimal.PlainInt(text)
	switch {
	case err == nil:
		return n
	case text != "":
		v.ignore(name, text, "it is computed from the times")
	}
	return computed
}

// unescapePercent decodes a percent-encoded string. It returns s unchanged if the encoding is
// invalid.
func unescapePercent(s string) string {
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}
