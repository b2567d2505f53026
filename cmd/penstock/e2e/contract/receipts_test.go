package contract

// receiptSamples returns delivery receipts that carriers post with a token.
func receiptSamples() (list []sample) {
	const js, form = "application/json", "application/x-www-form-urlencoded"
	for suffix, path := range map[string]string{"": "", "OfSource": "/partner"} {
		list = append(list,
			sample{"jsonReceiptPost" + suffix, "POST", "/inbound/dlr/json" + path, js, `{"ref":"1-77-0","state":"DELIVRD","text":"id:1 stat:DELIVRD"}`},
			sample{"jsonReceiptGet" + suffix, "GET", "/inbound/dlr/json" + path + "?ref=1-77-0&code=4", "", ""},
			sample{"kannelReceiptPost" + suffix, "POST", "/inbound/dlr/kannel" + path, form, "ref=1-77-0&type=8&answer=ACK&time=1700000000"},
			sample{"kannelReceiptGet" + suffix, "GET", "/inbound/dlr/kannel" + path + "?ref=1-77-0&type=1&answer=id%3A1+stat%3ADELIVRD&time=1700000000", "", ""})
	}
	return list
}

// receiptMistakes returns receipts that are refused.
func receiptMistakes() (list []refusedSample) {
	for _, path := range []string{"", "/partner"} {
		list = append(list,
			refusedSample{sample{"", "POST", "/inbound/dlr/json" + path, "application/json", `{"ref":"x","state":"PERHAPS"}`}, 422},
			refusedSample{sample{"", "GET", "/inbound/dlr/json" + path + "?code=3", "", ""}, 422},
			refusedSample{sample{"", "POST", "/inbound/dlr/kannel" + path, "application/x-www-form-urlencoded", "ref=1-77-0"}, 422},
			refusedSample{sample{"", "GET", "/inbound/dlr/kannel" + path + "?type=1", "", ""}, 422})
	}
	return list
}
