package admin

import (
	"encoding/hex"
	"regexp"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// TryAnswer is the result of a TryRequest.
type TryAnswer struct {
	Account   relay.AccountID `json:"account"` // 0 if the request has none
	DecoderID string          `json:"decoder_id"`
	DeviceID  string          `json:"device_id"`
	Data      []TriedFrame    `json:"data"`
}

// TriedFrame is the result for a frame.
type TriedFrame struct {
	Event      string  `json:"event"` // the id of the event of the frame; empty for a frame of the request
	Identifier string  `json:"identifier"`
	Sender     string  `json:"sender"`
	Time       string  `json:"time"`
	FPort      *int    `json:"fPort"`
	Payload    string  `json:"payload"` // hex
	TookUS     float64 `json:"took_us"`
	// Values are the decoded values, Readings the readings that would be stored, and Stored the
	// currently stored readings.
	Values   []TriedValue   `json:"values"`
	Readings []TriedReading `json:"readings"`
	Stored   []TriedReading `json:"stored"`
	Errors   []SourceError  `json:"errors"`
	Warnings []string       `json:"warnings"`
	Refused  string         `json:"refused"` // the reason why nothing would be stored
	Notes    []string       `json:"notes"`
}

// TriedValue is a decoded value.
type TriedValue struct {
	Key   string   `json:"key"`
	Value *float64 `json:"value"`          // null for a string
	Text  *string  `json:"text,omitempty"` // null for a number
	Time  *string  `json:"time"`           // null for the time of the frame
}

// TriedReading is a reading of a sensor, after slope and offset.
type TriedReading struct {
	Effect       iot.Effect `json:"effect,omitempty"` // compared with the stored reading
	Key          string     `json:"key"`
	SensorID     string     `json:"sensor_id"`
	SensorTypeID string     `json:"sensor_type_id"`
	Time         string     `json:"time"`
	Value        *float64   `json:"value"`
	Text         *string    `json:"text,omitempty"`
}

// SourceError is an error of a decoder, with its position in the source if it is known.
type SourceError struct {
	Message string `json:"message"`
	Line    *int   `json:"line"`
	Column  *int   `json:"column"`
}

func answerOf(r TryRequest, arrivals []iot.Arrival, tried []iot.TrialResult) TryAnswer {
	tryAnswer := TryAnswer{Account: r.owner, DecoderID: r.DecoderID, DeviceID: r.DeviceID, Data: make([]TriedFrame, len(tried))}
	for i, t := range tried {
		a := &arrivals[i]
		frame := TriedFrame{
			Event: a.RecordID, Identifier: a.Frame.Identifier, Sender: a.Frame.Sender, Time: formatTime(t.Time),
			Payload: hex.EncodeToString(a.Frame.Payload), TookUS: float64(t.Took) / float64(time.Microsecond),
			Values: httpd.Each(t.Values, valueOf), Readings: httpd.Each(t.Points, readingOf), Stored: []TriedReading{},
			Errors: httpd.Each(t.Errors, complaintOf), Warnings: append([]string{}, t.Warnings...),
			Refused: t.Refused, Notes: append([]string{}, t.Notes...),
		}
		if a.Frame.HasFPort {
			frame.FPort = new(a.Frame.FPort)
		}
		for n, d := range t.Readings {
			if d.New != nil && n < len(frame.Readings) { // new readings come first in t.Readings, in the order of t.Points
				frame.Readings[n].Effect = d.Effect
			}
			if d.Old != nil {
				frame.Stored = append(frame.Stored, readingOf(*d.Old))
			}
		}
		tryAnswer.Data[i] = frame
	}
	return tryAnswer
}

func valueOf(r decoders.Reading) TriedValue {
	v := TriedValue{Key: r.Key, Time: formatTimeOrNil(r.Time)}
	if r.IsText {
		v.Text = &r.Text
	} else {
		v.Value = &r.Value
	}
	return v
}

func readingOf(p iot.Point) TriedReading {
	r := TriedReading{Key: p.Key, SensorID: p.SensorID, SensorTypeID: p.Type, Time: formatTime(p.Time)}
	if p.IsText {
		r.Text = &p.Text
	} else {
		r.Value = &p.Value
	}
	return r
}

// complaintOf returns an error of a codec with the position that its text contains.
func complaintOf(text string) SourceError {
	c := SourceError{Message: text}
	if match := regexp.MustCompile(`line (\d+), column (\d+)`).FindStringSubmatch(text); match != nil {
		line, _ := strconv.Atoi(match[1])
		column, _ := strconv.Atoi(match[2])
		c.Line, c.Column = &line, &column
	}
	return c
}
