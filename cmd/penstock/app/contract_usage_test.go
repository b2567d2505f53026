package app

// usageResidents are the jobs that made what the contract's account used.
type usageResidents struct{ file, report string }

// usedNovember is a time that has records.
const usedNovember = `{"start_time":"2026-11-01T00:00:00Z","end_time":"2026-12-01T00:00:00Z"`

// meter has records of a SIM, a file of them and a report.
func (g *gateway) meter() usageResidents {
	g.t.Helper()
	g.as("acme-all-0123456").post("/inbound/cdr/sim", usedRecord).mentions(g.t, 200, `"refused":0`)
	g.settled()
	acme := g.cellular("acme-all-0123456")
	of := usageResidents{acme.ordered("/v3/mno/job/cdr", usedNovember+"}"), acme.ordered("/v3/mno/job/usage", usedNovember+"}")}
	acme.finished(of.file, "completed")
	acme.finished(of.report, "completed")
	return of
}

const usedRecord = `{"id":"used-1","iccid":"` + activeSIM + `","start_time":"2026-11-20T09:34:15Z","type":"data","bytes":1024,"duration":60}`

// usageSamples are successes of the operations on what SIMs use.
func usageSamples(of usageResidents) []sample {
	const js = "application/json"
	return []sample{
		{"simRecords", "POST", "/inbound/cdr/sim", js, usedRecord},
		{"simRecords", "POST", "/inbound/cdr/sim", "text/csv", "id,iccid,start_time,type,bytes,duration\nused-2," + activeSIM + ",2026-11-20T10:00:00Z,sms,,\n"},
		{"requestCDR", "POST", "/v3/mno/job/cdr", js, usedNovember + `,"subscriber_id":null}`},
		{"requestCDR", "POST", "/v3/mno/job/cdr?start_time=2026-11-01&end_time=2026-12-01&subscriber_id=", "", ""},
		{"streamCDR", "GET", "/v3/mno/job/" + of.file + "/cdr/stream", "", ""},
		{"requestUsage", "POST", "/v3/mno/job/usage", js, usedNovember + `,"name":"November"}`},
		{"requestUsage", "POST", "/v3/mno/job/usage?start_time=2026-11-01&end_time=2026-12-01&name=November", "", ""},
		{"usageReport", "GET", "/v3/mno/job/" + of.report + "/usage?page=1&per_page=2", "", ""},
	}
}

// usageMistakes are what the operations on what SIMs use refuse.
func usageMistakes() []refused {
	const js = "application/json"
	return []refused{
		{sample{"", "POST", "/inbound/cdr/sim", js, `{}`}, 422},
		{sample{"", "POST", "/v3/mno/job/cdr", js, `{"start_time":"2020-01-01","end_time":"2020-01-02"}`}, 404},
		{sample{"", "POST", "/v3/mno/job/cdr", js, usedNovember + `,"subscriber_id":"none"}`}, 422},
		{sample{"", "GET", "/v3/mno/job/none/cdr/stream", "", ""}, 404},
		{sample{"", "POST", "/v3/mno/job/usage", js, `{"start_time":"2020-01-01","end_time":"2020-01-02"}`}, 200}, // empty
		{sample{"", "POST", "/v3/mno/job/usage", js, `{"start_time":"2026-01-01","end_time":"2026-02-02"}`}, 422},
		{sample{"", "GET", "/v3/mno/job/none/usage", "", ""}, 404},
		{sample{"", "GET", "/v3/mno/job/none/usage?per_page=501", "", ""}, 422},
	}
}
