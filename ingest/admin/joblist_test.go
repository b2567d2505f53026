package admin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/ledger"
)

func TestFailedTokensOfAClaimAreNumbered(t *testing.T) {
	claim := job.FoundJob{Job: job.Job{Kind: ledger.KindClaim, State: job.Completed, Result: []byte(`["claimed","exhausted","expired"]`)}}
	want := &jobItemsJSON{Total: 3, Done: 1, Failed: []failedItemJSON{{"token 2 of 3", "exhausted"}, {"token 3 of 3", "expired"}}}
	if diff := cmp.Diff(want, jobOf(claim, nil).Items); diff != "" {
		t.Errorf("items of a claim (-want +got):\n%s", diff)
	}
}
