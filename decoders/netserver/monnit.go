package netserver

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// monnit reads what iMonnit posts (imonnit.com, data webhook): one message of a
// gateway and those of its sensors, each a device of its own. All values are
// strings. dataValue is in the sensor's own unit; plotValues, which may be in
// the account's, are not read.
type monnit struct {
	envelope
	frames  []decoders.Frame
	first   error
	items   int
	gateway string
	sensor  struct{ dataType, dataValue, raw string }
}

func parseMonnit(p Post) ([]decoders.Frame, error) {
	m := monnit{envelope: newEnvelope(Monnit, p.Body)}
	var key []byte
	for ok := m.r.Object(); ok && m.r.Next(&key); {
		switch string(key) {
		case "gatewayMessage":
			m.message(decoders.Status, m.gatewayField)
		case "sensorMessages":
			for ok := m.r.Array(); ok && m.r.More(); {
				m.message(decoders.Uplink, m.sensorField)
			}
		default:
			m.r.Skip()
		}
	}
	if err := m.r.Close(); err != nil {
		return nil, err
	}
	m.heard()
	return m.frames, m.first
}

// message reads one message into a frame of its own.
func (m *monnit) message(kind decoders.EventKind, field func(key []byte)) {
	if len(m.frames) >= maxFrames {
		m.r.Skip()
		m.first = tooMany(string(Monnit))
		return
	}
	m.f, m.err = &decoders.Frame{Sender: string(Monnit), Kind: kind}, nil
	m.sensor.dataType, m.sensor.dataValue, m.sensor.raw = "", "", ""
	var key []byte
	for ok := m.r.Object(); ok && m.r.Next(&key); {
		field(key)
	}
	m.complete()
	if m.err == nil {
		m.frames = append(m.frames, *m.f)
	} else if m.first == nil {
		m.first = inItem(m.items, m.err)
	}
	m.items++
}

func (m *monnit) gatewayField(key []byte) {
	f := m.f
	switch string(key) {
	case "gatewayID":
		f.Identifier = m.text("gatewayMessage.gatewayID")
		m.gateway = f.Identifier
	case "gatewayName":
		f.Name = m.text("gatewayMessage.gatewayName")
	case "networkID":
		f.Application = m.text("gatewayMessage.networkID")
	case "batteryLevel":
		f.Battery = m.percent("gatewayMessage.batteryLevel")
	case "date":
		f.NetworkTime = m.instant("gatewayMessage.date")
	case "power", "messageType", "count", "signalStrength":
		m.value(string(key), m.text("gatewayMessage."+string(key)))
	default:
		m.r.Skip()
	}
}

func (m *monnit) sensorField(key []byte) {
	f := m.f
	switch string(key) {
	case "sensorID":
		f.Identifier = m.text("sensorMessages.sensorID")
	case "sensorName":
		f.Name = m.text("sensorMessages.sensorName")
	case "applicationID":
		f.Profile.ID = m.text("sensorMessages.applicationID")
	case "networkID":
		f.Application = m.text("sensorMessages.networkID")
	case "dataMessageGUID":
		f.DedupID = m.text("sensorMessages.dataMessageGUID")
	case "messageDate":
		f.SampleTime = m.instant("sensorMessages.messageDate")
	case "batteryLevel":
		f.Battery = m.percent("sensorMessages.batteryLevel")
	case "dataType":
		m.sensor.dataType = m.text("sensorMessages.dataType")
	case "dataValue":
		m.sensor.dataValue = m.text("sensorMessages.dataValue")
	case "rawData":
		m.sensor.raw = m.text("sensorMessages.rawData")
	case "state", "signalStrength", "voltage":
		m.value(string(key), m.text("sensorMessages."+string(key)))
	default:
		m.r.Skip()
	}
}

func (m *monnit) value(key, s string) {
	if s == "" {
		return
	}
	if m.f.Object == nil {
		m.f.Object = make(map[string]any)
	}
	m.f.Object[key] = loosely(s)
}

func (m *monnit) complete() {
	f := m.f
	m.named("sensorID")
	if f.Kind == decoders.Status {
		if !f.NetworkTime.IsZero() {
			f.DedupID = strconv.FormatInt(f.NetworkTime.Unix(), 10) + ":" + text(f.Object, "messageType", "count")
		}
		return
	}
	m.measurements()
}

// measurements names each part of dataValue by its part of dataType. Where the
// two do not match, the whole stands under dataValue.
func (m *monnit) measurements() {
	value := m.sensor.dataValue
	if value == "" {
		value = m.sensor.raw
	}
	value = plain(value)
	types := parts(plain(m.sensor.dataType))
	values := []string{value}
	if len(types) != 1 {
		values = parts(value)
	}
	if len(types) == 0 || len(values) != len(types) {
		m.value("dataValue", value)
		return
	}
	for i, name := range types {
		if _, taken := m.f.Object[name]; taken {
			name += "_" + strconv.Itoa(i+1)
		}
		m.value(name, values[i])
	}
}

// plain undoes the percent-encoding that iMonnit gives to bars and commas.
func plain(s string) string {
	if p, err := url.PathUnescape(s); err == nil {
		return p
	}
	return s
}

// parts splits a list at its bars or commas.
func parts(s string) []string {
	const most = 50
	list := strings.FieldsFunc(s, func(r rune) bool { return r == '|' || r == ',' })
	return list[:min(len(list), most)]
}

// heard notes the gateway with every sensor's message.
func (m *monnit) heard() {
	if m.gateway == "" {
		return
	}
	for i := range m.frames {
		if f := &m.frames[i]; f.Kind == decoders.Uplink {
			f.Gateways = []decoders.Gateway{{ID: m.gateway}}
		}
	}
}
