package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// report is the result of a run on one kind of back ends.
type report struct {
	site       *site
	struck     map[string]int // how often each fault struck
	verdicts   []verdict
	settleTime time.Duration
}

// ok reports whether no promise was broken.
func (r *report) ok() bool {
	return clean(r.verdicts) && len(r.site.notes) == 0 && r.site.ledger.refused == 0
}

func (r *report) print(writer io.Writer) {
	table := tabwriter.NewWriter(writer, 0, 0, 2, ' ', 0)
	row := func(cells ...any) {
		line := fmt.Sprint(cells[0])
		for _, c := range cells[1:] {
			line += "\t" + fmt.Sprint(c)
		}
		_, _ = fmt.Fprintln(table, line)
	}
	row("\nfault", "times")
	for _, name := range slices.Sorted(maps.Keys(r.struck)) {
		row(name, r.struck[name])
	}
	_ = table.Flush()
	row("\nsent", "offered", "acknowledged", "done without an answer", "lost", "undone", "duplicated, same id", "unaccounted")
	sum := verdict{kind: "all"}
	for _, v := range r.verdicts {
		sum.sent, sum.acked, sum.unansweredFound, sum.duplicated = sum.sent+v.sent, sum.acked+v.acked, sum.unansweredFound+v.unansweredFound, sum.duplicated+v.duplicated
		sum.lost, sum.undone, sum.unaccounted = append(sum.lost, v.lost...), append(sum.undone, v.undone...), append(sum.unaccounted, v.unaccounted...)
	}
	for _, v := range append(r.verdicts, sum) {
		row(v.kind, v.sent, v.acked, v.unansweredFound, len(v.lost), len(v.undone), v.duplicated, len(v.unaccounted))
	}
	_ = table.Flush()
	found := "everything"
	if !clean(r.verdicts) {
		found = "not everything"
	}
	printf := func(format string, args ...any) { _, _ = fmt.Fprintf(writer, format, args...) }
	printf("\n%d requests were answered 408, 424, 429, 503 or not at all, %d were refused otherwise; %s was found and done %v after the load; %d messages were resent, %d events replayed\n",
		r.site.ledger.unavailable, r.site.ledger.refused, found, r.settleTime.Round(100*time.Millisecond), r.site.resent, r.site.replayed)
	printf("%.3f %% of the acknowledged items were duplicated with the same id (aim: at most 0.1 %%, without a restored database)\n", 100*float64(sum.duplicated)/float64(max(sum.acked, 1)))
	r.explain(printf)
}

// maxListed is the maximum number of entries that are listed under each label.
const maxListed = 20

// explain lists the broken promises, refusals and notes.
func (r *report) explain(printf func(format string, args ...any)) {
	list := func(label string, texts []string) {
		if len(texts) == 0 {
			return
		}
		printf("\n%s (%d):\n", label, len(texts))
		for _, text := range texts[:min(maxListed, len(texts))] {
			printf("  %s\n", text)
		}
	}
	for _, v := range r.verdicts {
		list("lost: "+v.kind, v.lost)
		list("undone: "+v.kind, v.undone)
		list("unaccounted: "+v.kind, v.unaccounted)
	}
	list("refused", r.site.ledger.reasons)
	list("notes", r.site.notes)
}
