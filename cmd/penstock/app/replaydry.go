package app

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/ingest/admin"
)

// printDryRun writes the result of a dry run as text.
func printDryRun(to io.Writer, answer []byte) error {
	var r admin.DryRun
	if err := json.Unmarshal(answer, &r); err != nil {
		return fmt.Errorf("the replay: %w: %s", err, strings.TrimSpace(string(answer)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d events\n", r.Count)
	if r.Examined > 0 {
		fmt.Fprintf(&b, "%d examined: %d would be stored, %d quarantined; %d differ\n", r.Examined, r.Events.Done, r.Events.Quarantined, r.Events.Differ)
		fmt.Fprintf(&b, "readings: %d added, %d changed, %d unchanged, %d remain\n", r.Readings.Added, r.Readings.Changed, r.Readings.Unchanged, r.Readings.Stays)
	}
	for _, e := range r.Data {
		fmt.Fprintf(&b, "%s %s -> %s %s\n", e.ID, e.State, e.NewState, e.NewReason)
		for _, d := range e.Devices {
			for _, v := range d.Readings {
				fmt.Fprintf(&b, "  %s %s %s %s: %v -> %v\n", d.Identifier, v.Time, v.Key, v.Effect, word(v.Old), word(v.New))
			}
		}
	}
	if r.More {
		b.WriteString("…\n")
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// word returns a number or a text as it is, "nothing" for nil.
func word(v any) any {
	if v == nil {
		return "nothing"
	}
	return v
}
