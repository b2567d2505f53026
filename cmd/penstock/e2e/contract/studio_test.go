package contract

import (
	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/ledger"
)

// studioSamples returns successful requests to the operations of the admin API that try decoders, make
// dry runs of replays and list the records of all accounts.
func studioSamples(ids sampleIDs) []sample {
	const js = "application/json"
	return []sample{
		{"listDevicesOfAccounts", "GET", "/admin/devices", "", ""},
		{"listDevicesOfAccounts", "GET", "/admin/devices?account=1&q=s&decoder=sent&alarmed=false&order=silent&limit=1", "", ""},
		{"showDevice", "GET", "/admin/devices/" + ids.device + "?account=1", "", ""},
		{"listDecodersOfAccounts", "GET", "/admin/decoders?account=1&limit=1", "", ""},
		{"showDecoder", "GET", "/admin/decoders/sent", "", ""},
		{"showDecoder", "GET", "/admin/decoders/lpp?account=1", "", ""},
		{"tryDecoder", "POST", "/admin/decoders/try", js, `{"account":1,"decoder_id":"lpp","frames":[{"hex":"03 67 01:10","fPort":2,"fCnt":7,"time":"2026-01-31T12:00:00Z"},{"base64":"A2cBEA=="},{"body":{"deviceInfo":{"devEui":"70b3d57ed0001234"},"data":"A2cBEA==","fPort":85},"query":"event=up","path":"lorawan","content_type":"application/json"}]}`},
		{"tryDecoder", "POST", "/admin/decoders/try", js, `{"codec":"javascript","source":"function decodeUplink(i) {\n  return {data: {t: i.bytes[0], door: 'open'}, warnings: ['w'], errors: [i.none.x]};\n}","use_raw_payload":true,"sensors":[{"key":"t","sensor_type_id":"temperature"}],"frames":[{"hex":"01"}]}`},
		{"tryDecoder", "POST", "/admin/decoders/try", js, `{"codec":"json","frames":[{"values":{"t":1,"door":"ajar"}}]}`},
		{"tryDecoder", "POST", "/admin/decoders/try", js, `{"device_id":"` + ids.device + `","last":3}`},
		{"listSensorTypes", "GET", "/admin/sensor-types", "", ""},
		{"addSensorType", "POST", "/admin/sensor-types", js, `{"id":"pressure","name":"Pressure","metric_units":"hPa"}`},
		{"listSIMsOfAccounts", "GET", "/admin/sims", "", ""},
		{"listSIMsOfAccounts", "GET", "/admin/sims?account=1&q=8944&state=active&pool=" + ids.sims.pool + "&limit=1&cursor=MSA4", "", ""},
		{"showSIM", "GET", "/admin/sims/" + e2e.ActiveSIM, "", ""},
		{"showSIM", "GET", "/admin/sims/" + e2e.PooledSIM + "?account=1", "", ""},
		{"usageOfSIM", "GET", "/admin/sims/" + e2e.ActiveSIM + "/usage?account=1&from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z", "", ""},
		{"usageOfSIM", "GET", "/admin/sims/" + e2e.ActiveSIM + "/usage", "", ""},
		{"listJobsOfAccounts", "GET", "/admin/jobs", "", ""},
		{"listJobsOfAccounts", "GET", "/admin/jobs?account=1&state=completed&kind=token.claim&limit=1&cursor=9999", "", ""},
		{"listLedgersOfAccounts", "GET", "/admin/ledgers", "", ""},
		{"listLedgersOfAccounts", "GET", "/admin/ledgers?account=1&limit=1&cursor=1", "", ""},
		{"listEntriesOfLedger", "GET", "/admin/ledgers/l1/entries?account=1&limit=1&cursor=2", "", ""},
		{"listTokensOfLedger", "GET", "/admin/ledgers/l1/tokens?account=1&limit=1&q=0", "", ""},
		{"listTokensOfLedger", "GET", "/admin/ledgers/l1/tokens?account=1", "", ""},
		{"showLedgerToken", "GET", "/admin/ledger-tokens/" + ledger.TokenID(ids.asset.Token) + "?account=1", "", ""},
		{"listBalances", "GET", "/admin/balances", "", ""},
		{"listBalances", "GET", "/admin/balances?account=1&limit=1&cursor=1", "", ""},
		{"replayEvents", "POST", "/admin/events/replay", js, `{"kind":"uplink","device":"shed","dry_run":true,"limit":2}`},
		{"replayEvents", "POST", "/admin/events/replay?kind=sms&state=unrouted&dry_run=true&limit=1", "", ""},
	}
}

// studioMistakes returns requests that the operations of studioSamples refuse.
func studioMistakes() []refusedSample {
	const js = "application/json"
	return []refusedSample{
		{sample{"", "GET", "/admin/devices?order=loud", "", ""}, 422},
		{sample{"", "POST", "/admin/sensor-types", js, `{"id":"temperature","name":"Temperature"}`}, 409},
		{sample{"", "POST", "/admin/sensor-types", js, `{"id":"","name":"","imperial_slope":-1}`}, 422},
		{sample{"", "GET", "/admin/devices/none", "", ""}, 404},
		{sample{"", "GET", "/admin/sims?state=lost", "", ""}, 422},
		{sample{"", "GET", "/admin/sims?cursor=x", "", ""}, 422},
		{sample{"", "GET", "/admin/sims/none", "", ""}, 404},
		{sample{"", "GET", "/admin/sims/8944000000000000000?account=1", "", ""}, 404},
		{sample{"", "GET", "/admin/sims/" + e2e.ActiveSIM + "?account=nobody", "", ""}, 422},
		{sample{"", "GET", "/admin/sims/none/usage", "", ""}, 404},
		{sample{"", "GET", "/admin/sims/" + e2e.ActiveSIM + "/usage?from=2020-01-01&to=2022-01-01", "", ""}, 422},
		{sample{"", "GET", "/admin/jobs?state=lost", "", ""}, 422},
		{sample{"", "GET", "/admin/ledgers?cursor=x", "", ""}, 422},
		{sample{"", "GET", "/admin/ledgers/l1/entries", "", ""}, 422},
		{sample{"", "GET", "/admin/ledgers/none/entries?account=1", "", ""}, 404},
		{sample{"", "GET", "/admin/ledgers/none/tokens?account=1", "", ""}, 404},
		{sample{"", "GET", "/admin/ledgers/l1/tokens?account=1&q=x", "", ""}, 422},
		{sample{"", "GET", "/admin/ledger-tokens/none", "", ""}, 422},
		{sample{"", "GET", "/admin/ledger-tokens/none?account=1", "", ""}, 404},
		{sample{"", "GET", "/admin/balances?cursor=x", "", ""}, 422},
		{sample{"", "GET", "/admin/devices/none?account=nobody", "", ""}, 422},
		{sample{"", "GET", "/admin/relays?kind=fax", "", ""}, 422},
		{sample{"", "GET", "/admin/relays/geo/none?account=1", "", ""}, 404},
		{sample{"", "GET", "/admin/relays/geo/g1", "", ""}, 422},
		{sample{"", "GET", "/admin/decoders?limit=0", "", ""}, 422},
		{sample{"", "GET", "/admin/decoders/none", "", ""}, 404},
		{sample{"", "GET", "/admin/decoders/lpp?account=none", "", ""}, 422},
		{sample{"", "POST", "/admin/decoders/try", js, `{"decoder_id":"none","frames":[{"hex":"01"}]}`}, 404},
		{sample{"", "POST", "/admin/decoders/try", js, `{"device_id":"none","last":1}`}, 404},
		{sample{"", "POST", "/admin/decoders/try", js, `{"codec":"expr","source":"t = (","frames":[{"hex":"01"}]}`}, 422},
		{sample{"", "POST", "/admin/decoders/try", js, `{"codec":"json"}`}, 422},
		{sample{"", "POST", "/admin/decoders/try", js, `{"codec":"json","frames":[{"body":"not json"}]}`}, 422},
	}
}
