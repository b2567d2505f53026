package netserver

import "github.com/penstock/penstock/decoders"

// parseMilesight reads the webhook of Milesight's Development Platform, one
// event or a list of them. WEBHOOK_TEST concerns no device and is passed over.
func parseMilesight(p Post) ([]decoders.Frame, error) {
	return eachFrame(MilesightDP, p.Body, milesightFrame)
}

func milesightFrame(d document, f *decoders.Frame) {
	eventType := d.Text("eventType")
	if eventType == "WEBHOOK_TEST" {
		return
	}
	milesightEvent(d, f, eventType)
	milesightDevice(d.In("data.deviceProfile"), f)
	if f.Identifier == "" {
		d.Refuse("data.deviceProfile", noDevice)
	}
	f.DedupID = d.Text("eventID")
	f.NetworkTime = d.Time("eventCreatedTime")
	f.Object = d.Object("data.payload")
}

// milesightDevice names the device by its devEUI, which cellular ones lack,
// else by its serial number, else by the platform's name for it.
func milesightDevice(d document, f *decoders.Frame) {
	f.Name = d.Text("name")
	if f.Profile.Model = d.Text("model"); f.Profile.Model != "" {
		f.Profile.Brand = "milesight-iot" // as the device repository has it
	}
	serial, id := d.Text("sn"), d.Text("deviceId")
	if f.Identifier, f.IsDevEUI = decoders.NormalizeDevEUI(d.Text("devEUI")); !f.IsDevEUI {
		f.Identifier = serial
	}
	if f.Identifier == "" {
		f.Identifier = id
	}
}

// milesightEvent keeps what a device measured or reported as an uplink.
func milesightEvent(d document, f *decoders.Frame, eventType string) {
	data, tsl := d.Text("data.type"), d.Text("data.tslID")
	switch {
	case eventType != "DEVICE_DATA":
		f.Kind, f.Text = decoders.Service, eventType
	case data == "PROPERTY" || data == "EVENT":
		f.Kind = decoders.Uplink
	case data == "ONLINE" || data == "OFFLINE":
		f.Kind, f.Text = decoders.Status, data
	default:
		f.Kind, f.Text = decoders.Service, said(data, tsl)
	}
}
