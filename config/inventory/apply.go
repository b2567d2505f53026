package inventory

import (
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/config/strict"
)

// Mode describes how far an apply goes.
type Mode struct {
	// Reset names what is set to what the document says although it lives on
	// through REST and traffic: relays, rules, credit, sims. ResetAccounts are the names
	// or ids of the accounts that it is limited to; none: all of the document.
	Reset         []string
	ResetAccounts []string
	// Prune removes what an earlier document of the same name declared and this one omits.
	// AllowRemovals is the number of records that it may remove if they are more than a tenth
	// of the document's, or all of a kind.
	Prune         bool
	AllowRemovals int
	// Adopt takes over what the document declares from the documents that own it.
	Adopt bool
	// DryRun changes nothing, and says what would change.
	DryRun bool
	// Compare gives what is declared before and after.
	Compare bool
	// Trusted leaves out the check of URLs; for the demo, which is our own.
	Trusted bool
}

// Applied says what an apply did, or would do. Records are named as Thing
// does.
type Applied struct {
	Document string           `json:"document"` // whose the records are now
	DryRun   bool             `json:"dry_run"`
	Accounts []AppliedAccount `json:"accounts"` // that exist
	Added    []string         `json:"added"`
	Changed  []string         `json:"changed"`
	// Removed names what a prune removed.
	Removed []string `json:"removed"`
	// Kept names what a prune did not remove, and the fields that the apply left as they
	// are although the document says otherwise, each with the reason.
	Kept []string `json:"kept"`
	// Drift is the fields among Kept.
	Drift []Drift `json:"-"`
	// AllowRemovals is the number of removals that the prune needs; 0: none.
	AllowRemovals int `json:"allow_removals"`
	// Before and After are the declared records, with every secret masked, and with only
	// those SIMs that the document concerns; empty unless Mode.Compare requests them.
	Before Document `json:"-"`
	After  Document `json:"-"`
}

// Drift is a field of a record that differs from what a document declares, because the API,
// traffic or a job has changed it. An apply keeps it.
type Drift struct {
	Document string `json:"document"` // its name
	Account  string `json:"account"`  // its name
	Path     string `json:"path"`     // within the account: relays.site-04.parameters
	// Declared and Present are the values in the document's form; nil for none.
	Declared any `json:"declared"`
	Present  any `json:"present"`
	// Deleted is set if the API deleted the record, so that Path has no field.
	Deleted bool `json:"deleted"`
	// ChangedAt is the time of the last change over the API, zero if it is not known, and
	// ChangedBy the user who made it, "" if that is not in the audit log.
	ChangedAt time.Time `json:"-"`
	ChangedBy string    `json:"-"`
	// OverAPI is set if the API alone changes the field; a balance also changes by traffic.
	OverAPI bool `json:"-"`
	// Reset is the word for Mode.Reset with which an apply takes the declared value; ""
	// if the API alone changes the field.
	Reset string `json:"-"`
}

// String returns the field and the reason for which an apply keeps it.
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

// maxNames bounds the names that FirstNames lists.
const maxNames = 20

// FirstNames lists the first names for a line of the log, and describes how many there are
// besides.
func FirstNames(names []string) string {
	if added := len(names) - maxNames; added > 0 {
		return strings.Join(names[:maxNames], ", ") + " and " + strconv.Itoa(added) + " more"
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
