package admin

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/ledger"
)

type jobJSON struct {
	ID          string          `json:"id"`
	Account     relay.AccountID `json:"account"`
	AccountName string          `json:"account_name"`
	Kind        job.Kind        `json:"kind"`
	Name        string          `json:"name"`
	State       job.State       `json:"state"`
	CreatedAt   string          `json:"created_at"`
	UpdatedAt   string          `json:"updated_at"`
	DueAt       *string         `json:"due_at"` // null if the job has ended
	Tries       int             `json:"tries"`
	Error       string          `json:"error"` // the reason why the job failed or is retried
	ICCID       string          `json:"iccid"` // the SIM of the job; "" if there is none or several
	Items       *jobItemsJSON   `json:"items"` // null for a job with one item, or if the items are unknown
}

// jobItemsJSON has the numbers of items of a job, and the failed items.
type jobItemsJSON struct {
	Total  int              `json:"total"`
	Done   int              `json:"done"`
	Failed []failedItemJSON `json:"failed"`
}

type failedItemJSON struct {
	Item   string `json:"item"`
	Reason string `json:"reason"`
}

func jobOf(j job.FoundJob, names map[relay.AccountID]string) jobJSON {
	view := jobJSON{
		ID: j.ID, Account: j.Account, AccountName: names[j.Account], Kind: j.Kind, Name: j.Name, State: j.State,
		CreatedAt: formatTime(j.CreatedAt), UpdatedAt: formatTime(j.UpdatedAt), DueAt: formatTimeOrNil(j.Due), Tries: j.Tries, Error: j.Error,
	}
	var input struct {
		ICCID  string   `json:"iccid"`
		ICCIDs []string `json:"iccids"`
	}
	if json.Unmarshal(j.Input, &input) == nil { // the input of token jobs is encrypted
		view.ICCID = input.ICCID
	}
	total := len(input.ICCIDs)
	switch {
	case j.Kind == ledger.KindClaim && len(j.Result) > 0:
		view.Items = claimItems(j.Result)
	case total > 0 && j.State == job.Completed:
		view.Items = &jobItemsJSON{total, total, []failedItemJSON{}}
	case total > 0:
		view.Items = &jobItemsJSON{total, 0, []failedItemJSON{}}
	case j.State == job.Completed:
		var result struct {
			Count *int `json:"count"` // the number of records of an export
		}
		if json.Unmarshal(j.Result, &result) == nil && result.Count != nil {
			view.Items = &jobItemsJSON{*result.Count, *result.Count, []failedItemJSON{}}
		}
	}
	return view
}

// claimItems returns the results for the tokens of a claim. It numbers the tokens, because their
// texts are secret.
func claimItems(result json.RawMessage) *jobItemsJSON {
	var results []ledger.ClaimResult
	if json.Unmarshal(result, &results) != nil {
		return nil
	}
	view := &jobItemsJSON{Total: len(results), Failed: []failedItemJSON{}}
	for i, r := range results {
		if r == ledger.ClaimCounted {
			view.Done++
			continue
		}
		view.Failed = append(view.Failed, failedItemJSON{fmt.Sprintf("token %d of %d", i+1, len(results)), string(r)})
	}
	return view
}

// listJobs lists jobs of one or all accounts, newest first.
func (s *Surface) listJobs(c *fiber.Ctx, sel *selection) error {
	limit := sel.limit()
	f := job.Search{
		Account: sel.account(), State: oneOf(sel, "state", job.States()...), Kind: job.Kind(sel.text("kind")),
		BeforePlace: int64(sel.numericCursor()), Limit: limit + 1, //nolint:gosec // a place is positive
	}
	names, found, err := findWithNames(s, sel, f, s.Jobs.Find)
	if err != nil {
		return err
	}
	found, nextCursor := trimPage(found, limit, func(j job.FoundJob) string { return strconv.FormatInt(j.Place, 10) })
	views := httpd.Each(found, func(j job.FoundJob) jobJSON { return jobOf(j, names) })
	return sendPage(c, views, nextCursor)
}
