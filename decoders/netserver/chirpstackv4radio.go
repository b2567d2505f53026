package netserver

import "github.com/penstock/penstock/decoders"

// gateway reads one entry of rxInfo. Of its times gwTime, the gateway's own,
// is preferred.
func (c *chirpStackV4) gateway() (g decoders.Gateway) {
	var key []byte
	for ok := c.r.Object(); ok && c.r.Next(&key); {
		switch string(key) {
		case "gatewayId":
			g.ID = c.text("rxInfo.gatewayId")
		case "rssi":
			g.RSSI = c.number("rxInfo.rssi")
		case "snr":
			g.SNR = c.number("rxInfo.snr")
		case "gwTime", "nsTime", "time":
			if t := c.time("rxInfo." + string(key)); g.Time.IsZero() || string(key) == "gwTime" {
				g.Time = t
			}
		case "location":
			g.Position = c.position("rxInfo.location")
		default:
			c.r.Skip()
		}
	}
	return g
}

func (c *chirpStackV4) txInfo() {
	var key []byte
	for ok := c.r.Object(); ok && c.r.Next(&key); {
		switch string(key) {
		case "frequency":
			c.f.FrequencyHz, _ = c.integer("txInfo.frequency", 1e11)
		case "modulation":
			c.modulation()
		default:
			c.r.Skip()
		}
	}
}

func (c *chirpStackV4) modulation() {
	var key []byte
	for ok := c.r.Object(); ok && c.r.Next(&key); {
		if string(key) == "lora" {
			c.lora()
		} else {
			c.r.Skip()
		}
	}
}

func (c *chirpStackV4) lora() {
	var key []byte
	for ok := c.r.Object(); ok && c.r.Next(&key); {
		switch string(key) {
		case "bandwidth":
			n, _ := c.integer("txInfo.modulation.lora.bandwidth", 1e7)
			c.f.BandwidthHz = int(n)
		case "spreadingFactor":
			n, _ := c.integer("txInfo.modulation.lora.spreadingFactor", 12)
			c.f.SpreadingFactor = int(n)
		default:
			c.r.Skip()
		}
	}
	c.f.DataRate = loraRate(c.f.SpreadingFactor, c.f.BandwidthHz)
}
