package rule

import (
	"fmt"

	"github.com/penstock/penstock/relay"
)

// TrialRequest is a trial as requests have it: either a rule or the id of a stored one.
type TrialRequest struct {
	Rule     *Change `json:"rule"`
	RuleID   string  `json:"rule_id"`
	DeviceID string  `json:"device_id"`
	Last     *int    `json:"last"`
}

// The most frames that a trial looks at, and how many it does unless asked otherwise.
const (
	mostTried    = 100
	defaultTried = 10
)

// Trial checks the request. Its error is relay.KindInvalid; the fields of the rule
// begin with "rule.".
func (q TrialRequest) Trial() (Trial, error) {
	t := Trial{RuleID: q.RuleID, DeviceID: q.DeviceID, Last: defaultTried}
	p := relay.Problems{}
	if (q.Rule == nil) == (q.RuleID == "") {
		p.Add("rule", "Give either a rule or a rule id.")
	}
	p.Require("device_id", q.DeviceID)
	if q.Last != nil {
		if t.Last = *q.Last; t.Last < 1 || t.Last > mostTried {
			p.Add("last", fmt.Sprintf("The last must be between 1 and %d.", mostTried))
		}
	}
	if q.Rule != nil {
		var err error
		t.Rule, err = q.Rule.New()
		p.AddAll("rule.", relay.FieldsOf(err))
	}
	return t, p.Err()
}

// Error names the fields of an error of Service.Try as the request has them.
func (q TrialRequest) Error(err error) error {
	if q.Rule == nil || relay.KindOf(err) != relay.KindInvalid {
		return err
	}
	p := relay.Problems{}
	for field, problems := range relay.FieldsOf(err) {
		if field != "device_id" && field != "last" {
			field = "rule." + field
		}
		p[field] = problems
	}
	return p.Err()
}
