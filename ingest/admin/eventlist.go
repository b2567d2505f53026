package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// The limits of a page: the time for which records are searched, unless the request sets a shorter
// time, and the size in bytes after which the page ends.
const (
	maxSearchTime = 5 * time.Second
	pageBytes     = 4 << 20
)

// searchMeta is the member meta of a page. A page before the last may have fewer records than its
// limit.
type searchMeta struct {
	Next string `json:"next"`
	// SearchedTo is the time back to which records were searched if the search reached its time
	// limit; otherwise empty.
	SearchedTo string `json:"searched_to,omitempty"`
	// Away lists the gateways without an answer.
	Away []awayJSON `json:"away,omitempty"`
	// Stale is set while the database is down: the page then has the events of this gateway's
	// journals only.
	Stale string `json:"stale,omitempty"`
}

// eventSource is a source of events, newest first: a journal of this gateway, or another
// gateway.
type eventSource struct {
	node string
	kind event.Kind // of the journal; empty for another gateway
	next func() (eventJSON, bool)
	stop func()
	head *eventJSON // the newest event that is not on the page yet; nil if there is none

	// The result of the search, valid when head is nil:
	resumeAt   position // the position at which the search stopped; nil if it examined all events
	searchedTo string   // the time of receipt of the event at resumeAt
	err        error
}

// advance reads the next event into head.
func (src *eventSource) advance() {
	src.head = nil
	if e, ok := src.next(); ok {
		src.head = &e
	}
}

// journalSources returns sources that search the journals of this gateway. It returns the error of
// a search that fails before the first event.
func (s *Surface) journalSources(ctx context.Context, intakes []*intake.Intake, search intake.Search, places position) (eventSources, error) {
	var sources eventSources
	deadline := search.Until
	for n, i := range intakes {
		search.BeforeSeq = places[i.Kind()]
		// Each journal has an equal part of the remaining time.
		search.Until = time.Now().Add(time.Until(deadline) / time.Duration(len(intakes)-n))
		src := &eventSource{node: s.Node, kind: i.Kind()}
		src.next, src.stop = iter.Pull(func(yield func(eventJSON) bool) {
			var end intake.SearchEnd
			end, src.err = i.Search(ctx, search, func(e event.Event, item *intake.Item) bool { return yield(s.eventOf(e, item)) })
			if end.Seq > 0 {
				src.resumeAt, src.searchedTo = position{i.Kind(): end.Seq}, formatTime(end.Time)
			}
		})
		sources = append(sources, src)
		if src.advance(); src.head == nil && src.err != nil {
			sources.stop()
			return nil, src.err
		}
	}
	return sources, nil
}

// gatewaySource returns a source that reads the answer of another gateway as it arrives.
func gatewaySource(node string, body io.ReadCloser) (*eventSource, error) {
	src := &eventSource{node: node}
	next, stop := iter.Pull(func(yield func(eventJSON) bool) {
		var meta searchMeta
		if meta, src.err = readEvents(body, yield); meta.Next != "" {
			src.resumeAt, _ = parsePosition(meta.Next)
			src.searchedTo = meta.SearchedTo
		}
	})
	src.next, src.stop = next, func() {
		stop()
		_ = body.Close()
	}
	src.advance()
	return src, nil
}

// readEvents reads a page of events, {"data": […], "meta": {…}}, until yield returns false.
func readEvents(r io.Reader, yield func(eventJSON) bool) (meta searchMeta, err error) {
	d := json.NewDecoder(r)
	for range 3 { // {, "data", [
		if _, err := d.Token(); err != nil {
			return meta, err
		}
	}
	for d.More() {
		var e eventJSON
		if err := d.Decode(&e); err != nil {
			return meta, err
		}
		if !yield(e) {
			return meta, nil
		}
	}
	for range 2 { // ], "meta"
		if _, err := d.Token(); err != nil {
			return meta, err
		}
	}
	return meta, d.Decode(&meta)
}

// eventSources are the sources of a list.
type eventSources []*eventSource

func (sources eventSources) stop() {
	for _, src := range sources {
		src.stop()
	}
}

// newest returns the source with the newest head. If the next event of a source that stopped
// early may be newer, newest returns nil and that source as stopped.
func (sources eventSources) newest() (newest, stopped *eventSource) {
	for _, src := range sources {
		switch {
		case src.head == nil && src.resumeAt == nil && src.err == nil: // the source is exhausted
		case src.head == nil:
			if stopped == nil || stopped.isOlderThan(src) {
				stopped = src
			}
		case newest == nil || newest.isOlderThan(src):
			newest = src
		}
	}
	if stopped != nil && (newest == nil || !stopped.isOlderThan(newest)) {
		return nil, stopped
	}
	return newest, nil
}

// isOlderThan reports whether the next event of src is older than the next event of newer.
func (src *eventSource) isOlderThan(newer *eventSource) bool {
	nextAt, known := src.nextAt()
	newerAt, newerKnown := newer.nextAt()
	return known && (!newerKnown || nextAt.Before(newerAt))
}

// nextAt returns the time of receipt of the next event or, if the source stopped early, the latest
// possible time. known is false if the answer of another gateway was interrupted.
func (src *eventSource) nextAt() (t time.Time, known bool) {
	text := src.searchedTo
	if src.head != nil {
		text = src.head.ReceivedAt
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil
}

// sequence returns the sequence number at the end of the event's id, or 0 if the id, which may
// come from another gateway, has none.
func (e *eventJSON) sequence() uint64 {
	tail := e.ID[strings.LastIndexByte(e.ID, '-')+1:]
	seq, _ := strconv.ParseUint(tail[min(1, len(tail)):], 10, 63)
	return seq
}

// listEvents lists the events of all gateways, newest first. It writes events as it finds them.
func (s *Surface) listEvents(c *fiber.Ctx, sel *selection) error {
	intakes, f := s.readEventFilter(sel)
	limit := sel.limit()
	places, ok := parsePositions(sel.option("cursor"), s.Node)
	if !ok {
		sel.Add("cursor", invalidCursor)
	}
	search := intake.Search{Filter: f, Until: sel.searchUntil()}
	if err := sel.Err(); err != nil {
		return err
	}
	list, err := s.findEvents(c, intakes, search, places, limit, peerQuery(c))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	httpd.Write(c, list.write)
	return nil
}

// findEvents begins a list of selected events of all gateways. query has the same search for the
// other gateways.
func (s *Surface) findEvents(c *fiber.Ctx, intakes []*intake.Intake, search intake.Search, places positions, limit int, query url.Values) (*eventList, error) {
	list := &eventList{node: s.Node, limit: limit, hidden: hidesTexts(c), sender: principalOf(c), places: places}
	for _, i := range intakes {
		list.kinds = append(list.kinds, i.Kind())
	}
	// 1. Search the journals of this gateway up to their first events.
	ctx, f, searchTime := c.UserContext(), &search.Filter, time.Until(search.Until)
	otherGateways, err := s.Peers.otherGateways(c)
	if err == nil {
		list.sources, err = s.journalSources(ctx, intakes, search, places[s.Node])
	}
	if relay.KindOf(err) == relay.KindUnavailable && (f.State == "" || f.State == event.Pending) {
		list.meta.Stale = "The database does not answer (" + faultText(list.sender, err) + "). " +
			"The list has the events of this gateway's journals only, and the states of processed events are unknown."
		// The requests to the database may have used the time of the search.
		otherGateways, search.JournalOnly, search.Until = nil, true, time.Now().Add(searchTime)
		list.sources, err = s.journalSources(ctx, intakes, search, places[s.Node])
	}
	if err != nil {
		return nil, err
	}
	// 2. Query the other gateways, each from its position in the list.
	if f.Account != 0 { // a user of the role account may omit the parameter
		query.Set("account", f.Account.String())
	}
	list.hasPeers = len(otherGateways) > 0
	request := func(node string) peerRequest {
		query := maps.Clone(query)
		query.Set("limit", strconv.Itoa(min(limit+1, maxLimit)))
		query.Set("cursor", places[node].String())
		return peerRequest{method: http.MethodGet, path: "/internal/events", query: query, sender: list.sender}
	}
	found, awayGateways := queryAll(ctx, s.Peers, otherGateways, request, gatewaySource)
	list.sources, list.meta.Away = slices.AppendSeq(list.sources, maps.Values(found)), awayGateways
	return list, nil
}

// eventList is a list of events that is being written.
type eventList struct {
	node     string
	sender   principal // of the request
	hasPeers bool      // the list has events of other gateways
	kinds    []event.Kind
	limit    int
	hidden   bool // texts of messages are hidden
	sources  eventSources
	places   positions // the positions at which the next page begins
	meta     searchMeta
}

// newest returns the source with the newest event, or nil at the end of the list or of a search.
func (l *eventList) newest() *eventSource {
	src, stopped := l.sources.newest()
	if src == nil && stopped != nil {
		l.meta.SearchedTo = stopped.searchedTo
	}
	return src
}

// pass moves the list past the head of a source.
func (l *eventList) pass(src *eventSource) {
	l.places.set(src.node, src.head.Kind, src.head.sequence())
	src.advance()
}

// write writes a page.
func (l *eventList) write(w *bufio.Writer) error {
	defer l.sources.stop()
	_, _ = w.WriteString(`{"data":[`) // w returns an error again at later writes
	for count, size := 0, 0; count < l.limit && size < pageBytes; count++ {
		src := l.newest()
		if src == nil {
			break
		}
		e := src.head
		e.hideText(l.hidden)
		if l.sender.peer == "" {
			e.From, e.To = "", ""
		}
		text, err := relay.EncodeJSON(e)
		if err != nil {
			return err
		}
		if count > 0 {
			_ = w.WriteByte(',')
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		size += len(text)
		l.pass(src)
	}
	if err := l.setNextCursor(); err != nil {
		return err
	}
	meta, err := relay.EncodeJSON(l.meta)
	if err != nil {
		return err
	}
	_, _ = w.WriteString(`],"meta":`)
	_, _ = w.Write(meta)
	return w.WriteByte('}')
}

// setNextCursor sets the cursor of the next page.
func (l *eventList) setNextCursor() error {
	hasMore := false
	for _, src := range l.sources {
		switch {
		case src.head != nil && src.kind != "":
			l.places.set(src.node, src.kind, src.head.sequence()+1)
		case src.head != nil: // the gateway's position is after its last event on the page
		case src.err != nil && src.kind != "":
			return src.err
		case src.err != nil: // the answer was interrupted
			l.meta.Away = append(l.meta.Away, awayJSON{Node: src.node, Error: faultText(l.sender, src.err)})
			continue
		case src.resumeAt != nil:
			for kind, seq := range src.resumeAt {
				l.places.set(src.node, kind, seq)
			}
		default: // the source is exhausted
			for _, kind := range l.kinds {
				if src.kind == "" || src.kind == kind {
					l.places.set(src.node, kind, 1)
				}
			}
			continue
		}
		hasMore = true
	}
	switch {
	case !hasMore:
	case l.hasPeers:
		l.meta.Next = l.places.String()
	default:
		l.meta.Next = l.places[l.node].String()
	}
	return nil
}
