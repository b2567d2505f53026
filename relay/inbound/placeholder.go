package inbound

import (
	"encoding/hex"
	"strconv"
	"time"
)

// view is a message with the further values of its placeholders.
type view struct {
	*Message
	zone *time.Location
}

// placeholder is one name that a relay's endpoint may contain after a percent
// sign, and the form field that http_post sends for it.
type placeholder struct {
	name  string
	field string
	value func(view) string
}

// placeholders lists those of a kind of relay in the order of the form
// (specification 1, events 3 and 4).
func placeholders(k Kind) []placeholder {
	switch k {
	case Geographic:
		return geographic()
	case VirtualNumber:
		return virtualNumber()
	}
	return nil
}

func geographic() []placeholder {
	return []placeholder{
		{"m", "message", body},
		{"o", "originator", from},
		{"d", "destination", to},
		{"t", "timestamp", func(v view) string { return clock(v.ReceivedAt, time.UTC) }},
		{"x", "unix_time", func(v view) string { return strconv.FormatInt(v.ReceivedAt.Unix(), 10) }},
		{"u", "udh", udh},
		{"i", "message_id", id},
	}
}

func virtualNumber() []placeholder {
	return []placeholder{
		{"id", "id", id},
		{"stat", "stat", func(v view) string { return strconv.Itoa(int(v.Status)) }},
		{"orig", "orig", from},
		{"dest", "dest", to},
		{"msg", "msg", body},
		{"time", "time", func(v view) string { return clock(v.ReceivedAt, v.zone) }},
		{"timeZone", "timeZone", timeZone},
		{"smsTime", "smsTime", smsTime},
		{"netw", "netw", network},
		{"code", "code", func(v view) string { return strconv.Itoa(int(v.Coding)) }},
		{"udh", "udh", udh},
	}
}

func id(v view) string   { return v.ID }
func from(v view) string { return v.From }
func to(v view) string   { return v.To }
func body(v view) string { return v.Body() }
func udh(v view) string  { return hex.EncodeToString(v.UDH) }

func clock(t time.Time, zone *time.Location) string { return t.In(zone).Format(time.DateTime) }

// timeZone is the zone's offset from UTC at receipt in whole hours, those of
// half an hour rounded toward zero.
func timeZone(v view) string {
	_, seconds := v.ReceivedAt.In(v.zone).Zone()
	return strconv.Itoa(seconds / 3600)
}

// smsTime is when the message was sent, or received if the carrier is silent.
func smsTime(v view) string {
	if v.SentAt.IsZero() {
		return clock(v.ReceivedAt, v.zone)
	}
	return clock(v.SentAt, v.zone)
}

func network(v view) string {
	if v.Network != "" {
		return v.Network
	}
	return v.Reference
}
