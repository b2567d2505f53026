package e2e

import (
	"fmt"
	"sync"
	"testing"
)

// SIMJobRound asks for jobs and knows what was answered.
type SIMJobRound struct {
	G          *Gateway
	Acme       Client
	Subscriber string

	Mu       sync.Mutex
	Accepted map[string]string // job → ICCID
	Answers  map[string]int
}

// SIMState is a SIM as the API shows it.
type SIMState struct {
	ICCID     string
	Current   string `json:"current_state"`
	Requested string `json:"requested_state"`
}

// SIMJob is a SIM job as the API lists it.
type SIMJob struct{ ID, Action, Status string }

// Jobs lists all of the account's, in the order of their creation.
func (r *SIMJobRound) Jobs(t *testing.T) (all []SIMJob) {
	t.Helper()
	for page := 1; ; page++ {
		var list struct {
			Data []SIMJob
			Meta struct{ Total int }
		}
		r.Acme.Get(fmt.Sprintf("/v3/mno/job?per_page=500&page=%d", page)).Decode(t, &list)
		all = append(all, list.Data...)
		if len(list.Data) == 0 {
			if len(all) != list.Meta.Total {
				t.Errorf("%d jobs of %d", len(all), list.Meta.Total)
			}
			return all
		}
	}
}
