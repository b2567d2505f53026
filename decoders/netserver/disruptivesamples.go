package netserver

import (
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// measured reads a sensor's values: the samples where there are any, and of
// the rest what the samples do not hold.
func (d *disruptive) measured(name string) {
	m := measurement{name: name, d: d}
	var key []byte
	for ok := d.r.Object(); ok && d.r.Next(&key); {
		switch string(key) {
		case "updateTime":
			m.at = d.instant("event.data." + name + ".updateTime")
		case "samples":
			for ok := d.r.Array(); ok && d.r.More(); {
				m.sample()
			}
		default:
			m.hold(string(key), d.r.Value())
		}
	}
	m.complete()
}

// measurement is one event's values on their way to Samples.
type measurement struct {
	d    *disruptive
	name string
	at   time.Time
	held []struct {
		key string
		v   jsonbody.Value
	}
	sampled map[string]bool // keys that samples hold
}

func (m *measurement) hold(key string, v jsonbody.Value) {
	if len(m.held) < maxSamples {
		m.held = append(m.held, struct {
			key string
			v   jsonbody.Value
		}{m.name + "." + key, v})
	}
}

// sample reads one of several samples; its time may follow its values.
func (m *measurement) sample() {
	d, from := m.d, len(m.d.f.Samples)
	var at time.Time
	var key []byte
	for ok := d.r.Object(); ok && d.r.Next(&key); {
		if string(key) == "sampleTime" {
			at = d.instant("event.data." + m.name + ".samples.sampleTime")
			continue
		}
		name := m.name + "." + string(key)
		d.sample(name, d.r.Value(), time.Time{}, false)
		if m.sampled == nil {
			m.sampled = make(map[string]bool)
		}
		m.sampled[name] = true
	}
	for i := from; i < len(d.f.Samples); i++ {
		d.f.Samples[i].Time = at
	}
}

func (m *measurement) complete() {
	d := m.d
	for _, h := range m.held {
		if !m.sampled[h.key] {
			d.sample(h.key, h.v, m.at, false)
		}
	}
	if len(m.held) == 0 && m.sampled == nil {
		d.f.Samples = append(d.f.Samples, decoders.Reading{Key: m.name, Value: 1, Time: m.at})
	}
	if d.f.SampleTime.IsZero() {
		d.f.SampleTime = m.at
	}
}
