package inventory

import (
	"strconv"
	"strings"

	"github.com/penstock/penstock/config/strict"
)

// Mode says how far an apply goes.
type Mode struct {
	// Reset names what is set to what the document says although it lives on
	// through REST and traffic: relays, rules, credit, sims.
	Reset []string
	// Prune removes what an earlier document of the same name declared and this one
	// omits. AllowRemovals is how many records it may remove if they are more than a
	// tenth of what the document owns, or all of a kind.
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
	Document string // whose the records are now
	DryRun   bool
	Accounts []AppliedAccount // that exist
	Added    []string
	Changed  []string
	// Removed names what a prune removed.
	Removed []string
	// Kept names what a prune did not remove, and the fields that the apply left as they
	// are although the document says otherwise, each with the reason.
	Kept []string
	// AllowRemovals is how many removals the prune needs to be allowed; 0: none.
	AllowRemovals int
	// Before and After are what is declared, with every secret masked and of the SIMs
	// only those that the document concerns; empty unless Mode.Compare asks for them.
	Before, After Document
}

// maxNames bounds the names that FirstNames lists.
const maxNames = 20

// FirstNames lists the first names for a line of the log, and says how many there are
// besides.
func FirstNames(names []string) string {
	if added := len(names) - maxNames; added > 0 {
		return strings.Join(names[:maxNames], ", ") + " and " + strconv.Itoa(added) + " more"
	}
	return strings.Join(names, ", ")
}

// AppliedAccount is an account that a document names.
type AppliedAccount struct {
	ID   int64
	Name string
}

// Mistakes are what is wrong with a document, each with its path.
type Mistakes = strict.Mistakes
