package recordstest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

// Records created in one millisecond are listed in the order of their creation, not of their ids.
func TestListsAreInTheOrderOfCreation(t *testing.T) {
	const n = 5
	records, ctx := recordstest.Open(t), t.Context()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	relaytest.NoError(t, records.Devices.CreateDevice(ctx, 1, iot.Device{ID: "device", Identifier: "device", CreatedAt: now}, nil))
	ids, newest := make([]string, n), make([]string, n)
	for i := range n {
		ids[i] = fmt.Sprintf("id-%d", n-i)
		newest[n-1-i] = ids[i]
	}
	for _, tc := range []struct {
		name   string
		want   []string
		create func(id string, createdAt time.Time) error
		list   func() ([]string, error)
	}{
		{
			"rules", ids,
			func(id string, createdAt time.Time) error {
				return records.Rules.Create(ctx, 1, rule.Rule{ID: id, CreatedAt: createdAt})
			},
			func() ([]string, error) {
				rules, err := records.Rules.Rules(ctx, 1)
				return idsOf(rules, func(r rule.Rule) string { return r.ID }), err
			},
		},
		{
			"rules page by page", ids, nil,
			func() (found []string, err error) {
				var cursor rule.Cursor
				for range n {
					page, err := records.Rules.FindRules(ctx, 0, cursor, 1)
					if err != nil || len(page) == 0 {
						return found, err
					}
					cursor = rule.Cursor{Account: page[0].Account, CreatedAt: page[0].Record.CreatedAt, ID: page[0].Record.ID}
					found = append(found, page[0].Record.ID)
				}
				return found, nil
			},
		},
		{
			"event markers of one second, newest first", newest,
			func(id string, createdAt time.Time) error {
				_, _, err := records.Devices.PutMarker(ctx, 1, "device", iot.Marker{ID: id}, createdAt.Truncate(time.Second))
				return err
			},
			func() ([]string, error) {
				markers, err := records.Devices.Markers(ctx, 1, "device")
				return idsOf(markers, func(m iot.Marker) string { return m.ID }), err
			},
		},
		{
			"deliveries, newest first", newest,
			func(id string, createdAt time.Time) error {
				_, err := records.Deliveries.Create(ctx, []outbox.Delivery{{ID: id, Account: 1, Kind: outbox.KindRelay, CreatedAt: createdAt}}, createdAt)
				return err
			},
			func() ([]string, error) {
				found, _, err := records.Deliveries.List(ctx, outbox.Filter{Account: 1, Limit: n})
				return idsOf(found, func(d outbox.Delivery) string { return d.ID }), err
			},
		},
		{
			"an inbox", ids,
			func(id string, createdAt time.Time) error {
				return records.Inbound.Keep(ctx, []inbound.InboxMessage{{Account: 1, Relay: "relay", Message: inbound.Message{ID: id, ReceivedAt: createdAt}}})
			},
			func() ([]string, error) {
				messages, _, err := records.Inbound.Read(ctx, 1, "relay", 0, n)
				return idsOf(messages, func(m inbound.InboxMessage) string { return m.Message.ID }), err
			},
		},
	} {
		for i, id := range ids {
			if tc.create != nil {
				relaytest.NoError(t, tc.create(id, now.Add(time.Duration(i)*time.Microsecond)))
			}
		}
		relaytest.Equal(t, tc.name, relaytest.Must(tc.list())(t), tc.want)
	}
}

func idsOf[T any](items []T, id func(T) string) []string {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = id(item)
	}
	return ids
}
