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

// listed is an event of a list, received in a second of a minute.
func listed(id string, kind event.Kind, second int) eventJSON {
	return eventJSON{ID: id, Kind: kind, ReceivedAt: formatTime(time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC)), Notes: []string{}}
}

// sourceOf is a source with events, which ends as end says.
func sourceOf(node string, kind event.Kind, end eventSource, events ...eventJSON) *eventSource {
	src := &eventSource{node: node, kind: kind}
	src.next, src.stop = iter.Pull(func(yield func(eventJSON) bool) {
		for _, e := range events {
			if !yield(e) {
				return
			}
		}
		src.resume, src.searchedTo, src.err = end.resume, end.searchedTo, end.err
	})
	src.advance()
	return src
}

func TestEventsOfSourcesAreMerged(t *testing.T) {
	const searched = "2026-03-01T12:00:03Z"
	u9, u5, u1 := listed("n1-u9", event.Uplink, 9), listed("n1-u5", event.Uplink, 5), listed("n1-u1", event.Uplink, 1)
	s7, s2 := listed("n1-s7", event.SMS, 7), listed("n1-s2", event.SMS, 2)
	o4 := listed("n2-u4", event.Uplink, 4)
	stopped := eventSource{resume: position{event.SMS: 3}, searchedTo: searched}
	for _, tc := range []struct {
		name    string
		limit   int
		sources []*eventSource
		ids     string
		next    string
		back    string
		away    string
	}{
		{
			"all of them", 9, []*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9, u5, u1), sourceOf("n1", event.SMS, eventSource{}, s7, s2)},
			"n1-u9 n1-s7 n1-u5 n1-s2 n1-u1", "", "", "",
		},
		{
			"as many as are asked for", 2, []*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9, u5, u1), sourceOf("n1", event.SMS, eventSource{}, s7, s2)},
			"n1-u9 n1-s7", "u6.s3", "", "",
		},
		{
			"as far as each was searched", 9, []*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9, u5, u1), sourceOf("n1", event.SMS, stopped, s7)},
			"n1-u9 n1-s7 n1-u5", "u2.s3", searched, "",
		},
		{
			"what is newer than the place to which one was searched", 9,
			[]*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9, u1), sourceOf("n1", event.SMS, stopped)},
			"n1-u9", "u2.s3", searched, "",
		},
		{
			"what is newer than the latest of such places", 9,
			[]*eventSource{
				sourceOf("n1", event.Uplink, eventSource{}, u9, u5, u1), sourceOf("n1", event.SMS, stopped),
				sourceOf("n2", "", eventSource{resume: position{event.Uplink: 7}, searchedTo: "2026-03-01T12:00:06Z"}),
			},
			"n1-u9", "n1_u6.s3~n2_u7", "2026-03-01T12:00:06Z", "",
		},
		{
			"none, if it is not known where one has stopped", 9,
			[]*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9), sourceOf("n2", "", eventSource{resume: position{event.Uplink: 7}})},
			"", "n1_u10~n2_u7", "", "",
		},
		{
			"an event without an id", 9, []*eventSource{sourceOf("n2", "", eventSource{}, listed("", event.Uplink, 3))},
			"", "", "", "",
		},
		{
			"those of another gateway", 2, []*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9), sourceOf("n2", "", eventSource{resume: position{event.Uplink: 3}}, o4)},
			"n1-u9 n2-u4", "n1_u1~n2_u3", "", "",
		},
		{
			"those of another gateway that breaks off", 9, []*eventSource{sourceOf("n1", event.Uplink, eventSource{}, u9, u1), sourceOf("n2", "", eventSource{err: io.ErrUnexpectedEOF}, o4)},
			"n1-u9 n2-u4", "n1_u2~n2_u4", "", "n2",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &eventList{node: "n1", limit: tc.limit, kinds: []event.Kind{event.Uplink}, places: positions{}, sources: tc.sources}
			for _, src := range tc.sources {
				if l.several = l.several || src.node != "n1"; src.kind == event.SMS || l.several {
					l.kinds = []event.Kind{event.Uplink, event.SMS}
				}
			}
			var out bytes.Buffer
			w := bufio.NewWriter(&out)
			relaytest.NoError(t, l.write(w))
			relaytest.NoError(t, w.Flush())
			var page struct {
				Data []eventJSON
				Meta searchMeta
			}
			relaytest.NoError(t, json.Unmarshal(out.Bytes(), &page))
			var ids, away []string
			for _, e := range page.Data {
				ids = append(ids, e.ID)
			}
			for _, g := range page.Meta.Away {
				away = append(away, g.Node)
			}
			relaytest.Equal(t, "the events", strings.Join(ids, " "), tc.ids)
			relaytest.Equal(t, "where the next page begins", page.Meta.Next, tc.next)
			relaytest.Equal(t, "how far back it was searched", page.Meta.SearchedTo, tc.back)
			relaytest.Equal(t, "the gateways that are away", strings.Join(away, " "), tc.away)
		})
	}
}

// The first event of another gateway is there before the answer has ended.
func TestAnswersOfGatewaysAreReadAsTheyArrive(t *testing.T) {
	body, w := io.Pipe()
	go func() { _, _ = fmt.Fprintf(w, `{"data":[{"id":"n2-u7","kind":"uplink"}`) }()
	src, err := gatewaySource("n2", body)
	relaytest.NoError(t, err)
	defer src.stop()
	if src.head == nil || src.head.ID != "n2-u7" {
		t.Fatalf("the head is %v, %v", src.head, src.err)
	}
	go func() { _, _ = fmt.Fprint(w, `],"meta":{"next":"u7","searched_to":"2026-03-01T12:00:03Z"}}`) }()
	src.advance()
	if src.head != nil || src.resume.String() != "u7" || src.searchedTo == "" || src.err != nil {
		t.Errorf("the end is %+v", src)
	}
}

// A page ends when it is large, and the next one has the rest.
func TestAPageOfLargeEventsIsShorter(t *testing.T) {
	o := newOffice(t)
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
			t.Errorf("a page has %d events", len(page.Data))
		}
		got = append(got, page.ids()...)
		if cursor = page.Meta.Next; cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d pages have %q, want %q", pages, got, want)
	}
}
