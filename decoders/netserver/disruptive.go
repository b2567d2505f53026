package netserver

import (
	"cmp"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// readDisruptiveFrame parses the events of Disruptive Technologies' data connectors
// (developer.disruptive-technologies.com, event). The values of a sensor's event become
// Samples, each named by its path within the event's data ("humidity.temperature"). An event
// without values becomes a sample of 1 ("touch").
func readDisruptiveFrame(d document, f *decoders.Frame) {
	// targetName is "projects/P/devices/D", where D is the device.
	_, device, _ := strings.Cut(strings.TrimPrefix(d.Text("event.targetName"), "projects/"), "/devices/")
	d.Identifier(f, "event.targetName", cmp.Or(device, d.Text("metadata.deviceId")))
	f.Kind = decoders.Uplink
	switch eventType := d.Text("event.eventType"); eventType {
	case "networkStatus", "batteryStatus":
		f.Kind = decoders.Status
	case "connectionStatus", "ethernetStatus", "cellularStatus":
		f.Kind, f.Text = decoders.Status, eventType
	case "labelsChanged":
		f.Kind, f.Text = decoders.Service, eventType
	}
	f.DedupID = d.Text("event.eventId")
	f.NetworkTime = d.Time("event.timestamp")
	f.Name = d.Text("labels.name")
	// event.data has one object, whose name is the event's type.
	data := d.In("event.data")
	if !d.Has("event.data") {
		d.Warn("event.data", "is missing")
	}
	data.All(func(name string, v jsonbody.Value, d document) {
		if !isPresent(v) {
			return // a null of another event type
		}
		switch name {
		case "networkStatus":
			f.Gateways = d.Gateways("cloudConnectors", func(g document) decoders.Gateway {
				return decoders.Gateway{ID: g.Text("id"), RSSI: g.Number("rssi")}
			})
		case "batteryStatus":
			f.Battery = d.Percent("percentage")
		case "labelsChanged", "connectionStatus", "ethernetStatus", "cellularStatus":
			f.Object = data.Object(name)
		default:
			addDisruptiveSamples(f, name, d)
		}
	})
}

// addDisruptiveSamples reads the values of a sensor: the samples, and the other values unless the
// samples have the same keys.
func addDisruptiveSamples(f *decoders.Frame, name string, d document) {
	t := d.Time("updateTime")
	if !d.Has("updateTime") {
		d.WarnTime("updateTime", "is missing")
	}
	sampleKeys := make(map[string]bool) // keys of the samples
	d.Each("samples", func(sample document) {
		t := sample.Time("sampleTime")
		if !sample.Has("sampleTime") {
			sample.WarnTime("sampleTime", "is missing")
		}
		sample.All(func(key string, v jsonbody.Value, _ document) {
			if key == "sampleTime" {
				return
			}
			sampleKeys[name+"."+key] = true
			if !addSample(f, name+"."+key, v, t, false) && isPresent(v) {
				sample.Warn(key, noValue)
			}
		})
	})
	n := 0
	d.All(func(key string, v jsonbody.Value, _ document) {
		if key == "updateTime" || key == "samples" {
			return
		}
		key = name + "." + key
		if n++; n > maxSamples {
			setExcess(f, key)
		} else if !sampleKeys[key] && !addSample(f, key, v, t, false) && isPresent(v) {
			d.Warn(strings.TrimPrefix(key, name+"."), noValue)
		}
	})
	if n == 0 && len(sampleKeys) == 0 {
		f.Samples = append(f.Samples, decoders.Reading{Key: name, Value: 1, Time: t})
	}
	if f.SampleTime.IsZero() {
		f.SampleTime = t
	}
}
