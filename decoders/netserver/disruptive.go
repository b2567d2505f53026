package netserver

import (
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// parseDisruptive reads the events of Disruptive Technologies' data connectors
// (developer.disruptive-technologies.com, event). A sensor's event becomes
// Samples with times of their own, each named by its path within the event's
// data ("humidity.temperature"); an event that only says that something
// happened has the value 1 ("touch").
func parseDisruptive(p Post) ([]decoders.Frame, error) {
	return oneFrame(Disruptive, p.Body, disruptiveFrame)
}

func disruptiveFrame(d document, f *decoders.Frame) {
	disruptiveDevice(d, f)
	disruptiveEvent(f, d.Text("event.eventType"))
	f.DedupID = d.Text("event.eventId")
	f.NetworkTime = d.Time("event.timestamp")
	f.Name = d.Text("labels.name")
	f.Profile.Name = d.Text("metadata.deviceType")
	f.Profile.Model = d.Text("metadata.productNumber")
	// It holds one object, named as the event's type.
	data := d.In("event.data")
	data.All(func(name string, _ jsonbody.Value, in document) {
		switch name {
		case "networkStatus":
			f.Gateways = in.Gateways("cloudConnectors", func(g document) decoders.Gateway {
				return decoders.Gateway{ID: g.Text("id"), RSSI: g.Number("rssi")}
			})
		case "batteryStatus":
			f.Battery = in.Percent("percentage")
		case "labelsChanged", "connectionStatus", "ethernetStatus", "cellularStatus":
			f.Object = data.Object(name)
		default:
			measured(f, name, in)
		}
	})
}

// disruptiveDevice names the device: "projects/P/devices/D" by D.
func disruptiveDevice(d document, f *decoders.Frame) {
	project, device, _ := strings.Cut(strings.TrimPrefix(d.Text("event.targetName"), "projects/"), "/devices/")
	id := d.Text("metadata.deviceId")
	if f.Identifier = device; device == "" {
		f.Identifier = id
	}
	if f.Application = d.Text("metadata.projectId"); f.Application == "" {
		f.Application = project
	}
	if f.Identifier == "" {
		d.Refuse("event.targetName", noDevice)
	}
}

func disruptiveEvent(f *decoders.Frame, eventType string) {
	f.Kind = decoders.Uplink
	switch eventType {
	case "networkStatus", "batteryStatus":
		f.Kind = decoders.Status
	case "connectionStatus", "ethernetStatus", "cellularStatus":
		f.Kind, f.Text = decoders.Status, eventType
	case "labelsChanged":
		f.Kind, f.Text = decoders.Service, eventType
	}
}
