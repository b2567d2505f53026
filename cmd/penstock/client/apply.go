package client

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Apply applies an inventory to a running gateway.
type Apply struct {
	File          string   `short:"f" required:"" help:"The inventory, YAML or JSON; - is the standard input." placeholder:"FILE"`
	DryRun        bool     `help:"Print the changes without making them."`
	Reset         []string `help:"Restore the document's values of fields that the API or traffic has changed: credit, sims, relays, rules." placeholder:"FIELD"`
	Account       string   `help:"With --reset: only values of this account, by its name or id." placeholder:"ACCOUNT"`
	Prune         bool     `help:"Remove the records that an earlier document of this name declared and this one omits."`
	AllowRemovals int      `help:"With --prune: remove up to N records, even if they are a large part of the document." placeholder:"N"`
	Adopt         bool     `help:"Take over declared records that other documents own."`
	Flags
}

// Run applies the inventory and prints the changes, or all mistakes.
func (a Apply) Run(env Environment) error {
	data, err := ReadFile(env, a.File)
	if err != nil {
		return err
	}
	query := queryOf(map[string]string{"account": a.Account})
	if len(a.Reset) > 0 {
		query.Set("reset", strings.Join(a.Reset, ","))
	}
	for name, set := range map[string]bool{"prune": a.Prune, "dry_run": a.DryRun, "adopt": a.Adopt} {
		if set {
			query.Set(name, "true")
		}
	}
	if a.AllowRemovals != 0 {
		query.Set("allow_removals", strconv.Itoa(a.AllowRemovals))
	}
	body, err := a.Request(env, "the inventory", http.MethodPut, "/admin/inventory?"+query.Encode(), data)
	if err != nil {
		return err
	}
	if a.JSON {
		return printLine(env, "%s", body)
	}
	return printApplied(env.Stdout, body)
}

// printApplied prints the result of an apply, with a line for each record.
func printApplied(writer io.Writer, answer []byte) error {
	applied, err := dataOf[struct {
		Document string
		DryRun   bool `json:"dry_run"`
		Accounts []struct {
			ID   int64
			Name string
		}
		// Kept has the records and fields that differ from the document and were not changed.
		Added, Changed, Removed, Kept []string
		AllowRemovals                 int `json:"allow_removals"`
	}]("the inventory", answer)
	if err != nil {
		return err
	}
	for _, acct := range applied.Accounts {
		_, _ = fmt.Fprintf(writer, "account %q has the id %d\n", acct.Name, acct.ID)
	}
	for _, list := range []struct {
		word  string
		names []string
	}{{"added", applied.Added}, {"changed", applied.Changed}, {"removed", applied.Removed}, {"kept", applied.Kept}} {
		for _, name := range list.names {
			_, _ = fmt.Fprintf(writer, "%-8s %s\n", list.word, name)
		}
	}
	if applied.DryRun && applied.AllowRemovals > 0 {
		_, _ = fmt.Fprintf(writer, "the prune requires --allow-removals %d\n", applied.AllowRemovals)
	}
	label := "applied"
	if applied.DryRun {
		label = "dry run, nothing changed"
	}
	_, err = fmt.Fprintf(writer, "document %s: %d added, %d changed, %d removed, %d kept (%s)\n",
		applied.Document, len(applied.Added), len(applied.Changed), len(applied.Removed), len(applied.Kept), label)
	return err
}
