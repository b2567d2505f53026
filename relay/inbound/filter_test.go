package inbound

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// filtered are a virtual number and the prefixes beneath it.
func filtered(number, long, short string) []*Route {
	return []*Route{
		Compile(Relay{ID: "v1", Account: 1, Kind: VirtualNumber, Number: "447860000001", Action: Action{Name: Inactive}, Filter: number}),
		Compile(Relay{ID: "long", Account: 1, Kind: Geographic, Number: "4478", Action: Action{Name: BlackHole}, Filter: long}),
		Compile(Relay{ID: "short", Account: 1, Kind: Geographic, Number: "44", Action: Action{Name: BlackHole}, Filter: short}),
		Compile(Relay{ID: "theirs", Account: 2, Kind: Geographic, Number: "4", Action: Action{Name: BlackHole}, Filter: "true"}),
	}
}

func TestFiltersChooseTheRelay(t *testing.T) {
	for name, tc := range map[string]struct {
		number, long, short string
		matched, why        string
	}{
		"none":                              {"", "", "", "v1", "is the virtual number 447860000001"},
		"one that holds":                    {`originator startsWith "4477"`, "", "", "v1", "is the virtual number 447860000001, and the message meets its filter"},
		"one that does not":                 {`text contains "STOP"`, "", "", "long", "has the prefix 4478"},
		"the hour is that of the zone":      {`time >= "12:00"`, "", "", "v1", "is the virtual number 447860000001, and the message meets its filter"},
		"the day":                           {`weekday != 3`, `weekday == 3 and date == "2026-07-01"`, "", "long", "has the prefix 4478, and the message meets its filter"},
		"two that do not":                   {"false", "false", "", "short", "has the prefix 44"},
		"the network, or the carrier's own": {`network == "Example Mobile"`, "", "", "v1", "is the virtual number 447860000001, and the message meets its filter"},
	} {
		t.Run(name, func(t *testing.T) {
			m := sample()
			m.Account = 1
			d := Decide(m, filtered(tc.number, tc.long, tc.short), Settings{Zone: london(t)})
			relaytest.Equal(t, "the state", d.State, event.Done)
			relaytest.Equal(t, "the matched relay and its reason", []string{d.Matched.ID, d.Why}, []string{tc.matched, tc.why})
			relaytest.Equal(t, "the number of considered relays", len(d.Considered), 4)
		})
	}
}

func TestAMessageThatMeetsNoFilterIsUnrouted(t *testing.T) {
	m := sample()
	m.Account = 1
	d := Decide(m, filtered("false", "false", "coding == 8"), Settings{Zone: london(t)})
	want := "no relay of account 1 for 447860000001; vmn relay v1 has a filter that it does not meet; " +
		"geo relay long has a filter that it does not meet; geo relay short has a filter that it does not meet"
	relaytest.Equal(t, "state and reason", []any{d.State, d.Reason}, []any{event.Unrouted, want})
	relaytest.Equal(t, "the matched relay", d.Matched, nil)
	for i, c := range d.Considered[:3] {
		relaytest.Equal(t, fmt.Sprintf("whether the filter of relay %d holds", i), c.Holds, new(false))
		if c.Filter == "" || !strings.HasSuffix(c.Why, "does not meet its filter") {
			t.Errorf("the reason of relay %d with the filter %q is %q", i, c.Filter, c.Why)
		}
	}
	theirs := d.Considered[3]
	relaytest.Equal(t, "whether the filter of another account's relay holds", theirs.Holds, nil)
	relaytest.Equal(t, "the reason of another account's relay", theirs.Why, "belongs to another account")
}

// What cannot be decided is quarantined with the relay's name, never dropped and
// never sent somewhere else.
func TestAFilterThatFailsQuarantinesTheMessage(t *testing.T) {
	for name, filter := range map[string]string{
		"when it runs":                           `["a"][coding] == "a"`,
		"when it is read, as old records may be": `all(text, true)`,
	} {
		d := Decide(sample(), filtered(filter, "", ""), Settings{Zone: london(t)})
		relaytest.Equal(t, name+": the state", d.State, event.Quarantined)
		relaytest.Equal(t, name+": the number of deliveries", len(d.Deliveries), 0)
		if d.Matched == nil || !strings.HasPrefix(d.Reason, "vmn relay v1") {
			t.Errorf("%s: the reason is %q", name, d.Reason)
		}
	}
}

func TestFiltersAreCheckedWhenTheyAreSaved(t *testing.T) {
	r := Relay{ID: "v1", Kind: VirtualNumber, Number: "447860000001", Action: Action{Name: Inactive}, Filter: "colour == 1"}
	err := r.Validate(nil)
	if said := relay.FieldsOf(err)["filter"]; len(said) != 1 || !strings.Contains(said[0], "unknown name colour") {
		t.Errorf("%v %v", err, relay.FieldsOf(err))
	}
	if r.Filter = ""; r.Validate(nil) != nil {
		t.Error("no filter was refused")
	}
}
