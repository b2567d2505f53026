package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
)

// Tail prints events when they arrive.
type Tail struct {
	Kind    string `help:"uplink, sms, receipt or cdr." placeholder:"KIND"`
	State   string `help:"done, quarantined, unrouted or pending." placeholder:"STATE"`
	Account string `help:"The account's name or id." placeholder:"ACCOUNT"`
	Source  string `help:"The sender or carrier, for example kannel." placeholder:"NAME"`
	Device  string `help:"The identifier of a device." placeholder:"ID"`
	Query   string `short:"q" name:"q" help:"A text in the event." placeholder:"TEXT"`
	Last    int    `short:"n" help:"First print the last N events." placeholder:"N"`
	Flags
}

// tailEvery is the interval of requests, tailPage is the number of events per request, and
// tailOverlap is the longest delay with which an event may be listed.
const (
	tailEvery   = time.Second
	tailPage    = 200
	tailOverlap = 10 * time.Second
)

// tailEvent is an event in the answers of the admin API.
type tailEvent struct {
	ID         string `json:"id"`
	ReceivedAt string `json:"received_at"`
	Kind       string `json:"kind"`
	Source     string `json:"source"`
	Account    int64  `json:"account"`
	State      string `json:"state"`
	Reason     string `json:"reason"`
	Raw        string `json:"raw"`
}

func (e tailEvent) receivedAt() time.Time {
	t, _ := time.Parse(time.RFC3339Nano, e.ReceivedAt)
	return t
}

// unknownState is the state of a processed event while the database is down.
const unknownState = "unknown"

// Run prints events until it is interrupted. It prints an event when it arrives and again when its
// state changes.
func (t Tail) Run(env Environment) error {
	f := follower{Tail: t, Environment: env, states: map[string]string{}}
	if err := f.begin(); err != nil {
		return err
	}
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for {
		select {
		case <-env.Context.Done():
			return nil
		case <-tick.C:
		}
		events, err := f.listRecent()
		switch {
		case err == nil:
			f.print(events)
		case env.Context.Err() == nil: // the command was not interrupted
			return err
		}
	}
}

// follower stores the printed events with their states.
type follower struct {
	Tail
	Environment
	start     time.Time         // time of the newest event at the beginning
	fetchFrom time.Time         // earliest time of the next request
	states    map[string]string // printed states by event id
}

// begin prints the last events, and sets the time after which events are new.
func (f *follower) begin() error {
	newest, _, err := f.page(url.Values{"limit": {"1"}})
	if err != nil {
		return err
	}
	for _, e := range newest {
		f.start = e.receivedAt()
		f.fetchFrom = f.start.Add(-tailOverlap)
	}
	query := f.filters()
	query.Set("limit", strconv.Itoa(max(f.Last, 1)))
	lastEvents, _, err := f.page(query)
	if err != nil || f.Last <= 0 {
		return err
	}
	slices.Reverse(lastEvents)
	for _, e := range lastEvents {
		f.show(e)
		f.states[e.ID] = e.State
	}
	return nil
}

// listRecent lists the events since fetchFrom, newest first.
func (f *follower) listRecent() ([]tailEvent, error) {
	query := f.filters()
	query.Set("limit", strconv.Itoa(tailPage))
	if !f.fetchFrom.IsZero() {
		query.Set("from", f.fetchFrom.Format(time.RFC3339Nano))
	}
	var events []tailEvent
	for {
		page, nextCursor, err := f.page(query)
		events = append(events, page...)
		if err != nil || nextCursor == "" {
			return events, err
		}
		query.Set("cursor", nextCursor)
	}
}

// print prints the new and changed events, oldest first. It sets fetchFrom so that the next request
// includes pending events, and recent events that may change.
func (f *follower) print(events []tailEvent) {
	slices.Reverse(events)
	states := make(map[string]string, len(events))
	start := f.fetchFrom
	if len(events) > 0 {
		start = events[len(events)-1].receivedAt().Add(-tailOverlap)
	}
	for _, e := range events {
		oldState, known := f.states[e.ID]
		if known && e.State == unknownState {
			e.State = oldState
		}
		if oldState != e.State && (known || e.receivedAt().After(f.start)) {
			f.show(e)
		}
		if e.State == "pending" && e.receivedAt().Before(start) {
			start = e.receivedAt()
		}
		states[e.ID] = e.State
	}
	if len(events) > 0 {
		f.fetchFrom, f.states = start, states
	}
}

func (f *follower) show(e tailEvent) {
	if f.JSON {
		_ = json.NewEncoder(f.Stdout).Encode(e)
		return
	}
	_, _ = fmt.Fprintf(f.Stdout, "%s %-7s %-11s account %d %s %s %s\n", e.ReceivedAt, e.Kind, e.State, e.Account, e.Source, e.ID, firstLine(e.Reason, e.Raw))
}

// firstLine returns the reason of an event, else its request, on one line.
func firstLine(reason, raw string) string {
	const maxLength = 160
	if reason == "" {
		reason = raw
	}
	line := strings.Join(strings.FieldsFunc(reason, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
	return decoders.Clip(line, maxLength)
}

func (f *follower) filters() url.Values {
	return queryOf(map[string]string{
		"kind": f.Kind, "state": f.State, "account": f.Account, "source": f.Source, "device": f.Device, "q": f.Query,
	})
}

// page requests a page of events.
func (f *follower) page(query url.Values) ([]tailEvent, string, error) {
	body, err := f.Request(f.Environment, "events", http.MethodGet, "/admin/events?"+query.Encode(), nil)
	if err != nil {
		return nil, "", err
	}
	var page struct {
		Data []tailEvent
		Meta struct{ Next string }
	}
	err = json.Unmarshal(body, &page)
	return page.Data, page.Meta.Next, err
}
