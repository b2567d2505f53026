package netserver

import (
	"time"

	"github.com/penstock/penstock/decoders"
)

// ttnV2Frame reads the uplinks of The Things Network's HTTP integration of
// version 2, which is shut down but lives on in simulators and old stacks.
func ttnV2Frame(d document, f *decoders.Frame) {
	f.Kind = decoders.Uplink
	ttnV2Device(d, f)
	f.FPort, f.HasFPort = d.FPort("port")
	f.FCnt, f.HasFCnt = d.FCnt("counter")
	f.Payload = d.Base64("payload_raw")
	f.Object = d.Object("payload_fields")
	f.Gateways = d.Gateways("metadata.gateways", ttnV2Gateway)
	f.Position = d.Place("metadata.latitude", "metadata.longitude")
	f.NetworkTime = firstTime(d.Time("metadata.time"), gatewayTime(f.Gateways, time.Time{}))
	f.DedupID = counted(f)
}

// ttnV2Device names the device by its serial number, a devEUI, or else by its
// name within the application.
func ttnV2Device(d document, f *decoders.Frame) {
	f.Name = d.Text("dev_id")
	serial := d.Text("hardware_serial")
	if f.Identifier, f.IsDevEUI = decoders.NormalizeDevEUI(serial); f.IsDevEUI {
		return
	}
	if serial != "" {
		d.Warn("hardware_serial", notDevEUI)
	}
	if f.Name == "" {
		d.Refuse("dev_id", noDevice)
	}
	f.Identifier = d.Text("app_id") + "/" + f.Name
}

func ttnV2Gateway(d document) decoders.Gateway {
	return decoders.Gateway{
		ID:       d.Text("gtw_id"),
		RSSI:     d.Number("rssi"),
		SNR:      d.Number("snr"),
		Time:     d.Time("time"),
		Position: d.Place("latitude", "longitude"),
	}
}
