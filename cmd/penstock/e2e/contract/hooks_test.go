package contract

// hookSamples are the successes of the webhooks that senders post to: a frame, a
// question for a downlink, and what each method takes.
func hookSamples() []sample {
	const js, form = "application/json", "application/x-www-form-urlencoded"
	const callback = "?device=1CF2A0&time=1763631255&data=01020304&seqNumber=7&rssi=-121.5&snr=9.1&station=1A2B"
	const fields = "device=1CF2A0&time=1763631255&data=01020304&seqNumber=8&rssi=-121.5&snr=9.1&station=1A2B&duplicate=false"
	list := []sample{
		{"optionsGeneric", "OPTIONS", "/webhooks/generic", "", ""},
		{"optionsGenericOfDevice", "OPTIONS", "/webhooks/generic/shed", "", ""},
	}
	for name, path := range map[string]string{"Lorawan": "lorawan", "Community": "community", "LPWAN": "lpwan", "SensorVendor": "sensor-vendor"} {
		for below, rest := range map[string]string{"": "", "Below": "/data/up"} {
			at := "/webhooks/" + path + rest
			list = append(list,
				sample{"options" + name + below, "OPTIONS", at, "", ""},
				sample{"frame" + name + below, "POST", at + "?decoder_id=lpp&event=up", js, `{"nothing":1}`},
				sample{"frame" + name + below, "POST", at, form, fields},
				sample{"frame" + name + below, "POST", at, form, fields + "&ack=true"},
				sample{"frame" + name + below, "POST", at, "application/xml", `<DevEUI_uplink><DevEUI>A84041D2C5182F01</DevEUI></DevEUI_uplink>`},
				sample{"putFrame" + name + below, "PUT", at + "?decoder_id=lpp", js, `{"nothing":1}`},
				sample{"putFrame" + name + below, "PUT", at, form, fields + "&ack=true"},
				sample{"getFrame" + name + below, "GET", at + callback, "", ""},
				sample{"getFrame" + name + below, "GET", at + callback + "&ack=true&decoder_id=lpp", "", ""})
		}
	}
	return list
}
