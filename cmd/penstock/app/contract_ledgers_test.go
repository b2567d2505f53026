package app

import (
	"strings"
)

// asset is a token of the contract's ledger and what its jobs are called.
type asset struct{ token, private, job, claim string }

// mint makes a token that leads somewhere, and claims it once.
func (g *gateway) mint() (a asset) {
	g.t.Helper()
	acme := g.as("acme-all-0123456")
	acme.post("/ledgers/l1/tokens", `{"metadata":{"a":1},"redirect_url":"http://127.0.0.1:9/there","redirect_meta":{"x":1}}`).into(g.t, &a.job)
	var made struct {
		Data struct {
			Status, Token string
			PrivateToken  string `json:"private_token"`
		}
	}
	g.jobDone(acme, a.job, &made)
	a.token, a.private = made.Data.Token, made.Data.PrivateToken
	var claimed struct{ JobID string }
	acme.post("/ledgers/tokens/claim", `{"token":"`+a.token+`","private_token":"`+a.private+`"}`).into(g.t, &claimed)
	a.claim = claimed.JobID
	g.jobDone(acme, a.claim, nil)
	return a
}

// jobDone waits until a token's job is completed.
func (g *gateway) jobDone(c caller, id string, to any) {
	g.t.Helper()
	var last answer
	eventually(g.t, "job "+id+" is completed", func() (any, bool) {
		last = c.get("/ledgers/jobs/" + id)
		return last, strings.Contains(last.body, `"completed"`)
	})
	if to != nil {
		last.into(g.t, to)
	}
}

// ledgerSamples are successes of the operations on ledgers and tokens.
func ledgerSamples(a asset) []sample {
	const js = "application/json"
	known := `{"token":"` + a.token + `","private_token":"` + a.private + `"`
	query := "?token=" + a.token + "&private_token=" + a.private
	return []sample{
		{"listLedgers", "GET", "/ledgers", "", ""},
		{"generateToken", "POST", "/ledgers/l1/tokens", js, `{"metadata":{"a":1},"private_metadata":{"owner":"x"},"redirect_url":"https://example.com/","redirect_meta":{"b":[2]}}`},
		{"generateToken", "POST", "/ledgers/l1/tokens?metadata=%7B%22a%22:1%7D&redirect_url=https://example.com/", "", ""},
		{"appendMetadata", "POST", "/ledgers/tokens/metadata", js, `{"token":"` + a.token + `","metadata":{"place":"yard"}}`},
		{"appendMetadata", "POST", "/ledgers/tokens/metadata?metadata=%7B%7D&token=" + a.token, "", ""},
		{"claimToken", "POST", "/ledgers/tokens/claim", js, known + `,"tokens":["` + a.token + `"]}`},
		{"claimToken", "POST", "/ledgers/tokens/claim" + query, "", ""},
		{"validateToken", "POST", "/ledgers/tokens/validate", js, known + `}`},
		{"validateToken", "POST", "/ledgers/tokens/validate", js, known + `,"tokens":["none"],"private_metadata":{"owner":"y"}}`},
		{"validateToken", "POST", "/ledgers/tokens/validate" + query + "&tokens=a,b", "", ""},
		{"tokenHistory", "GET", "/ledgers/tokens/" + a.token + "/history?private_token=" + a.private, "", ""},
		{"tokenJob", "GET", "/ledgers/jobs/" + a.job, "", ""},
		{"tokenJob", "GET", "/ledgers/jobs/" + a.claim, "", ""},
		{"ledgerAuthority", "GET", "/ledgers/l1/ca", "", ""},
		{"exportLedger", "GET", "/ledgers/l1/export", "", ""},
		{"followToken", "GET", "/t/" + a.token + "?private_token=" + a.private, "", ""},
	}
}

// ledgerMistakes are what the operations on ledgers and tokens refuse.
func ledgerMistakes() []refused {
	const js = "application/json"
	return []refused{
		{sample{"", "POST", "/ledgers/none/tokens", js, `{}`}, 404},
		{sample{"", "POST", "/ledgers/l1/tokens", js, `{"csr":"none","metadata":7}`}, 422},
		{sample{"", "POST", "/ledgers/l1/tokens", js, `{"redirect_url":7}`}, 422},
		{sample{"", "POST", "/ledgers/tokens/metadata", js, `{}`}, 422},
		{sample{"", "POST", "/ledgers/tokens/metadata?token=x&metadata=%7B", "", ""}, 422},
		{sample{"", "POST", "/ledgers/tokens/claim", js, `{"token":"none"}`}, 422},
		{sample{"", "POST", "/ledgers/tokens/claim", js, `{"tokens":"none"}`}, 422},
		{sample{"", "POST", "/ledgers/tokens/validate", js, `{"token":"none"}`}, 422},
		{sample{"", "POST", "/ledgers/tokens/validate", js, `[]`}, 422},
		{sample{"", "GET", "/ledgers/tokens/none/history", "", ""}, 422},
		{sample{"", "GET", "/ledgers/jobs/none", "", ""}, 404},
		{sample{"", "GET", "/ledgers/none/ca", "", ""}, 404},
		{sample{"", "GET", "/ledgers/none/export", "", ""}, 404},
		{sample{"", "GET", "/t/none", "", ""}, 404},
	}
}
