package netserver

import (
	"encoding/hex"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// gateway reads one entry of rxInfo, in which LoRaServer puts the gateway's
// position beside its name.
func (c *chirpStackV3) gateway() (g decoders.Gateway) {
	var key []byte
	var lat, lon, alt *float64
	for ok := c.r.Object(); ok && c.r.Next(&key); {
		switch string(key) {
		case "gatewayID", "mac":
			g.ID = eui(c.r.Value())
		case "rssi":
			g.RSSI = c.number("rxInfo.rssi")
		case "loRaSNR":
			g.SNR = c.number("rxInfo.loRaSNR")
		case "time":
			g.Time = c.instant("rxInfo.time")
		case "location":
			g.Position = c.where()
		case "latitude":
			lat = c.coordinate()
		case "longitude":
			lon = c.coordinate()
		case "altitude":
			alt = c.coordinate()
		case "uplinkID":
			c.uplink()
		default:
			c.r.Skip()
		}
	}
	if g.Position == nil {
		g.Position = place(lat, lon, alt)
	}
	return g
}

// uplink keeps the identifier of the first reception, a UUID in base64 or hex.
// Old gateways have none, which some servers write as zeros.
func (c *chirpStackV3) uplink() {
	v := c.r.Value()
	if c.uplinkID != "" {
		return
	}
	id := v.String()
	if b, ok := v.Base64(); ok && len(b) == 16 {
		id = hex.EncodeToString(b)
	}
	if strings.Trim(id, "0-") != "" {
		c.uplinkID = id
	}
}

// where reads a position whose zeros mean that there is none.
func (e *envelope) where() *decoders.Position {
	var key []byte
	var lat, lon, alt *float64
	for ok := e.r.Object(); ok && e.r.Next(&key); {
		switch string(key) {
		case "latitude", "lat":
			lat = e.coordinate()
		case "longitude", "lng", "lon":
			lon = e.coordinate()
		case "altitude", "alt":
			alt = e.coordinate()
		default:
			e.r.Skip()
		}
	}
	return place(lat, lon, alt)
}

func (c *chirpStackV3) txInfo() {
	var key []byte
	for ok := c.r.Object(); ok && c.r.Next(&key); {
		switch string(key) {
		case "frequency":
			c.f.FrequencyHz = c.frequency("txInfo.frequency")
		case "loRaModulationInfo", "dataRate":
			c.modulation()
		default:
			c.r.Skip()
		}
	}
}

func (c *chirpStackV3) modulation() {
	var key []byte
	for ok := c.r.Object(); ok && c.r.Next(&key); {
		switch string(key) {
		case "bandwidth":
			c.f.BandwidthHz = c.bandwidth("txInfo.bandwidth")
		case "spreadingFactor", "spreadFactor":
			c.f.SpreadingFactor = c.spreading("txInfo.spreadingFactor")
		default:
			c.r.Skip()
		}
	}
	c.f.DataRate = loraRate(c.f.SpreadingFactor, c.f.BandwidthHz)
}
