// Package intaketest calls a processor in tests as an intake does.
package intaketest

import (
	"context"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
)

// Process parses and processes items once. Items that cannot be parsed are quarantined.
func Process[T any](ctx context.Context, p intake.Processor[T], items ...intake.Item) ([]event.Status, error) {
	var parsed []intake.ParsedItem[T]
	var quarantined []event.Status
	for i := range items {
		content, _, err := p.Parse(&items[i])
		if err != nil {
			quarantined = append(quarantined, items[i].Status(event.Quarantined, intake.ClipReason(err.Error())))
			continue
		}
		parsed = append(parsed, intake.ParsedItem[T]{Item: &items[i], Content: content})
	}
	statuses, err := p.Process(ctx, parsed)
	return append(quarantined, statuses...), err
}

// Describe returns the description of an entry, or "" if the entry cannot be parsed.
func Describe[T any](p intake.Processor[T], e *intake.Entry) string {
	item := intake.Item{Entry: *e}
	content, _, err := p.Parse(&item)
	if err != nil {
		return ""
	}
	return p.Describe(intake.ParsedItem[T]{Item: &item, Content: content})
}
