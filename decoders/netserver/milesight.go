package netserver

import (
	"github.com/penstock/penstock/decoders"
)

// milesight reads the webhook of Milesight's Development Platform, one event or
// a list of them. WEBHOOK_TEST concerns no device and is passed over.
type milesight struct {
	envelope
	eventType string
	dataType  string
	tslID     string
	devEUI    string
	sn        string
	deviceID  string
}

func parseMilesight(p Post) ([]decoders.Frame, error) {
	m := milesight{envelope: newEnvelope(MilesightDP, p.Body)}
	return m.each(m.item)
}

func (m *milesight) item() bool {
	*m = milesight{envelope: m.envelope}
	var key []byte
	for ok := m.r.Object(); ok && m.r.Next(&key); {
		switch string(key) {
		case "eventID":
			m.f.DedupID = m.text("eventID")
		case "eventCreatedTime":
			m.f.NetworkTime = m.instant("eventCreatedTime")
		case "eventType":
			m.eventType = m.text("eventType")
		case "data":
			m.data()
		default:
			m.r.Skip()
		}
	}
	if m.eventType == "WEBHOOK_TEST" {
		return false
	}
	m.complete()
	return true
}

func (m *milesight) data() {
	var key []byte
	for ok := m.r.Object(); ok && m.r.Next(&key); {
		switch string(key) {
		case "type":
			m.dataType = m.text("data.type")
		case "tslID":
			m.tslID = m.text("data.tslID")
		case "deviceProfile":
			m.profile()
		case "payload":
			m.f.Object = m.object("data.payload")
		default:
			m.r.Skip()
		}
	}
}

func (m *milesight) profile() {
	var key []byte
	for ok := m.r.Object(); ok && m.r.Next(&key); {
		switch string(key) {
		case "deviceId":
			m.deviceID = m.text("data.deviceProfile.deviceId")
		case "sn":
			m.sn = m.text("data.deviceProfile.sn")
		case "devEUI":
			m.devEUI = m.text("data.deviceProfile.devEUI")
		case "name":
			m.f.Name = m.text("data.deviceProfile.name")
		case "model":
			m.f.Profile.Model = m.text("data.deviceProfile.model")
		default:
			m.r.Skip()
		}
	}
}

// complete names the device by its devEUI, which cellular ones lack, else by
// its serial number, else by the platform's name for it.
func (m *milesight) complete() {
	f := m.f
	if f.Profile.Model != "" {
		f.Profile.Brand = "milesight-iot" // as the device repository has it
	}
	if f.Identifier, f.IsDevEUI = decoders.NormalizeDevEUI(m.devEUI); !f.IsDevEUI {
		f.Identifier = m.sn
	}
	if f.Identifier == "" {
		f.Identifier = m.deviceID
	}
	m.named("data.deviceProfile")
	m.event()
}

// event keeps what a device measured or reported as an uplink.
func (m *milesight) event() {
	f := m.f
	switch {
	case m.eventType != "DEVICE_DATA":
		f.Kind, f.Text = decoders.Service, m.eventType
	case m.dataType == "PROPERTY" || m.dataType == "EVENT":
		f.Kind = decoders.Uplink
	case m.dataType == "ONLINE" || m.dataType == "OFFLINE":
		f.Kind, f.Text = decoders.Status, m.dataType
	default:
		f.Kind, f.Text = decoders.Service, said(m.dataType, m.tslID)
	}
}
