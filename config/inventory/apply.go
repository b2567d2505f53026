package inventory

import (
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/config/strict"
)

// Mode has the options of an apply.
type Mode struct {
	// Reset lists the kinds of records that are set to their declared values although the REST API or
	// traffic has changed them: relays, rules, credit or sims. ResetAccounts limits the reset to
	// accounts, by name or id; empty means all accounts of the document.
	Reset         []string
	ResetAccounts []string
	// Prune removes the records that an earlier document of the same name declared and this
	// one omits. A prune of more than a tenth of the records, or of all records of a kind,
	// fails if it removes more than AllowRemovals records.
	Prune         bool
	AllowRemovals int
	// Adopt makes the document the owner of declared records that other documents own.
	Adopt bool
	// DryRun changes nothing and returns the changes that an apply would make.
	DryRun bool
	// Compare returns the declared records before and after.
	Compare bool
	// Trusted skips the check of URLs, for the demo.
	Trusted bool
}

// ApplyResult is the result of an apply or a dry run. Records are named as by RecordName.String.
type ApplyResult struct {
	Document string           `json:"document"` // the owner of the records
	DryRun   bool             `json:"dry_run"`
	Accounts []AppliedAccount `json:"accounts"` // of the document, without new accounts in a dry run
	Added    []string         `json:"added"`
	Changed  []string         `json:"changed"`
	// Removed names the records that a prune removed.
	Removed []string `json:"removed"`
	// Kept names the records that a prune did not remove, and the fields that an apply did not
	// set to their declared values, each with the reason.
	Kept []string `json:"kept"`
	// Drift has the fields of Kept.
	Drift []Drift `json:"-"`
	// AllowRemovals is the least Mode.AllowRemovals with which the prune succeeds.
	AllowRemovals int `json:"allow_removals"`
	// Before and After are the declared records with secrets masked. They have only the SIMs
	// that the apply concerns. They are empty unless Mode.Compare is set.
	Before Document `json:"-"`
	After  Document `json:"-"`
}

// Drift is a field of a record that differs from its declared value, because the API, traffic
// or a job has changed it. An apply keeps the present value.
type Drift struct {
	Document string `json:"document"` // its name
	Account  string `json:"account"`  // its name
	Path     string `json:"path"`     // within the account: relays.site-04.parameters
	// Declared and Present are the values as a document has them; nil if there is none.
	Declared any `json:"declared"`
	Present  any `json:"present"`
	// Deleted is set if the API deleted the record, so that Path has no field.
	Deleted bool `json:"deleted"`
	// ChangedAt is the time of the last change over the API; zero if unknown. ChangedBy is the
	// user who made it; empty if the audit log does not have the change.
	ChangedAt time.Time `json:"-"`
	ChangedBy string    `json:"-"`
	// OverAPI is set if only the API changes the field.
	OverAPI bool `json:"-"`
	// Reset is the element of Mode.Reset that sets the field to its declared value; empty if
	// an apply cannot do so.
	Reset string `json:"-"`
}

// String returns the field and the reason why an apply keeps it.
func (d Drift) String() string {
	origin := " as it is"
	switch {
	case d.Deleted:
		origin = " deleted, as the API has left it"
	case d.OverAPI || !d.ChangedAt.IsZero():
		origin = ", changed over the API"
	}
	if !d.ChangedAt.IsZero() {
		origin += " on " + d.ChangedAt.UTC().Format(time.DateOnly)
	}
	if d.ChangedBy != "" {
		origin += " by " + d.ChangedBy
	}
	remedy := "only the API changes it"
	switch {
	case d.Deleted:
		remedy = "--reset " + d.Reset + " creates it"
	case d.Reset != "":
		remedy = "--reset " + d.Reset + " takes the document's"
	}
	return "account " + d.Account + ": " + d.Path + ": kept" + origin + "; " + remedy
}

// maxNames is the largest number of names that FirstNames lists.
const maxNames = 20

// FirstNames lists the first names and the number of further names, for a line of the log.
func FirstNames(names []string) string {
	if extra := len(names) - maxNames; extra > 0 {
		return strings.Join(names[:maxNames], ", ") + " and " + strconv.Itoa(extra) + " more"
	}
	return strings.Join(names, ", ")
}

// AppliedAccount is an account that a document names.
type AppliedAccount struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Mistakes are the mistakes of a document, each with its path.
type Mistakes = strict.Mistakes
