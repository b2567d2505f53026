package contract

import "github.com/penstock/penstock/cmd/penstock/e2e"

// usageSampleIDs are the ids of the jobs that created a file and a report of usage.
type usageSampleIDs struct{ file, report string }

// novemberPeriod is the beginning of the body of a request for a period with usage.
const novemberPeriod = `{"start_time":"2026-11-01T00:00:00Z","end_time":"2026-12-01T00:00:00Z"`

// createSampleUsage posts usage of a SIM and creates a file and a report.
func createSampleUsage(g *e2e.Gateway) usageSampleIDs {
	g.T.Helper()
	g.WithToken("acme-all-0123456").Post("/inbound/cdr/sim", usageRecord).Mentions(g.T, 200, `"refused":0`)
	g.AwaitProcessed()
	acme := e2e.CustomerOf(g)
	return usageSampleIDs{acme.CompleteJob("/v3/mno/job/cdr", novemberPeriod+"}"), acme.CompleteJob("/v3/mno/job/usage", novemberPeriod+"}")}
}

const usageRecord = `{"id":"used-1","iccid":"` + e2e.ActiveSIM + `","start_time":"2026-11-20T09:34:15Z","type":"data","bytes":1024,"duration":60}`

// usageSamples returns successful requests to the operations on usage of SIMs.
func usageSamples(ids usageSampleIDs) []sample {
	const js = "application/json"
	return []sample{
		{"simRecords", "POST", "/inbound/cdr/sim", js, usageRecord},
		{"simRecords", "POST", "/inbound/cdr/sim", "text/csv", "id,iccid,start_time,type,bytes,duration\nused-2," + e2e.ActiveSIM + ",2026-11-20T10:00:00Z,sms,,\n"},
		{"requestCDR", "POST", "/v3/mno/job/cdr", js, novemberPeriod + `,"subscriber_id":null}`},
		{"requestCDR", "POST", "/v3/mno/job/cdr?start_time=2026-11-01&end_time=2026-12-01&subscriber_id=", "", ""},
		{"streamCDR", "GET", "/v3/mno/job/" + ids.file + "/cdr/stream", "", ""},
		{"requestUsage", "POST", "/v3/mno/job/usage", js, novemberPeriod + `,"name":"November"}`},
		{"requestUsage", "POST", "/v3/mno/job/usage?start_time=2026-11-01&end_time=2026-12-01&name=November", "", ""},
		{"usageReport", "GET", "/v3/mno/job/" + ids.report + "/usage?page=1&per_page=2", "", ""},
	}
}

// usageMistakes returns refused requests to the operations on usage of SIMs, and a request for an empty report.
func usageMistakes() []refusedSample {
	const js = "application/json"
	return []refusedSample{
		{sample{"", "POST", "/inbound/cdr/sim", js, `{}`}, 422},
		{sample{"", "POST", "/v3/mno/job/cdr", js, `{"start_time":"2020-01-01","end_time":"2020-01-02"}`}, 404},
		{sample{"", "POST", "/v3/mno/job/cdr", js, novemberPeriod + `,"subscriber_id":"none"}`}, 422},
		{sample{"", "GET", "/v3/mno/job/none/cdr/stream", "", ""}, 404},
		{sample{"", "POST", "/v3/mno/job/usage", js, `{"start_time":"2020-01-01","end_time":"2020-01-02"}`}, 200}, // an empty report
		{sample{"", "POST", "/v3/mno/job/usage", js, `{"start_time":"2026-01-01","end_time":"2026-02-02"}`}, 422},
		{sample{"", "GET", "/v3/mno/job/none/usage", "", ""}, 404},
		{sample{"", "GET", "/v3/mno/job/none/usage?per_page=501", "", ""}, 422},
	}
}
