package contract

// hookSamples returns successful requests to the webhooks of network servers: frames and
// requests for a downlink, with each method that the webhooks accept.
func hookSamples() []sample {
	const js, form = "application/json", "application/x-www-form-urlencoded"
	const callback = "?device=1CF2A0&time=1763631255&data=01020304&seqNumber=7&rssi=-121.5&snr=9.1&station=1A2B"
	const fields = "device=1CF2A0&time=1763631255&data=01020304&seqNumber=8&rssi=-121.5&snr=9.1&station=1A2B&duplicate=false"
	list := []sample{
		{"optionsGeneric", "OPTIONS", "/webhooks/generic", "", ""},
		{"optionsGenericOfDevice", "OPTIONS", "/webhooks/generic/shed", "", ""},
	}
	for name, path := range map[string]string{"Lorawan": "lorawan", "Community": "community", "LPWAN": "lpwan", "SensorVendor": "sensor-vendor"} {
		for suffix, pathSuffix := range map[string]string{"": "", "Below": "/data/up"} {
			target := "/webhooks/" + path + pathSuffix
			list = append(list,
				sample{"options" + name + suffix, "OPTIONS", target, "", ""},
				sample{"frame" + name + suffix, "POST", target + "?decoder_id=lpp&event=up", js, `{"nothing":1}`},
				sample{"frame" + name + suffix, "POST", target, form, fields},
				sample{"frame" + name + suffix, "POST", target, form, fields + "&ack=true"},
				sample{"frame" + name + suffix, "POST", target, "application/xml", `<DevEUI_uplink><DevEUI>A84041D2C5182F01</DevEUI></DevEUI_uplink>`},
				sample{"putFrame" + name + suffix, "PUT", target + "?decoder_id=lpp", js, `{"nothing":1}`},
				sample{"putFrame" + name + suffix, "PUT", target, form, fields + "&ack=true"},
				sample{"getFrame" + name + suffix, "GET", target + callback, "", ""},
				sample{"getFrame" + name + suffix, "GET", target + callback + "&ack=true&decoder_id=lpp", "", ""})
		}
	}
	return list
}
