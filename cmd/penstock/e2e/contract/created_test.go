package contract

import "github.com/penstock/penstock/cmd/penstock/e2e"

// createdIDs are the ids of records that samples delete.
type createdIDs struct{ geo, vmn, decoder string }

// createSampleRecords creates the records of createdIDs.
func createSampleRecords(g *e2e.Gateway) createdIDs {
	g.T.Helper()
	acme := g.WithToken("acme-all-0123456")
	return createdIDs{
		acme.Create("/v2/sms-relay/geo", `{"prefix":"4499","action":"black_hole"}`),
		acme.Create("/v2/sms-relay/vmn", `{"number":"4498","action":"inactive"}`),
		acme.Create("/iot/decoders", `{"name":"Spare","description":"Nothing uses it","type":"other"}`),
	}
}

// createdSamples returns requests that create and delete relays, decoders and locations.
func createdSamples(ids createdIDs) []sample {
	const js = "application/json"
	return []sample{
		{"createGeographicRelay", "POST", "/v2/sms-relay/geo", js, `{"prefix":"4497","action":"email","parameters":["desk@example.com"],"filter":"text == \"STOP\""}`},
		{"createGeographicRelay", "POST", "/v2/sms-relay/geo?prefix=4496&action=email&parameters=desk@example.com&iccid=&filter=", "", ""},
		{"tryGeographicRelay", "POST", "/v2/sms-relay/geo/g2/try", js, `{"from":"447700900123","text":"hi","send":false}`},
		{"tryGeographicRelay", "POST", "/v2/sms-relay/geo/" + ids.geo + "/try?from=Shop&text=hi&send=true", "", ""},
		{"deleteGeographicRelay", "DELETE", "/v2/sms-relay/geo/" + ids.geo, "", ""},
		{"createNumberRelay", "POST", "/v2/sms-relay/vmn", js, `{"number":"4495","action":"inactive"}`},
		{"tryNumberRelay", "POST", "/v2/sms-relay/vmn/v1/try", js, `{"from":"447700900123","text":"hi"}`},
		{"deleteNumberRelay", "DELETE", "/v2/sms-relay/vmn/" + ids.vmn, "", ""},
		{"listDecoderTemplates", "GET", "/iot/decoders/templates", "", ""},
		{"deleteDecoder", "DELETE", "/iot/decoders/" + ids.decoder, "", ""},
		{"listLocations", "GET", "/iot/locations?page=1&per_page=10", "", ""},
		{"createLocation", "POST", "/iot/locations", js, `{"name":"Yard","imported":false}`},
		{"createLocation", "POST", "/iot/locations?name=Gate", "", ""},
	}
}

// createdMistakes returns requests that the operations of createdSamples refuse.
func createdMistakes() []refusedSample {
	const js = "application/json"
	list := []refusedSample{
		{sample{"", "POST", "/iot/locations", js, `{}`}, 422},
		{sample{"", "GET", "/iot/locations?page=0", "", ""}, 422},
		{sample{"", "GET", "/iot/decoders/templates?page=0", "", ""}, 422},
		{sample{"", "DELETE", "/iot/decoders/none", "", ""}, 404},
		{sample{"", "DELETE", "/iot/decoders/sent", "", ""}, 422},
	}
	for _, kind := range []string{"geo", "vmn"} {
		path := "/v2/sms-relay/" + kind
		list = append(list,
			refusedSample{sample{"", "POST", path, js, `{}`}, 422},
			refusedSample{sample{"", "POST", path + "/none/try", js, `{"from":"1","text":"hi"}`}, 404},
			refusedSample{sample{"", "POST", path + "/none/try", js, `{}`}, 422},
			refusedSample{sample{"", "DELETE", path + "/none", "", ""}, 404},
			refusedSample{sample{"", "DELETE", path + "/none?x=y", "", ""}, 422})
	}
	return list
}
