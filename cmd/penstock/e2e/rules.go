package e2e

// RuleNotice is the usual body of http_post of a rule.
type RuleNotice struct {
	Rule     struct{ ID, Name string }
	AlarmID  string `json:"alarm_id"`
	State    string
	Device   struct{ ID, Identifier string }
	Time     string
	Readings map[string]struct {
		Value float64
		Units string
	}
}
