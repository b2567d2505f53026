package netserver

import (
	"strings"

	"github.com/penstock/penstock/decoders"
)

// disruptive reads the events of Disruptive Technologies' data connectors
// (developer.disruptive-technologies.com, event). A sensor's event becomes
// Samples with times of their own, each named by its path within the event's
// data ("humidity.temperature"); an event that only says that something
// happened has the value 1 ("touch").
type disruptive struct {
	envelope
	target, deviceID, project string
	eventType                 string
}

func parseDisruptive(p Post) ([]decoders.Frame, error) {
	d := disruptive{envelope: newEnvelope(Disruptive, p.Body)}
	d.f.Kind = decoders.Uplink
	var key []byte
	for ok := d.r.Object(); ok && d.r.Next(&key); {
		switch string(key) {
		case "event":
			d.event()
		case "labels":
			d.labels()
		case "metadata":
			d.metadata()
		default:
			d.r.Skip()
		}
	}
	d.complete()
	return d.finish()
}

func (d *disruptive) event() {
	f := d.f
	var key []byte
	for ok := d.r.Object(); ok && d.r.Next(&key); {
		switch string(key) {
		case "eventId":
			f.DedupID = d.text("event.eventId")
		case "targetName":
			d.target = d.text("event.targetName")
		case "eventType":
			d.eventType = d.text("event.eventType")
		case "timestamp":
			f.NetworkTime = d.instant("event.timestamp")
		case "data":
			d.data()
		default:
			d.r.Skip()
		}
	}
}

// data holds one object, named as the event's type.
func (d *disruptive) data() {
	var key []byte
	for ok := d.r.Object(); ok && d.r.Next(&key); {
		name := string(key)
		switch name {
		case "networkStatus":
			d.networkStatus()
		case "batteryStatus":
			d.batteryStatus()
		case "labelsChanged", "connectionStatus", "ethernetStatus", "cellularStatus":
			d.f.Object = d.object("event.data." + name)
		default:
			d.measured(name)
		}
	}
}

func (d *disruptive) networkStatus() {
	var key []byte
	for ok := d.r.Object(); ok && d.r.Next(&key); {
		if string(key) == "cloudConnectors" {
			d.gateways(d.cloudConnector)
		} else {
			d.r.Skip()
		}
	}
}

func (d *disruptive) cloudConnector() (g decoders.Gateway) {
	var key []byte
	for ok := d.r.Object(); ok && d.r.Next(&key); {
		switch string(key) {
		case "id":
			g.ID = d.text("event.data.networkStatus.cloudConnectors.id")
		case "rssi":
			g.RSSI = d.number("event.data.networkStatus.cloudConnectors.rssi")
		default:
			d.r.Skip()
		}
	}
	return g
}

func (d *disruptive) batteryStatus() {
	var key []byte
	for ok := d.r.Object(); ok && d.r.Next(&key); {
		if string(key) == "percentage" {
			d.f.Battery = d.percent("event.data.batteryStatus.percentage")
		} else {
			d.r.Skip()
		}
	}
}

func (d *disruptive) labels() {
	var key []byte
	for ok := d.r.Object(); ok && d.r.Next(&key); {
		if string(key) == "name" {
			d.f.Name = d.text("labels.name")
		} else {
			d.r.Skip()
		}
	}
}

func (d *disruptive) metadata() {
	var key []byte
	for ok := d.r.Object(); ok && d.r.Next(&key); {
		switch string(key) {
		case "deviceId":
			d.deviceID = d.text("metadata.deviceId")
		case "projectId":
			d.project = d.text("metadata.projectId")
		case "deviceType":
			d.f.Profile.Name = d.text("metadata.deviceType")
		case "productNumber":
			d.f.Profile.Model = d.text("metadata.productNumber")
		default:
			d.r.Skip()
		}
	}
}

// complete names the device: "projects/P/devices/D" by D.
func (d *disruptive) complete() {
	f := d.f
	project, device, _ := strings.Cut(strings.TrimPrefix(d.target, "projects/"), "/devices/")
	if f.Identifier = device; device == "" {
		f.Identifier = d.deviceID
	}
	if f.Application = d.project; d.project == "" {
		f.Application = project
	}
	d.named("event.targetName")
	switch d.eventType {
	case "networkStatus", "batteryStatus":
		f.Kind = decoders.Status
	case "connectionStatus", "ethernetStatus", "cellularStatus":
		f.Kind, f.Text = decoders.Status, d.eventType
	case "labelsChanged":
		f.Kind, f.Text = decoders.Service, d.eventType
	}
}
