package client

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Apply is the command that puts an inventory to a running gateway.
type Apply struct {
	File          string   `short:"f" required:"" help:"The inventory, YAML or JSON; - is the standard input." placeholder:"FILE"`
	DryRun        bool     `help:"Show what would change, and change nothing."`
	Reset         []string `help:"Overwrite values that were changed over the API with those of the document: credit, sims, relays, rules." placeholder:"FIELD"`
	Account       string   `help:"With --reset: only those of this account, by its name or id." placeholder:"ACCOUNT"`
	Prune         bool     `help:"Remove what an earlier document of this name declared and this one omits."`
	AllowRemovals int      `help:"With --prune: remove up to this many records, also if they are many." placeholder:"N"`
	Adopt         bool     `help:"Take over what the document declares from the documents that own it."`
	Flags
}

// Run puts the inventory to a running gateway and prints what it did, or every
// mistake.
func (a Apply) Run(w Environment) error {
	data, err := ReadFile(w, a.File)
	if err != nil {
		return err
	}
	q := given(map[string]string{"account": a.Account})
	if len(a.Reset) > 0 {
		q.Set("reset", strings.Join(a.Reset, ","))
	}
	for name, present := range map[string]bool{"prune": a.Prune, "dry_run": a.DryRun, "adopt": a.Adopt} {
		if present {
			q.Set(name, "true")
		}
	}
	if a.AllowRemovals != 0 {
		q.Set("allow_removals", strconv.Itoa(a.AllowRemovals))
	}
	body, err := a.Ask(w, "the inventory", http.MethodPut, "/admin/inventory?"+q.Encode(), data)
	if err != nil {
		return err
	}
	if a.JSON {
		return printLine(w, "%s", body)
	}
	return printApplied(w.Stdout, body)
}

// printApplied prints what an apply did, one line for each record.
func printApplied(writer io.Writer, answer []byte) error {
	d, err := dataOf[struct {
		Document string
		DryRun   bool `json:"dry_run"`
		Accounts []struct {
			ID   int64
			Name string
		}
		Added, Changed, Removed, Kept []string
		AllowRemovals                 int `json:"allow_removals"`
	}]("the inventory", answer)
	if err != nil {
		return err
	}
	for _, acct := range d.Accounts {
		_, _ = fmt.Fprintf(writer, "account %q has the id %d\n", acct.Name, acct.ID)
	}
	for _, list := range []struct {
		word  string
		names []string
	}{{"added", d.Added}, {"changed", d.Changed}, {"removed", d.Removed}, {"kept", d.Kept}} {
		for _, name := range list.names {
			_, _ = fmt.Fprintf(writer, "%-8s %s\n", list.word, name)
		}
	}
	if d.DryRun && d.AllowRemovals > 0 {
		_, _ = fmt.Fprintf(writer, "the prune needs --allow-removals %d\n", d.AllowRemovals)
	}
	label := "applied"
	if d.DryRun {
		label = "dry run, nothing changed"
	}
	_, err = fmt.Fprintf(writer, "document %s: %d added, %d changed, %d removed, %d kept (%s)\n",
		d.Document, len(d.Added), len(d.Changed), len(d.Removed), len(d.Kept), label)
	return err
}
