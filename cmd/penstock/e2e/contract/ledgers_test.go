package contract

import "github.com/penstock/penstock/cmd/penstock/e2e"

// ledgerSamples returns successful requests to the operations on ledgers and tokens.
func ledgerSamples(a e2e.Asset) []sample {
	const js = "application/json"
	credentials := `{"token":"` + a.Token + `","private_token":"` + a.Private + `"`
	query := "?token=" + a.Token + "&private_token=" + a.Private
	return []sample{
		{"listLedgers", "GET", "/ledgers", "", ""},
		{"generateToken", "POST", "/ledgers/l1/tokens", js, `{"metadata":{"a":1},"private_metadata":{"owner":"x"},"redirect_url":"https://example.com/","redirect_meta":{"b":[2]}}`},
		{"generateToken", "POST", "/ledgers/l1/tokens?metadata=%7B%22a%22:1%7D&redirect_url=https://example.com/", "", ""},
		{"appendMetadata", "POST", "/ledgers/tokens/metadata", js, `{"token":"` + a.Token + `","metadata":{"place":"yard"}}`},
		{"appendMetadata", "POST", "/ledgers/tokens/metadata?metadata=%7B%7D&token=" + a.Token, "", ""},
		{"claimToken", "POST", "/ledgers/tokens/claim", js, credentials + `,"tokens":["` + a.Token + `"]}`},
		{"claimToken", "POST", "/ledgers/tokens/claim" + query, "", ""},
		{"validateToken", "POST", "/ledgers/tokens/validate", js, credentials + `}`},
		{"validateToken", "POST", "/ledgers/tokens/validate", js, credentials + `,"tokens":["none"],"private_metadata":{"owner":"y"}}`},
		{"validateToken", "POST", "/ledgers/tokens/validate" + query + "&tokens=a,b", "", ""},
		{"tokenHistory", "GET", "/ledgers/tokens/" + a.Token + "/history?private_token=" + a.Private, "", ""},
		{"tokenJob", "GET", "/ledgers/jobs/" + a.Job, "", ""},
		{"tokenJob", "GET", "/ledgers/jobs/" + a.Claim, "", ""},
		{"ledgerAuthority", "GET", "/ledgers/l1/ca", "", ""},
		{"exportLedger", "GET", "/ledgers/l1/export", "", ""},
		{"followToken", "GET", "/t/" + a.Token + "?private_token=" + a.Private, "", ""},
	}
}

// ledgerMistakes returns requests that the operations on ledgers and tokens refuse.
func ledgerMistakes() []refusedSample {
	const js = "application/json"
	return []refusedSample{
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
