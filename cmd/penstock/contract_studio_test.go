package main

// studioSamples are successes of the operations that try decoders and rehearse
// replays.
func studioSamples(of residents) []sample {
	const js = "application/json"
	return []sample{
		{"listDevicesOfAccounts", "GET", "/admin/devices", "", ""},
		{"listDevicesOfAccounts", "GET", "/admin/devices?account=1&q=s&decoder=sent&alarmed=false&order=silent&limit=1", "", ""},
		{"showDevice", "GET", "/admin/devices/" + of.device + "?account=1", "", ""},
		{"aggregateDeviceOfAccount", "GET", "/admin/devices/" + of.device + "/readings/aggregate?from=2020-01-01&to=2099-01-01T00:00:00Z&granularity=month", "", ""},
		{"aggregateDeviceOfAccount", "GET", "/admin/devices/" + of.device + "/readings/aggregate?account=1", "", ""},
		{"listFramesOfDevice", "GET", "/admin/devices/" + of.device + "/frames", "", ""},
		{"listMarkersOfDevice", "GET", "/admin/devices/" + of.device + "/markers", "", ""},
		{"listDecodersOfAccounts", "GET", "/admin/decoders?account=1&limit=1", "", ""},
		{"changeDecoder", "PATCH", "/admin/decoders/sent", js, `{"account":1,"name":"Sent","description":"By the sender","codec":"json","use_raw_payload":false}`},
		{"showDecoder", "GET", "/admin/decoders/sent", "", ""},
		{"showDecoder", "GET", "/admin/decoders/lpp?account=1", "", ""},
		{"tryDecoder", "POST", "/admin/decoders/try", js, `{"account":1,"decoder_id":"lpp","frames":[{"hex":"03 67 01:10","fPort":2,"fCnt":7,"time":"2026-01-31T12:00:00Z"},{"base64":"A2cBEA=="},{"body":{"deviceInfo":{"devEui":"70b3d57ed0001234"},"data":"A2cBEA==","fPort":85},"query":"event=up","path":"lorawan","content_type":"application/json"}]}`},
		{"tryDecoder", "POST", "/admin/decoders/try", js, `{"codec":"javascript","source":"function decodeUplink(i) {\n  return {data: {t: i.bytes[0], door: 'open'}, warnings: ['w'], errors: [i.none.x]};\n}","use_raw_payload":true,"sensors":[{"key":"t","sensor_type_id":"temperature"}],"frames":[{"hex":"01"}]}`},
		{"tryDecoder", "POST", "/admin/decoders/try", js, `{"codec":"json","frames":[{"values":{"t":1,"door":"ajar"}}]}`},
		{"tryDecoder", "POST", "/admin/decoders/try", js, `{"device_id":"` + of.device + `","last":3}`},
		{"replayEvents", "POST", "/admin/events/replay", js, `{"kind":"uplink","device":"shed","dry_run":true,"limit":2}`},
		{"replayEvents", "POST", "/admin/events/replay?kind=sms&state=unrouted&dry_run=true&limit=1", "", ""},
	}
}

// studioMistakes are what they refuse.
func studioMistakes() []refused {
	const js = "application/json"
	return []refused{
		{sample{"", "GET", "/admin/devices?order=loud", "", ""}, 422},
		{sample{"", "GET", "/admin/devices/none", "", ""}, 404},
		{sample{"", "GET", "/admin/devices/none?account=nobody", "", ""}, 422},
		{sample{"", "GET", "/admin/devices/none/readings/aggregate", "", ""}, 404},
		{sample{"", "GET", "/admin/devices/none/readings/aggregate?granularity=blink", "", ""}, 422},
		{sample{"", "GET", "/admin/devices/none/frames", "", ""}, 404},
		{sample{"", "GET", "/admin/devices/none/frames?account=nobody", "", ""}, 422},
		{sample{"", "GET", "/admin/devices/none/markers", "", ""}, 404},
		{sample{"", "GET", "/admin/devices/none/markers?account=nobody", "", ""}, 422},
		{sample{"", "GET", "/admin/decoders?limit=0", "", ""}, 422},
		{sample{"", "PATCH", "/admin/decoders/none", js, `{"account":1,"name":"n"}`}, 404},
		{sample{"", "PATCH", "/admin/decoders/lpp", js, `{"account":1,"codec":"expr","source":"t = ("}`}, 422},
		{sample{"", "GET", "/admin/decoders/none", "", ""}, 404},
		{sample{"", "GET", "/admin/decoders/lpp?account=none", "", ""}, 422},
		{sample{"", "POST", "/admin/decoders/try", js, `{"decoder_id":"none","frames":[{"hex":"01"}]}`}, 404},
		{sample{"", "POST", "/admin/decoders/try", js, `{"device_id":"none","last":1}`}, 404},
		{sample{"", "POST", "/admin/decoders/try", js, `{"codec":"expr","source":"t = (","frames":[{"hex":"01"}]}`}, 422},
		{sample{"", "POST", "/admin/decoders/try", js, `{"codec":"json"}`}, 422},
		{sample{"", "POST", "/admin/decoders/try", js, `{"codec":"json","frames":[{"body":"not json"}]}`}, 422},
	}
}
