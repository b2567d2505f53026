package admin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// listedEvent returns an event that was received in a second of a minute.
func listedEvent(id string, kind event.Kind, second int) eventJSON {
	return eventJSON{ID: id, Kind: kind, ReceivedAt: formatTime(time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC)), Notes: []string{}}
}

// sourceOf returns a source of events that ends with the result of end.
func sourceOf(node string, kind event.Kind, end eventSource, events ...eventJSON) *eventSource {
	src := &eventSource{node: node, kind: kind}
	src.next, src.stop = iter.Pull(func(yield func(eventJSON) bool) {
		for _, e := range events {
			if !yield(e) {
				return
			}
		}
		src.resumeAt, src.searchedTo, src.err = end.resumeAt, end.searchedTo, end.err
	})
	src.advance()
	return src
}

func TestEventsOfSourcesAreMerged(t *testing.T) {
	const searched = "2026-03-01T12:00:03Z"
	u9, u5, u1 := listedEvent("n1-u9", event.Uplink, 9), listedEvent("n1-u5", event.Uplink, 5), listedEvent("n1-u1", event.Uplink, 1)
	s7, s2 := listedEvent("n1-s7", event.SMS, 7), listedEvent("n1-s2", event.SMS, 2)
	o4 := listedEvent("n2-u4", event.Uplink, 4)
	stopped := eventSource{resumeAt: position{event.SMS: 3}, searchedTo: searched}
	for _, tc := range []struct {
		name       string
		limit      int
		sources    []*eventSource
		ids        string
		next       string // cursor
		searchedTo string
		away       string // nodes
	}{
		{
			"all events", 9, []*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9, u5, u1), sourceOf("n1", event.SMS, eventSource{}, s7, s2)},
			"n1-u9 n1-s7 n1-u5 n1-s2 n1-u1", "", "", "",
		},
		{
			"the limit", 2, []*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9, u5, u1), sourceOf("n1", event.SMS, eventSource{}, s7, s2)},
			"n1-u9 n1-s7", "u6.s3", "", "",
		},
		{
			"a search that stopped after an event", 9, []*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9, u5, u1), sourceOf("n1", event.SMS, stopped, s7)},
			"n1-u9 n1-s7 n1-u5", "u2.s3", searched, "",
		},
		{
			"a search that stopped before its first event", 9,
			[]*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9, u1), sourceOf("n1", event.SMS, stopped)},
			"n1-u9", "u2.s3", searched, "",
		},
		{
			"two searches that stopped", 9,
			[]*eventSource{
				sourceOf("n1", event.Uplink, eventSource{}, u9, u5, u1), sourceOf("n1", event.SMS, stopped),
				sourceOf("n2", "", eventSource{resumeAt: position{event.Uplink: 7}, searchedTo: "2026-03-01T12:00:06Z"}),
			},
			"n1-u9", "n1_u6.s3~n2_u7", "2026-03-01T12:00:06Z", "",
		},
		{
			"a search that stopped at an unknown time", 9,
			[]*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9), sourceOf("n2", "", eventSource{resumeAt: position{event.Uplink: 7}})},
			"", "n1_u10~n2_u7", "", "",
		},
		{
			"an event without an id", 9, []*eventSource{sourceOf("n2", "", eventSource{}, listedEvent("", event.Uplink, 3))},
			"", "", "", "",
		},
		{
			"another gateway", 2, []*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9), sourceOf("n2", "", eventSource{resumeAt: position{event.Uplink: 3}}, o4)},
			"n1-u9 n2-u4", "n1_u1~n2_u3", "", "",
		},
		{
			"an interrupted answer of another gateway", 9, []*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9, u1), sourceOf("n2", "", eventSource{err: io.ErrUnexpectedEOF}, o4)},
			"n1-u9 n2-u4", "n1_u2~n2_u4", "", "n2",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &eventList{node: "n1", limit: tc.limit, kinds: []event.Kind{event.Uplink}, places: positions{}, sources: tc.sources}
			for _, src := range tc.sources {
				if l.hasPeers = l.hasPeers || src.node != "n1"; src.kind == event.SMS || l.hasPeers {
					l.kinds = []event.Kind{event.Uplink, event.SMS}
				}
			}
			var buf bytes.Buffer
			w := bufio.NewWriter(&buf)
			relaytest.NoError(t, l.write(w))
			relaytest.NoError(t, w.Flush())
			var page struct {
				Data []eventJSON
				Meta searchMeta
			}
			relaytest.NoError(t, json.Unmarshal(buf.Bytes(), &page))
			var ids, awayNodes []string
			for _, e := range page.Data {
				ids = append(ids, e.ID)
			}
			for _, g := range page.Meta.Away {
				awayNodes = append(awayNodes, g.Node)
			}
			relaytest.Equal(t, "the events", strings.Join(ids, " "), tc.ids)
			relaytest.Equal(t, "the cursor of the next page", page.Meta.Next, tc.next)
			relaytest.Equal(t, "the time to which events were searched", page.Meta.SearchedTo, tc.searchedTo)
			relaytest.Equal(t, "the gateways that are away", strings.Join(awayNodes, " "), tc.away)
		})
	}
}

// The first event of another gateway is available before the end of the answer.
func TestAnswersOfGatewaysAreReadAsTheyArrive(t *testing.T) {
	body, w := io.Pipe()
	go func() { _, _ = fmt.Fprintf(w, `{"data":[{"id":"n2-u7","kind":"uplink"}`) }()
	src, err := gatewaySource("n2", body)
	relaytest.NoError(t, err)
	defer src.stop()
	if src.head == nil || src.head.ID != "n2-u7" {
		t.Fatalf("head = %v, %v, want n2-u7", src.head, src.err)
	}
	go func() { _, _ = fmt.Fprint(w, `],"meta":{"next":"u7","searched_to":"2026-03-01T12:00:03Z"}}`) }()
	src.advance()
	if src.head != nil || src.resumeAt.String() != "u7" || src.searchedTo == "" || src.err != nil {
		t.Errorf("source at the end = %+v, want the position u7", src)
	}
}

// A page ends after pageBytes, and the next page has the remaining events.
func TestPagesOfLargeEventsAreShort(t *testing.T) {
	o := newOperatorAPI(t)
	var want []string
	for i := range 9 {
		o.accept(event.Uplink, strings.Repeat("z", pageBytes/4))
		want = append([]string{fmt.Sprintf("u%d", i+1)}, want...)
	}
	o.process()
	var got []string
	pages := 0
	for cursor := ""; ; pages++ {
		page := o.list("GET /admin/events?limit=100&cursor=" + cursor)
		if len(page.Data) > 4 {
			t.Errorf("events of a page = %d, want at most 4", len(page.Data))
		}
		got = append(got, page.ids()...)
		if cursor = page.Meta.Next; cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("events of %d pages = %q, want %q", pages, got, want)
	}
}
