package netserver

func (e *everynet) radio() {
	var key []byte
	for ok := e.r.Object(); ok && e.r.Next(&key); {
		switch string(key) {
		case "freq":
			e.f.FrequencyHz = e.frequency("params.radio.freq")
		case "time":
			e.heard.Time = e.instant("params.radio.time")
		case "modulation":
			e.modulation()
		case "hardware":
			e.hardware()
		default:
			e.r.Skip()
		}
	}
}

func (e *everynet) lora() {
	var key []byte
	for ok := e.r.Object(); ok && e.r.Next(&key); {
		if string(key) != "header" {
			e.r.Skip()
			continue
		}
		for ok := e.r.Object(); ok && e.r.Next(&key); {
			if string(key) == "confirmed" {
				e.f.Confirmed = e.flag()
			} else {
				e.r.Skip()
			}
		}
	}
}

func (e *everynet) modulation() {
	var key []byte
	for ok := e.r.Object(); ok && e.r.Next(&key); {
		switch string(key) {
		case "bandwidth":
			e.f.BandwidthHz = e.bandwidth("params.radio.modulation.bandwidth")
		case "spreading":
			e.f.SpreadingFactor = e.spreading("params.radio.modulation.spreading")
		default:
			e.r.Skip()
		}
	}
	e.f.DataRate = loraRate(e.f.SpreadingFactor, e.f.BandwidthHz)
}

func (e *everynet) hardware() {
	var key []byte
	for ok := e.r.Object(); ok && e.r.Next(&key); {
		switch string(key) {
		case "rssi":
			e.heard.RSSI = e.number("params.radio.hardware.rssi")
		case "snr":
			e.heard.SNR = e.number("params.radio.hardware.snr")
		case "gps":
			e.heard.Position = e.where()
		default:
			e.r.Skip()
		}
	}
}
