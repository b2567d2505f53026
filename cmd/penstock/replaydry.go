package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/ingest/admin"
)

// printRehearsal writes what a dry run tells for a person to read.
func printRehearsal(to io.Writer, answer []byte) error {
	var r admin.Rehearsed
	if err := json.Unmarshal(answer, &r); err != nil {
		return fmt.Errorf("the replay: %w: %s", err, strings.TrimSpace(string(answer)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d events\n", r.Count)
	if r.Examined > 0 {
		fmt.Fprintf(&b, "%d examined: %d would be stored, %d set aside; %d differ\n", r.Examined, r.Events.Done, r.Events.Quarantined, r.Events.Differ)
		fmt.Fprintf(&b, "readings: %d added, %d changed, %d unchanged, %d stay as they are\n", r.Readings.Added, r.Readings.Changed, r.Readings.Unchanged, r.Readings.Stays)
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

// word is a number, a text, or that there is none.
func word(v any) any {
	if v == nil {
		return "nothing"
	}
	return v
}
