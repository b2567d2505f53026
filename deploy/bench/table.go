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
	fmt.Fprintln(b.out)
	t := table{tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)}
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
		first := subjects[0]
		cells := []any{s.name, whole(s.median(outcome.acceptedRate)), s.beside(first, outcome.acceptedRate), whole(s.median(outcome.doneRate)), s.beside(first, outcome.doneRate)}
		for process := range processes {
			cells = append(cells, fmt.Sprintf("%.1f", s.median(func(o outcome) float64 { return o.micros(process) })))
		}
		t.row(append(cells, s.quantile(0.5), s.quantile(0.99))...)
	}
}

// compare prints how a figure of a subject relates to that of another one in the same
// rounds, and the aim. It prints nothing if one of them was not measured.
func (t table) compare(s, other *subject, label string, figure func(outcome) float64, aim string) {
	if s != nil && other != nil {
		t.row(label+": "+s.name+" / "+other.name, s.beside(other, figure), aim)
	}
}

// reconcile prints whether everything that was sent is stored or refused; if it is not, the
// run fails in the end. A ratio that misses its aim fails nothing: timings on shared cores
// are noisy, losses are not.
func (b *bench) reconcile(label string, sent, stored, refused int64) {
	text := fmt.Sprintf("reconciliation of %s: sent %d = stored %d + refused %d", label, sent, stored, refused)
	fmt.Fprintf(b.out, "%s: %v\n", text, sent == stored+refused)
	if sent != stored+refused {
		b.wrong = append(b.wrong, fmt.Errorf("%s does not add up", text))
	}
}

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }
