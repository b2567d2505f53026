package contract

// deviceSamples returns successful requests to list and change decoders and devices.
func deviceSamples(ids sampleIDs) []sample {
	const js = "application/json"
	const placeFields = `"comment":"c","longitude":"-2.0943","latitude":57.1497,"altitude":"12","parser_params":{"k":[1]}`
	device := "/iot/devices/" + ids.device
	return []sample{
		{"createBluetoothDevice", "POST", "/iot/devices/bluetooth", js, `{"location_id":"loc1","decoder_id":"lpp","mac_address":"AA:BB:CC:00:11:22","name":"tag",` + placeFields + `}`},
		{"createBluetoothDevice", "POST", "/iot/devices/bluetooth?location_id=loc1&decoder_id=lpp&mac_address=AABBCC001123&name=tag&longitude=1.5&parser_params=%7B%22k%22:1%7D", "", ""},
		{"createLorawanDevice", "POST", "/iot/devices/lorawan", js, `{"location_id":"loc1","decoder_id":"lpp","identifier":"24:E1:24:13:6B:50:22:17","name":"probe",` + placeFields + `}`},
		{"listIdentifiers", "GET", "/admin/identifiers", "", ""},
		{"listIdentifiers", "GET", "/admin/identifiers?q=24-E1-24&limit=1&cursor=24e124", "", ""},
		{"releaseIdentifier", "DELETE", "/admin/identifiers/24:E1:24:13:6B:50:22:17", "", ""},
		{"createOtherDevice", "POST", "/iot/devices/other", js, `{"location_id":"loc1","decoder_id":"lpp","identifier":"NEW","name":"meter",` + placeFields + `}`},
		{"patchDevice", "PATCH", device, js, `{"name":"n","decoder_id":"sent","frame_logging":"enabled",` + placeFields + `}`},
		{"patchDevice", "PATCH", device + "?name=n&frame_logging=enabled&altitude=3", "", ""},
		{"addEventMarker", "POST", device + "/event-markers", js, `{"event_marker_id":"NEW","comment":"moved","date_published":"2026-01-31 12:00:00"}`},
		{"addEventMarker", "POST", device + "/event-markers?event_marker_id=again&comment=moved", "", ""},
		{"addEventMarker", "POST", device + "/event-markers", js, `{"event_marker_id":"again","comment":"moved again"}`},
		{"listEventMarkers", "GET", device + "/event-markers?page=1&per_page=1", "", ""},
		{"listFrames", "GET", device + "/frames?per_page=5", "", ""},
		{"listDecoders", "GET", "/iot/decoders?page=2", "", ""},
		{"listDevices", "GET", "/iot/devices?page=1&per_page=500", "", ""},
		{"listSensors", "GET", device + "/sensors?page=9", "", ""},
		{"listDecoderSensors", "GET", "/iot/decoders/lpp/sensors?per_page=1", "", ""},
		{"patchDecoder", "PATCH", "/iot/decoders/per-key", js, `{"name":"n","description":"d","type":"serial","codec":"expr","source":"temperature = 2.0","useRawPayload":true,"loraWanMacVersion":"1.1","loraWanRevision":"B","loraSupportClassB":false,"loraSupportClassC":false}`},
		{"patchDecoder", "PATCH", "/iot/decoders/per-key?name=n&source=temperature+%3D+1.0", "", ""},
		{"deleteDecoderSensor", "DELETE", "/iot/decoders/per-key/sensors/temperature", "", ""},
		{"deleteDevice", "DELETE", "/iot/devices/" + ids.spare, "", ""},
	}
}

// refusedSample is a request and the expected status of its refusal.
type refusedSample struct {
	sample
	status int
}

// deviceMistakes returns requests that the operations on decoders and devices refuse.
func deviceMistakes() []refusedSample {
	const js = "application/json"
	return []refusedSample{
		{sample{"", "DELETE", "/iot/decoders/none/sensors/k", "", ""}, 404},
		{sample{"", "DELETE", "/iot/decoders/lpp/sensors/none", "", ""}, 404},
		{sample{"", "PATCH", "/iot/decoders/none", js, `{"name":"n"}`}, 404},
		{sample{"", "PATCH", "/iot/decoders/lpp", js, `{"name":"","type":"x","codec":"javascript","source":"function ("}`}, 422},
		{sample{"", "POST", "/iot/devices/bluetooth", js, `{}`}, 422},
		{sample{"", "POST", "/iot/devices/bluetooth", js, `{"location_id":"loc1","decoder_id":"lpp","mac_address":"aabbcc001122","name":"again"}`}, 422},
		{sample{"", "POST", "/iot/devices/lorawan", js, `{"location_id":"none","decoder_id":"none","identifier":"12","name":""}`}, 422},
		{sample{"", "POST", "/iot/devices/other", js, `{"location_id":"loc1","decoder_id":"lpp","identifier":"shed","name":"again"}`}, 422},
		{sample{"", "PATCH", "/iot/devices/none", js, `{"name":"n"}`}, 404},
		{sample{"", "PATCH", "/iot/devices/none", js, `{"latitude":91}`}, 422},
		{sample{"", "DELETE", "/iot/devices/none", "", ""}, 422},
		{sample{"", "POST", "/iot/devices/none/event-markers", js, `{"event_marker_id":"e","comment":"c"}`}, 404},
		{sample{"", "POST", "/iot/devices/none/event-markers", js, `{"date_published":"soon"}`}, 422},
		{sample{"", "GET", "/iot/devices/none/event-markers", "", ""}, 404},
		{sample{"", "GET", "/iot/devices/none/event-markers?page=0", "", ""}, 422},
		{sample{"", "GET", "/iot/devices/none/frames", "", ""}, 404},
		{sample{"", "GET", "/iot/devices/none/frames?per_page=501", "", ""}, 422},
		{sample{"", "GET", "/iot/decoders?page=x", "", ""}, 422},
		{sample{"", "GET", "/iot/decoders/lpp/sensors?page=-1", "", ""}, 422},
		{sample{"", "GET", "/iot/devices?per_page=0", "", ""}, 422},
		{sample{"", "GET", "/iot/devices/none/sensors?per_page=1.5", "", ""}, 422},
	}
}
