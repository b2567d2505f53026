package cdr

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/decimal"
)

// leg is a part of a callflow: who called whom.
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

// freeSWITCH reads a call of mod_json_cdr. Its values are strings, percent
// encoded in many versions.
func freeSWITCH(raw json.RawMessage, offset int, notes *decoders.Notes) (Call, error) {
	var doc struct {
		Variables map[string]any  `json:"variables"`
		Callflow  json.RawMessage `json:"callflow"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return Call{}, reject("freeswitch", "variables", offset, "is not an object")
	}
	l, err := firstLeg(doc.Callflow)
	if err != nil {
		return Call{}, reject("freeswitch", "callflow", offset, "holds no caller_profile")
	}
	v := variables{values: doc.Variables, offset: offset, notes: notes}
	c := Call{
		ID: cmp.Or(v.text("uuid"), unescapePercent(l.Profile.UUID)), From: unescapePercent(cmp.Or(l.Profile.From, l.Profile.ANI)), To: unescapePercent(l.Profile.To),
		Start:       v.moment("start", l.Times.Created),
		Answer:      v.moment("answer", l.Times.Answered),
		End:         v.moment("end", l.Times.Hangup),
		Disposition: v.text("hangup_cause"), Trunk: cmp.Or(v.text("sip_gateway_name"), v.text("sip_gateway"), unescapePercent(l.Profile.Source)),
	}
	c.Duration, c.Billsec = v.integer("duration", seconds(c.Start, c.End)), v.integer("billsec", seconds(c.Answer, c.End))
	return finish(c, "freeswitch", offset)
}

// firstLeg is the newest part of a callflow, which older versions write alone.
func firstLeg(raw json.RawMessage) (l leg, err error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return l, nil
	}
	if raw[0] == '[' {
		var many []leg
		if err = json.Unmarshal(raw, &many); err == nil && len(many) > 0 {
			l = many[0]
		}
		return l, err
	}
	return l, json.Unmarshal(raw, &l)
}

// variables are a channel's.
type variables struct {
	values map[string]any
	offset int
	notes  *decoders.Notes
}

// ignore notes a variable that cannot be read.
func (v variables) ignore(name, text, instead string) {
	v.notes.Add(fmt.Sprintf("freeswitch: %s: offset %d: %.40q is not a whole number; %s", name, v.offset, text, instead))
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

// moment reads <name>_epoch (s), else microseconds of the callflow; 0 is none.
func (v variables) moment(name, micros string) time.Time {
	text := v.text(name + "_epoch")
	n, err := decimal.Digits(text)
	switch {
	case err == nil && n > 0:
		return time.Unix(n, 0).UTC()
	case text != "" && (err != nil || n < 0):
		v.ignore(name+"_epoch", text, "the callflow's time is used")
	}
	if n, err := decimal.Digits(unescapePercent(micros)); err == nil && n > 0 {
		return time.UnixMicro(n).UTC().Truncate(time.Second)
	}
	return time.Time{}
}

func (v variables) integer(name string, otherwise int64) int64 {
	text := v.text(name)
	n, err := decimal.Digits(text)
	switch {
	case err == nil:
		return n
	case text != "":
		v.ignore(name, text, "it is computed from the times")
	}
	return otherwise
}

// unescapePercent undoes percent encoding, where there is any.
func unescapePercent(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	if p, err := url.PathUnescape(s); err == nil {
		return p
	}
	return s
}
