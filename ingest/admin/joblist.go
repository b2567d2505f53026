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

// jobJSON is a job in the form for the operator.
type jobJSON struct {
	ID          string          `json:"id"`
	Account     relay.AccountID `json:"account"`
	AccountName string          `json:"account_name"`
	Kind        job.Kind        `json:"kind"`
	Name        string          `json:"name"`
	State       job.State       `json:"state"`
	CreatedAt   string          `json:"created_at"`
	UpdatedAt   string          `json:"updated_at"`
	DueAt       *string         `json:"due_at"` // null: it has ended
	Tries       int             `json:"tries"`
	Error       string          `json:"error"` // why it failed, or why it is tried again
	ICCID       string          `json:"iccid"` // the SIM that it is about; "": none
	Items       *jobItemsJSON   `json:"items"` // null: it is about one thing, or it is not known
}

// jobItemsJSON has the number of the objects of a job, and those that failed.
type jobItemsJSON struct {
	Total  int              `json:"total"`
	Done   int              `json:"done"`
	Failed []failedItemJSON `json:"failed"`
}

type failedItemJSON struct {
	Item   string `json:"item"`
	Reason string `json:"reason"`
}

func jobOf(j job.Found, names map[relay.AccountID]string) jobJSON {
	view := jobJSON{
		ID: j.ID, Account: j.Account, AccountName: names[j.Account], Kind: j.Kind, Name: j.Name, State: j.State,
		CreatedAt: formatTime(j.CreatedAt), UpdatedAt: formatTime(j.UpdatedAt), DueAt: formatTimeOrNil(j.Due), Tries: j.Tries, Error: j.Error,
	}
	var about struct {
		ICCID  string   `json:"iccid"`
		ICCIDs []string `json:"iccids"`
	}
	if json.Unmarshal(j.Input, &about) == nil { // the input of tokens is sealed and says nothing
		view.ICCID = about.ICCID
	}
	switch {
	case j.Kind == ledger.KindClaim && len(j.Result) > 0:
		view.Items = claimed(j.Result)
	case j.State == job.Completed && len(about.ICCIDs) > 0:
		view.Items = &jobItemsJSON{len(about.ICCIDs), len(about.ICCIDs), []failedItemJSON{}}
	case len(about.ICCIDs) > 0:
		view.Items = &jobItemsJSON{len(about.ICCIDs), 0, []failedItemJSON{}}
	case j.State == job.Completed:
		view.Items = counted(j.Result)
	}
	return view
}

// claimed has the results of a claim's tokens; they are named by their number, since their
// texts are secret.
func claimed(result json.RawMessage) *jobItemsJSON {
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

// counted is the number of records of an export.
func counted(result json.RawMessage) *jobItemsJSON {
	var of struct {
		Count *int `json:"count"`
	}
	if json.Unmarshal(result, &of) != nil || of.Count == nil {
		return nil
	}
	return &jobItemsJSON{*of.Count, *of.Count, []failedItemJSON{}}
}

// listJobs lists jobs of one or all accounts, newest first.
func (s *Surface) listJobs(c *fiber.Ctx, sel *selection) error {
	limit := sel.limit()
	f := job.Search{Account: sel.account(), State: oneOf(sel, "state", job.States()...), Kind: job.Kind(sel.text("kind")), Before: int64(sel.before()), Limit: limit + 1} //nolint:gosec // a place
	names, found, err := findNamed(s, sel, f, s.Jobs.Find)
	if err != nil {
		return err
	}
	found, nextCursor := cut(found, limit, func(j job.Found) string { return strconv.FormatInt(j.Place, 10) })
	views := httpd.Each(found, func(j job.Found) jobJSON { return jobOf(j, names) })
	return sendPage(c, views, nextCursor)
}
