package netserver

import (
	"cmp"

	"github.com/penstock/penstock/decoders"
)

// readMilesightFrame parses the webhook of Milesight's Development Platform, one
// event or a list of events. A WEBHOOK_TEST has no device and is discarded.
func readMilesightFrame(d document, f *decoders.Frame) {
	eventType := d.Text("eventType")
	if eventType == "WEBHOOK_TEST" {
		return
	}
	// Properties and events of a device are uplinks.
	dataType, tsl := d.Text("data.type"), d.Text("data.tslID")
	switch {
	case eventType != "DEVICE_DATA":
		f.Kind, f.Text = decoders.Service, eventType
	case dataType == "PROPERTY" || dataType == "EVENT":
		f.Kind = decoders.Uplink
	case dataType == "ONLINE" || dataType == "OFFLINE":
		f.Kind, f.Text = decoders.Status, dataType
	default:
		f.Kind, f.Text = decoders.Service, joinTexts(dataType, tsl)
		d.Warn("data.type", "is neither PROPERTY nor EVENT, so this is not an uplink")
	}
	profile := d.In("data.deviceProfile")
	f.Name = profile.Text("name")
	// Cellular devices have no devEUI.
	eui, isEUI := decoders.NormalizeDevEUI(profile.Text("devEUI"))
	d.Identifier(f, "data.deviceProfile", cmp.Or(eui, profile.Text("sn"), profile.Text("deviceId")))
	f.IsDevEUI = isEUI
	f.DedupID = d.Text("eventID")
	f.NetworkTime = d.Time("eventCreatedTime")
	f.Object = d.Object("data.payload")
}
