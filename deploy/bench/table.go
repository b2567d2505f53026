package main

import (
	"fmt"
	"text/tabwriter"
	"time"
)

// table is rows of cells in columns, printed when it is flushed.
type table struct{ *tabwriter.Writer }

// table begins a table with the names of its columns.
func (b *bench) table(heads ...any) table {
	fmt.Fprintln(b.w)
	t := table{tabwriter.NewWriter(b.w, 0, 0, 2, ' ', tabwriter.AlignRight)}
	t.row(heads...)
	return t
}

func (t table) row(cells ...any) {
	for _, c := range cells {
		switch v := c.(type) {
		case float64:
			c = fmt.Sprintf("%.2f", v)
		case time.Duration:
			c = v.Round(10 * time.Microsecond)
		}
		fmt.Fprintf(t, "%v\t", c)
	}
	fmt.Fprintln(t)
}

// loads prints a row for each subject, with ratios of its rates to those of the first.
// Done means stored, relayed or submitted.
func (b *bench) loads(title string, subjects []*subject) {
	t := b.table(title, "accepted/s", "ratio", "done/s", "ratio", "µs of CPU", "PostgreSQL", "Redis", "InfluxDB", "client", "p50", "p99")
	defer t.Flush()
	for _, s := range subjects {
		reference := subjects[0]
		cells := []any{s.name, rounded(s.median(outcome.acceptedRate)), s.ratio(reference, outcome.acceptedRate), rounded(s.median(outcome.doneRate)), s.ratio(reference, outcome.doneRate)}
		for process := range processes {
			cells = append(cells, fmt.Sprintf("%.1f", s.median(func(o outcome) float64 { return o.micros(process) })))
		}
		t.row(append(cells, s.quantile(0.5), s.quantile(0.99))...)
	}
}

// compare prints how a figure of a subject relates to that of another one in the same
// rounds, and the aim. It prints nothing if one of them was not measured.
func (t table) compare(s, otherSubject *subject, label string, figure func(outcome) float64, aim string) {
	if s != nil && otherSubject != nil {
		t.row(label+": "+s.name+" / "+otherSubject.name, s.ratio(otherSubject, figure), aim)
	}
}

// reconcile prints whether everything that was sent is stored or refused; if it is not, the
// run fails in the end. A ratio that misses its aim fails nothing: timings on shared cores
// are noisy, losses are not.
func (b *bench) reconcile(label string, sent, stored, refused int64) {
	text := fmt.Sprintf("reconciliation of %s: sent %d = stored %d + refused %d", label, sent, stored, refused)
	fmt.Fprintf(b.w, "%s: %v\n", text, sent == stored+refused)
	if sent != stored+refused {
		b.wrong = append(b.wrong, fmt.Errorf("%s does not add up", text))
	}
}

func rounded(v float64) string { return fmt.Sprintf("%.0f", v) }
