package netserver

import (
	"encoding/hex"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// chirpStackV3Radio reads how the frame was heard and returns the identifier of
// the first reception that has one.
func chirpStackV3Radio(d document, f *decoders.Frame) (uplinkID string) {
	f.Gateways = d.Gateways("rxInfo", func(d document) decoders.Gateway {
		if uplinkID == "" {
			uplinkID = chirpStackV3UplinkID(d)
		}
		return chirpStackV3Gateway(d)
	})
	fillSNR(f.Gateways)
	if d.Has("gatewayID") {
		f.Gateways = []decoders.Gateway{{ID: eui(d.Value("gatewayID"))}}
	}
	f.FrequencyHz = d.Frequency("txInfo.frequency")
	modulation := d.As("txInfo").In("txInfo.loRaModulationInfo|dataRate")
	f.BandwidthHz = modulation.Bandwidth("bandwidth")
	f.SpreadingFactor = modulation.As("txInfo.spreadingFactor").Spreading("spreadingFactor|spreadFactor")
	f.DataRate = loraRate(f.SpreadingFactor, f.BandwidthHz)
	return uplinkID
}

// chirpStackV3Gateway reads one entry of rxInfo, in which LoRaServer puts the
// gateway's position beside its name.
func chirpStackV3Gateway(d document) decoders.Gateway {
	g := decoders.Gateway{
		ID:       eui(d.Value("gatewayID|mac")),
		RSSI:     d.Number("rssi"),
		SNR:      d.Number("loRaSNR"),
		Time:     d.Time("time"),
		Position: d.Position("location"),
	}
	if g.Position == nil {
		g.Position = d.Place("latitude", "longitude", "altitude")
	}
	return g
}

// chirpStackV3UplinkID is a UUID in base64 or hex. Old gateways have none, which
// some servers write as zeros.
func chirpStackV3UplinkID(d document) string {
	v := d.Value("uplinkID")
	id := v.String()
	if b, ok := v.Base64(); ok && len(b) == 16 {
		id = hex.EncodeToString(b)
	}
	if strings.Trim(id, "0-") == "" {
		return ""
	}
	return id
}
