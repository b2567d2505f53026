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

// Tail prints events as they arrive.
type Tail struct {
	Kind    string `help:"uplink, sms, receipt or cdr." placeholder:"KIND"`
	State   string `help:"done, quarantined, unrouted or pending." placeholder:"STATE"`
	Account string `help:"The account's name or id." placeholder:"ACCOUNT"`
	Source  string `help:"The sender or carrier, for example kannel." placeholder:"NAME"`
	Device  string `help:"The device, or another part of what was posted." placeholder:"TEXT"`
	Query   string `short:"q" name:"q" help:"A text that it contains." placeholder:"TEXT"`
	Last    int    `short:"n" help:"Begin with the last N events." placeholder:"N"`
	Flags
}

// tailEvery is the interval between two requests, tailPage the number of events in a request,
// and tailOverlap the longest time by which an event may arrive after a younger one.
const (
	tailEvery   = time.Second
	tailPage    = 200
	tailOverlap = 10 * time.Second
)

// tailEvent is an event as the admin API lists it.
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

func (e tailEvent) at() time.Time {
	t, _ := time.Parse(time.RFC3339Nano, e.ReceivedAt)
	return t
}

// unknownState is the state of a processed event while the database is down.
const unknownState = "unknown"

// Run prints events until it is interrupted. An event is printed when it arrives and
// again when its state changes.
func (c Tail) Run(w Environment) error {
	f := follower{Tail: c, Environment: w, seen: map[string]string{}}
	if err := f.begin(); err != nil {
		return err
	}
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.Context.Done():
			return nil
		case <-tick.C:
		}
		found, err := f.since()
		switch {
		case err == nil:
			f.print(found)
		case w.Context.Err() == nil: // it is not the interruption
			return err
		}
	}
}

// follower stores which events have been printed, in which state.
type follower struct {
	Tail
	Environment
	start     time.Time         // of the newest event when it began
	fetchFrom time.Time         // what is requested
	seen      map[string]string // state by id
}

// begin takes what was there before as printed, and prints the last of it.
func (f *follower) begin() error {
	newest, _, err := f.page(url.Values{"limit": {"1"}})
	if err != nil {
		return err
	}
	for _, e := range newest {
		f.start = e.at()
		f.fetchFrom = f.start.Add(-tailOverlap)
	}
	query := f.filters()
	query.Set("limit", strconv.Itoa(max(f.Last, 1)))
	lastTailEvents, _, err := f.page(query)
	if err != nil || f.Last <= 0 {
		return err
	}
	slices.Reverse(lastTailEvents)
	for _, e := range lastTailEvents {
		f.show(e)
		f.seen[e.ID] = e.State
	}
	return nil
}

// since lists what has arrived lately, newest first.
func (f *follower) since() ([]tailEvent, error) {
	query := f.filters()
	query.Set("limit", strconv.Itoa(tailPage))
	if !f.fetchFrom.IsZero() {
		query.Set("from", f.fetchFrom.Format(time.RFC3339Nano))
	}
	var tailEvents []tailEvent
	for {
		page, nextCursor, err := f.page(query)
		tailEvents = append(tailEvents, page...)
		if err != nil || nextCursor == "" {
			return tailEvents, err
		}
		query.Set("cursor", nextCursor)
	}
}

// print prints the events that are new or have another state, oldest first. It requests those
// again that are young or may still change.
func (f *follower) print(found []tailEvent) {
	slices.Reverse(found)
	seen := make(map[string]string, len(found))
	start := f.fetchFrom
	if len(found) > 0 {
		start = found[len(found)-1].at().Add(-tailOverlap)
	}
	for _, e := range found {
		oldText, known := f.seen[e.ID]
		if known && e.State == unknownState {
			e.State = oldText
		}
		if oldText != e.State && (known || e.at().After(f.start)) {
			f.show(e)
		}
		if e.State == "pending" && e.at().Before(start) {
			start = e.at()
		}
		seen[e.ID] = e.State
	}
	if len(found) > 0 {
		f.fetchFrom, f.seen = start, seen
	}
}

func (f *follower) show(e tailEvent) {
	if f.JSON {
		_ = json.NewEncoder(f.Stdout).Encode(e)
		return
	}
	_, _ = fmt.Fprintf(f.Stdout, "%s %-7s %-11s account %d %s %s %s\n", e.ReceivedAt, e.Kind, e.State, e.Account, e.Source, e.ID, firstLine(e.Reason, e.Raw))
}

// firstLine is the reason of an event, else what arrived, on one line of bounded length.
func firstLine(reason, raw string) string {
	const most = 160
	if reason == "" {
		reason = raw
	}
	line := strings.Join(strings.FieldsFunc(reason, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
	return decoders.Clip(line, most)
}

func (f *follower) filters() url.Values {
	return given(map[string]string{
		"kind": f.Kind, "state": f.State, "account": f.Account, "source": f.Source, "device": f.Device, "q": f.Query,
	})
}

// page requests a page of events.
func (f *follower) page(query url.Values) ([]tailEvent, string, error) {
	body, err := f.Ask(f.Environment, "events", http.MethodGet, "/admin/events?"+query.Encode(), nil)
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
