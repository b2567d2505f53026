package main

// studioSamples are successes of the operations that try decoders and rehearse
// replays.
func studioSamples(of residents) []sample {
	const js = "application/json"
	return []sample{
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
		{sample{"", "GET", "/admin/decoders/none", "", ""}, 404},
		{sample{"", "GET", "/admin/decoders/lpp?account=none", "", ""}, 422},
		{sample{"", "POST", "/admin/decoders/try", js, `{"decoder_id":"none","frames":[{"hex":"01"}]}`}, 404},
		{sample{"", "POST", "/admin/decoders/try", js, `{"device_id":"none","last":1}`}, 404},
		{sample{"", "POST", "/admin/decoders/try", js, `{"codec":"expr","source":"t = (","frames":[{"hex":"01"}]}`}, 422},
		{sample{"", "POST", "/admin/decoders/try", js, `{"codec":"json"}`}, 422},
		{sample{"", "POST", "/admin/decoders/try", js, `{"codec":"json","frames":[{"body":"not json"}]}`}, 422},
	}
}
