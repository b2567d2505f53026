package inbound

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// filtered returns relays with filters: a virtual number and prefixes of the number.
func filtered(number, long, short string) []*CompiledRelay {
	return []*CompiledRelay{
		Compile(Relay{ID: "v1", Account: 1, Kind: VirtualNumber, Number: "447860000001", Action: Action{Name: Inactive}, Filter: number}),
		Compile(Relay{ID: "long", Account: 1, Kind: Geographic, Number: "4478", Action: Action{Name: BlackHole}, Filter: long}),
		Compile(Relay{ID: "short", Account: 1, Kind: Geographic, Number: "44", Action: Action{Name: BlackHole}, Filter: short}),
		Compile(Relay{ID: "theirs", Account: 2, Kind: Geographic, Number: "4", Action: Action{Name: BlackHole}, Filter: "true"}),
	}
}

func TestFiltersChooseTheRelay(t *testing.T) {
	for name, tc := range map[string]struct {
		number, long, short string
		matched, reason     string
	}{
		"no filter":                            {"", "", "", "v1", "its number is 447860000001"},
		"a filter that holds":                  {`originator startsWith "4477"`, "", "", "v1", "its number is 447860000001, and the message meets its condition"},
		"a filter that does not hold":          {`text contains "STOP"`, "", "", "long", "its prefix 4478 matches"},
		"the time in the zone of the settings": {`time >= "12:00"`, "", "", "v1", "its number is 447860000001, and the message meets its condition"},
		"weekday and date":                     {`weekday != 3`, `weekday == 3 and date == "2026-07-01"`, "", "long", "its prefix 4478 matches, and the message meets its condition"},
		"two filters that do not hold":         {"false", "false", "", "short", "its prefix 44 matches"},
		"the network":                          {`network == "Example Mobile"`, "", "", "v1", "its number is 447860000001, and the message meets its condition"},
	} {
		t.Run(name, func(t *testing.T) {
			m := sample()
			m.Account = 1
			d := Decide(m, filtered(tc.number, tc.long, tc.short), Settings{Zone: london(t)})
			relaytest.Equal(t, "the state", d.State, event.Done)
			relaytest.Equal(t, "the matched relay and its reason", []string{d.Matched.ID, d.MatchReason}, []string{tc.matched, tc.reason})
			relaytest.Equal(t, "the number of considered relays", len(d.Considered), 4)
		})
	}
}

func TestAMessageThatMeetsNoFilterIsUnrouted(t *testing.T) {
	m := sample()
	m.Account = 1
	d := Decide(m, filtered("false", "false", "coding == 8"), Settings{Zone: london(t)})
	want := "the message to 447860000001 does not meet the condition of the virtual number relay v1 or the geographic relay long or the geographic relay short"
	relaytest.Equal(t, "state and reason", []any{d.State, d.Reason}, []any{event.Unrouted, want})
	relaytest.Equal(t, "the matched relay", d.Matched, nil)
	for i, c := range d.Considered[:3] {
		relaytest.Equal(t, fmt.Sprintf("whether the filter of relay %d holds", i), c.Holds, new(false))
		if c.Filter == "" || !strings.HasSuffix(c.Reason, "does not meet its condition") {
			t.Errorf("reason of relay %d with filter %q = %q", i, c.Filter, c.Reason)
		}
	}
	foreign := d.Considered[3]
	relaytest.Equal(t, "whether the filter of another account's relay holds", foreign.Holds, nil)
	relaytest.Equal(t, "the reason of another account's relay", foreign.Reason, "it belongs to another account")
}

// The message must not be dropped or sent to another relay.
func TestAFilterThatFailsQuarantinesTheMessage(t *testing.T) {
	for name, filter := range map[string]string{
		"when the filter runs":        `["a"][coding] == "a"`,
		"when the filter is compiled": `all(text, true)`,
	} {
		d := Decide(sample(), filtered(filter, "", ""), Settings{Zone: london(t)})
		relaytest.Equal(t, name+": the state", d.State, event.Quarantined)
		relaytest.Equal(t, name+": the number of deliveries", len(d.Deliveries), 0)
		if d.Matched == nil || !strings.Contains(d.Reason, "the virtual number relay v1") {
			t.Errorf("%s: reason = %q, want the virtual number relay v1", name, d.Reason)
		}
	}
}

func TestInvalidFiltersAreRefused(t *testing.T) {
	r := Relay{ID: "v1", Kind: VirtualNumber, Number: "447860000001", Action: Action{Name: Inactive}, Filter: "colour == 1"}
	err := r.Validate(nil)
	if problems := relay.FieldsOf(err)["filter"]; len(problems) != 1 || !strings.Contains(problems[0], "unknown name colour") {
		t.Errorf("error = %v, problems = %v, want an unknown name", err, relay.FieldsOf(err))
	}
	if r.Filter = ""; r.Validate(nil) != nil {
		t.Error("a relay without a filter was refused")
	}
}
