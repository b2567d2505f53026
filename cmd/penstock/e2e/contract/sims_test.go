package contract

import "github.com/penstock/penstock/cmd/penstock/e2e"

// simSampleIDs are the ids of records that belong to the SIMs of contract.yaml.
type simSampleIDs struct {
	pool, subscriber, recipient, poolRecipient, callback string
	job                                                  string
}

// createSampleSIMs creates a pool with a SIM, a subscriber, recipients, a completed job and an
// endpoint for the callback.
func createSampleSIMs(g *e2e.Gateway) simSampleIDs {
	g.T.Helper()
	acme := e2e.CustomerOf(g)
	type recipient struct{ ID string }
	var pool struct {
		Data struct {
			ID         string
			Recipients []recipient
		}
	}
	acme.Post("/v3/mno/pool", `{"name":"Meters","recipients":[{"email":"pool@example.com"}]}`).Decode(g.T, &pool)
	acme.Post("/v3/mno/pool/"+pool.Data.ID+"/iccid", `{"iccids":["`+e2e.PooledSIM+`"]}`).Mentions(g.T, 201)
	subscriber := acme.Create("/v3/mno/subscriber/register", `{"forename":"Ada","surname":"Byron","address":"a","post_code":"p","contact_no":"1"}`)
	var sim struct {
		Data struct{ Recipients []recipient }
	}
	acme.Post("/v3/mno/"+e2e.ActiveSIM+"/recipient", `{"email":"sim@example.com"}`).Decode(g.T, &sim)
	return simSampleIDs{
		job:  g.AwaitJob(acme.Post("/v3/mno/8944000000000000016/suspend", "")),
		pool: pool.Data.ID, subscriber: subscriber, recipient: sim.Data.Recipients[0].ID,
		poolRecipient: pool.Data.Recipients[0].ID, callback: e2e.NewSink(g.T, nil).URL,
	}
}

// simJobSamples returns successful requests to the operations that start or list SIM jobs.
func simJobSamples(ids simSampleIDs) []sample {
	const js, sims = "application/json", "/v3/mno/89440000000000000"
	return []sample{
		{"activateSIM", "POST", sims + "10/activate", js, `{"subscriber":"` + ids.subscriber + `","service_4g":true,"service_5g":false}`},
		{"addSIMService", "POST", sims + "11/service/add", js, `{"service":"service_5g"}`},
		{"suspendSIM", "POST", sims + "12/suspend", "", ""},
		{"unsuspendSIM", "POST", sims + "13/unsuspend", "", ""},
		{"terminateSIM", "POST", sims + "14/terminate", "", ""},
		{"removeSIMService", "POST", sims + "15/service/remove", js, `{"service":"service_4g"}`},
		{"reassignSIMs", "POST", "/v3/mno/sim/bulk-reassign", js, `{"target_subscriber":"` + ids.subscriber + `","iccids":["8944000000000000016"]}`},
		{"listSIMJobs", "GET", "/v3/mno/job?status=completed&action=suspend_sim&page=1&per_page=1&order_direction=asc", "", ""},
		{"getSIMJobStatus", "GET", "/v3/mno/job/" + ids.job + "/status", "", ""},
	}
}

// simJobMistakes returns requests that the operations of simJobSamples refuse, for example for an
// unknown SIM and for a terminated SIM.
func simJobMistakes() (list []refusedSample) {
	const js = "application/json"
	for iccid, status := range map[string]int{"8944000000000000000": 404, "8944000000000000017": 422} {
		sim := "/v3/mno/" + iccid
		list = append(list, []refusedSample{
			{sample{"", "POST", sim + "/activate", js, `{"subscriber":"none"}`}, status},
			{sample{"", "POST", sim + "/service/add", js, `{"service":"service_4g"}`}, status},
			{sample{"", "POST", sim + "/service/remove", js, `{"service":"6g"}`}, status},
			{sample{"", "POST", sim + "/suspend", "", ""}, status},
			{sample{"", "POST", sim + "/unsuspend", "", ""}, status},
			{sample{"", "POST", sim + "/terminate", "", ""}, status},
		}...)
	}
	return append(list, []refusedSample{
		{sample{"", "POST", "/v3/mno/sim/bulk-reassign", js, `{"target_subscriber":"none"}`}, 422},
		{sample{"", "GET", "/v3/mno/job?status=done", "", ""}, 422},
		{sample{"", "GET", "/v3/mno/job/none/status", "", ""}, 404},
	}...)
}

// simSamples returns successful requests to the operations on SIMs.
func simSamples(ids simSampleIDs) []sample {
	const js = "application/json"
	pool := "/v3/mno/pool/" + ids.pool
	const page = "?page=1&per_page=2&order_by=imsi&order_direction=desc&filters%5Biccid%5D%5Boperator%5D=like&filters%5Biccid%5D%5Bvalue%5D=8944%25" +
		"&filters%5Bimsi%5D%5Boperator%5D=%21%3D&filters%5Bimsi%5D%5Bvalue%5D=1&filters%5Bmsisdn%5D%5Boperator%5D=starts_with&filters%5Bmsisdn%5D%5Bvalue%5D=44"
	return append(simJobSamples(ids), []sample{
		{"listSIMs", "GET", "/v3/mno" + page, "", ""},
		{"listSIMs", "GET", "/v3/mno", "", ""},
		{"getSIM", "GET", "/v3/mno/" + e2e.PendingSIM, "", ""},
		{"setUsageLimit", "PUT", "/v3/mno/" + e2e.ActiveSIM + "/usage-limit", js, `{"monthly_usage_limit":1000000,"monthly_usage_limit_warning":800000,"cap_limit":"notify"}`},
		{"addSIMRecipient", "POST", "/v3/mno/" + e2e.ActiveSIM + "/recipient", js, `{"email":"ops@example.com","number":"447700900123"}`},
		{"setUsageLimit", "PUT", "/v3/mno/8944000000000000011/usage-limit", js, `{"monthly_usage_limit":1000000}`}, // a SIM without an IMSI
		{"addSIMRecipient", "POST", "/v3/mno/8944000000000000011/recipient", js, `{"email":"ops@example.com"}`},
		{"removeSIMRecipient", "DELETE", "/v3/mno/recipient/" + ids.recipient, "", ""},
		{"createPool", "POST", "/v3/mno/pool", js, `{"name":"Spare","monthly_usage_limit":1,"monthly_usage_limit_warning":1,"cap_limit":"block","recipients":[{"email":"a@example.com","number":null}]}`},
		{"changePool", "PUT", pool, js, `{"name":"Water meters","cap_limit":"notify","monthly_usage_limit":5000}`},
		{"addPoolRecipient", "POST", pool + "/recipient", js, `{"email":"ops@example.com","number":"447700900123"}`},
		{"removePoolRecipient", "DELETE", pool + "/recipient/" + ids.poolRecipient, "", ""},
		{"attachToPool", "POST", pool + "/iccid", js, `{"iccids":["` + e2e.ActiveSIM + `"]}`},
		{"listPoolSIMs", "GET", pool + "/iccid" + page, "", ""},
		{"detachFromPool", "DELETE", pool + "/iccid/detach", js, `{"iccids":["` + e2e.PooledSIM + `"]}`},
		{"listSubscribers", "GET", "/v3/mno/subscriber?order_by=surname&order_direction=asc&filters%5Bforename%5D%5Boperator%5D=%3D&filters%5Bforename%5D%5Bvalue%5D=ada&filters%5Bsurname%5D%5Boperator%5D=like&filters%5Bsurname%5D%5Bvalue%5D=b%25", "", ""},
		{"listSubscriberSIMs", "GET", "/v3/mno/subscriber/" + ids.subscriber + page, "", ""},
		{"registerSubscriber", "POST", "/v3/mno/subscriber/register", js, `{"forename":"Bo","surname":"Ek","address":"a","post_code":"p","contact_no":"2","title":"Dr","address2":"b","address3":"c","city":"d","company_name":"e","contact_email":"bo@example.com"}`},
		{"setCallback", "PUT", "/v3/mno/callback", js, `{"callback_url":"` + ids.callback + `/events"}`},
	}...)
}

// simMistakes returns requests that the operations on SIMs refuse.
func simMistakes() []refusedSample {
	const js = "application/json"
	return append(simJobMistakes(), []refusedSample{
		{sample{"", "GET", "/v3/mno?per_page=501", "", ""}, 422},
		{sample{"", "GET", "/v3/mno/8944000000000000000", "", ""}, 404},
		{sample{"", "PUT", "/v3/mno/8944000000000000000/usage-limit", js, `{"monthly_usage_limit":1}`}, 404},
		{sample{"", "POST", "/v3/mno/8944000000000000000/recipient", js, `{"email":"a@example.com"}`}, 404},
		{sample{"", "DELETE", "/v3/mno/recipient/none", "", ""}, 422},
		{sample{"", "PUT", "/v3/mno/pool/none", js, `{}`}, 422},
		{sample{"", "POST", "/v3/mno/pool/none/recipient", js, `{}`}, 422},
		{sample{"", "DELETE", "/v3/mno/pool/none/recipient/none", "", ""}, 422},
		{sample{"", "GET", "/v3/mno/pool/none/iccid", "", ""}, 422},
		{sample{"", "GET", "/v3/mno/subscriber?order_by=age", "", ""}, 422},
		{sample{"", "GET", "/v3/mno/subscriber/none", "", ""}, 422},
	}...)
}
