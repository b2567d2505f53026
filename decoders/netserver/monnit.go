package netserver

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// parseMonnit parses iMonnit's data webhook (imonnit.com): a message of a gateway
// and messages of its sensors. Each message is a frame of its own device. All values
// are strings. dataValue is in the sensor's own unit. plotValues are not read, because they
// may be in the account's unit.
func parseMonnit(p Post) ([]decoders.Frame, error) {
	d, err := readDocument(p.Body)
	if err != nil {
		return nil, err
	}
	var gateway string
	d.notes = &notes{sender: Monnit} // discarded: each message has notes of its own
	b := frameList{sender: Monnit, post: &p}
	d.All(func(key string, _ jsonbody.Value, message document) {
		switch {
		case key == "gatewayMessage" && d.Kind(key) == jsonbody.Object:
			gateway = message.Text("gatewayID")
			b.addItem(message, func(message document, f *decoders.Frame) {
				readMonnitGateway(message, f)
				if !d.Has("sensorMessages") {
					message.As("sensorMessages").Warn("sensorMessages", "is missing")
				}
			})
		case key == "sensorMessages":
			d.Each(key, func(message document) { b.addItem(message, readMonnitSensor) })
		}
	})
	for i := range b.frames {
		if f := &b.frames[i]; gateway != "" && f.Kind == decoders.Uplink {
			f.Gateways = []decoders.Gateway{{ID: gateway}}
		}
	}
	return b.frames, b.err
}

func readMonnitGateway(d document, f *decoders.Frame) {
	f.Kind = decoders.Status
	setMonnitDevice(d, f, "gatewayID")
	f.Name = d.Text("gatewayName")
	f.NetworkTime = d.Time("date")
	for _, key := range []string{"power", "messageType", "count", "signalStrength"} {
		setMonnitValue(f, key, d.Text(key))
	}
	if !f.NetworkTime.IsZero() {
		f.DedupID = strconv.FormatInt(f.NetworkTime.Unix(), 10) + ":" + joinValues(f.Object, "messageType", "count")
	}
}

func readMonnitSensor(d document, f *decoders.Frame) {
	f.Kind = decoders.Uplink
	setMonnitDevice(d, f, "sensorID")
	f.Name = d.Text("sensorName")
	f.DedupID = d.Text("dataMessageGUID")
	f.SampleTime = d.Time("messageDate")
	for _, key := range []string{"state", "signalStrength", "voltage"} {
		setMonnitValue(f, key, d.Text(key))
	}
	if !d.Has("dataType") {
		d.Warn("dataType", "is missing")
	}
	members := []string{
		"sensorID", "sensorName", "accountID", "applicationID", "networkID", "dataMessageGUID", "state", "messageDate", "rawData", "dataType",
		"dataValue", "plotValues", "plotLabels", "batteryLevel", "signalStrength", "pendingChange", "voltage",
	}
	for key := range d.Keys() {
		if !slices.Contains(members, key) {
			d.Warn(key, "unknown field ignored")
		}
	}
	value := cmp.Or(d.Text("dataValue"), d.Text("rawData"))
	// Name each part of dataValue after its part of dataType. If their numbers differ, use the
	// whole value under the name dataValue.
	value = unescapeMonnit(value)
	types := splitParts(unescapeMonnit(d.Text("dataType")))
	values := []string{value}
	if len(types) != 1 {
		values = splitParts(value)
	}
	if len(types) == 0 || len(values) != len(types) {
		setMonnitValue(f, "dataValue", value)
		return
	}
	for i, name := range types {
		if _, exists := f.Object[name]; exists {
			name += "_" + strconv.Itoa(i+1)
		}
		setMonnitValue(f, name, values[i])
	}
}

func setMonnitDevice(d document, f *decoders.Frame, id string) {
	if f.Identifier = d.Text(id); f.Identifier == "" {
		d.As("sensorID").Refuse(id, noDevice)
	}
	f.Battery = d.Percent("batteryLevel")
}

func setMonnitValue(f *decoders.Frame, key, s string) {
	if s == "" {
		return
	}
	if f.Object == nil {
		f.Object = make(map[string]any)
	}
	f.Object[key] = convertText(s)
}

// unescapeMonnit decodes the bars and commas that iMonnit percent-encodes.
func unescapeMonnit(s string) string {
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}

// splitParts splits a list at its bars or commas.
func splitParts(s string) []string {
	const maxParts = 50
	list := strings.FieldsFunc(s, func(r rune) bool { return r == '|' || r == ',' })
	return list[:min(len(list), maxParts)]
}

// readMonnitRuleFrame parses iMonnit's rule webhook, which reports that a rule was
// triggered. Its texts are written for people, so they become an alert and no
// readings. The acknowledgeURL is a credential and is not stored.
func readMonnitRuleFrame(d document, f *decoders.Frame) {
	f.Kind = decoders.Alert
	d.Identifier(f, "deviceID", d.Text("deviceID"))
	f.Text = joinTexts(d.Text("rule"), d.Text("subject"), d.Text("reading"))
	// Join the date and the time of day. They have no zone and are assumed to be UTC, like the
	// times of the data webhook.
	day, clock := d.Text("date"), d.Text("time")
	for _, layout := range []string{"2006-1-2 15:04", "2006-1-2 15:04:05", "1/2/2006 3:04 PM", "1/2/2006 15:04"} {
		if t, err := time.Parse(layout, day+" "+clock); err == nil && day != "" {
			f.NetworkTime = t.UTC()
			break
		}
	}
	if f.NetworkTime.IsZero() && day != "" {
		f.TimeNote = "date: is not a time: " + quoteClipped([]byte(day+" "+clock))
	}
	if id := timeID(f); id != "" {
		f.DedupID = id + ":" + f.Text
	}
}

// joinTexts joins the texts that are not empty.
func joinTexts(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), ": ")
}
