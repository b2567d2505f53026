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
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/gateway"
)

// The budget of a list of events: how long it searches, and the bytes of its answer after
// which a page ends.
const (
	searchTime = 5 * time.Second
	pageBytes  = 4 << 20
)

// eventsMeta is the meta of a page of events, which may have fewer events than its limit
// although there are more.
type eventsMeta struct {
	Next string `json:"next"`
	// SearchedTo is the time back to which the search came; empty if it did not stop because
	// of that.
	SearchedTo string `json:"searched_to,omitempty"`
	// Away names the gateways whose events are missing.
	Away []awayJSON `json:"away,omitempty"`
	// Stale says what is missing because the database does not answer; the events are
	// those of this gateway's journals then.
	Stale string `json:"stale,omitempty"`
}

// eventSource is a source of a list's events, newest first: a journal of this gateway, or
// another gateway.
type eventSource struct {
	node string
	kind event.Kind // of the journal; empty for another gateway
	fn   func() (eventJSON, bool)
	stop func()
	head *eventJSON // the newest that was not taken; nil if there is none

	// Valid when there is no head:
	goOn       position // where the events go on that were not examined; nil if there are none
	searchedTo string   // when the one was received at which the search stopped
	err        error
}

// advance takes the head and finds the next.
func (src *eventSource) advance() {
	src.head = nil
	if e, ok := src.fn(); ok {
		src.head = &e
	}
}

// journalSource searches a journal of this gateway.
func (s *Surface) journalSource(ctx context.Context, in *intake.Intake, search intake.Search) *eventSource {
	src := &eventSource{node: s.Node, kind: in.Kind()}
	src.fn, src.stop = iter.Pull(func(yield func(eventJSON) bool) {
		var reached intake.Reached
		reached, src.err = in.Search(ctx, search, func(e event.Event, _ *intake.Item) bool { return yield(eventOf(e)) })
		if reached.Seq > 0 {
			src.goOn, src.searchedTo = position{in.Kind(): reached.Seq}, formatTime(reached.Time)
		}
	})
	return src
}

// journalSources searches the journals of this gateway. The error is that of the first
// search that fails before it finds an event.
func (s *Surface) journalSources(ctx context.Context, intakes []*intake.Intake, search intake.Search, at position) (eventSources, error) {
	var sources eventSources
	for _, intake := range intakes {
		search.Below = at[intake.Kind()]
		src := s.journalSource(ctx, intake, search)
		sources = append(sources, src)
		if src.advance(); src.head == nil && src.err != nil {
			sources.stop()
			return nil, src.err
		}
	}
	return sources, nil
}

// gatewaySource reads the answer of another gateway as it arrives.
func gatewaySource(node string, body io.ReadCloser) *eventSource {
	src := &eventSource{node: node}
	fn, stop := iter.Pull(func(yield func(eventJSON) bool) {
		var meta eventsMeta
		if meta, src.err = readEvents(body, yield); meta.Next != "" {
			src.goOn, _ = parsePosition(meta.Next)
			src.searchedTo = meta.SearchedTo
		}
	})
	src.fn, src.stop = fn, func() {
		stop()
		_ = body.Close()
	}
	return src
}

// readEvents reads a page of events, {"data": […], "meta": {…}}, until yield returns false.
func readEvents(r io.Reader, yield func(eventJSON) bool) (meta eventsMeta, err error) {
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

// events queries other gateways for their events, all at the same time.
func (p *Peers) events(ctx context.Context, who principal, gateways []gateway.Gateway, request func(gateway.Gateway) peerRequest) (found eventSources, views []awayJSON) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, g := range gateways {
		wait.Go(func() {
			var source *eventSource
			err := relay.Recovered("events of gateway "+g.Node, func() error {
				resp, err := p.ask(ctx, &g, request(g))
				if err == nil && resp.status != http.StatusOK {
					err = resp.refusal()
				}
				if err != nil {
					return err
				}
				source = gatewaySource(g.Node, resp.body)
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				views = append(views, awayOf(who, &g, err))
				return
			}
			found = append(found, source)
		})
	}
	wait.Wait()
	return found, views
}

// eventSources are merged into a list.
type eventSources []*eventSource

func (sources eventSources) stop() {
	for _, src := range sources {
		src.stop()
	}
}

// newest returns the source whose head is the newest; nil if the list ends here: without
// heads, or where a source has stopped whose next event could be newer.
func (sources eventSources) newest() (newest *eventSource, stopped *eventSource) {
	for _, src := range sources {
		switch {
		case src.head == nil && src.goOn == nil && src.err == nil: // it has no more
		case src.head == nil:
			if stopped == nil || stopped.before(src) {
				stopped = src
			}
		case newest == nil || newest.before(src):
			newest = src
		}
	}
	if stopped != nil && (newest == nil || !stopped.before(newest)) {
		return nil, stopped
	}
	return newest, nil
}

// before reports whether the next event of a source can only be older than that of
// another one.
func (src *eventSource) before(otherEventSource *eventSource) bool {
	nextAt, known := src.nextAt()
	otherNext, otherKnown := otherEventSource.nextAt()
	return known && (!otherKnown || nextAt.Before(otherNext))
}

// nextAt returns when the next event was received. Of a source that has stopped it returns
// the place to which that was searched: its next event is not newer. known is false if
// the answer of another gateway ended without naming that place.
func (src *eventSource) nextAt() (t time.Time, known bool) {
	text := src.searchedTo
	if src.head != nil {
		text = src.head.ReceivedAt
	}
	t, err := time.Parse(time.RFC3339Nano, text) // what formatTime wrote
	return t, err == nil
}

// sequence returns the sequence number of the event in its journal, which its id ends
// with; 0 if the id that another gateway sent has none.
func (e *eventJSON) sequence() uint64 {
	tail := e.ID[strings.LastIndexByte(e.ID, '-')+1:]
	seq, _ := strconv.ParseUint(tail[min(1, len(tail)):], 10, 63)
	return seq
}

// listEvents lists the events of all gateways, newest first, as they are found.
func (s *Surface) listEvents(c *fiber.Ctx, sel *selection) error {
	intakes, f := s.events(sel)
	limit := sel.limit()
	at, ok := parsePositions(sel.cursor(), s.Node)
	if !ok {
		sel.Add("cursor", "want the next of an earlier page")
	}
	if err := sel.Err(); err != nil {
		return err
	}
	list, err := s.findEvents(c, intakes, f, at, limit, passedOn(c))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	httpd.Write(c, list.write)
	return nil
}

// findEvents begins a list of the events of all gateways that a filter selects. query is the
// filter, for the other gateways.
func (s *Surface) findEvents(c *fiber.Ctx, intakes []*intake.Intake, f event.Filter, at positions, limit int, query url.Values) (*eventList, error) {
	list := &eventList{node: s.Node, limit: limit, hidden: hidesTexts(c), p: principalOf(c), at: at}
	for _, intake := range intakes {
		list.kinds = append(list.kinds, intake.Kind())
	}
	// 1. The journals of this gateway, as far as their first events.
	ctx, search := c.UserContext(), intake.Search{Filter: f, Until: time.Now().Add(searchTime)}
	otherGateways, err := s.Peers.others(c)
	if err == nil {
		list.sources, err = s.journalSources(ctx, intakes, search, list.at[s.Node])
	}
	if relay.KindOf(err) == relay.KindUnavailable && (f.State == "" || f.State == event.Pending) {
		list.meta.Stale = "The database does not answer (" + faultText(principalOf(c), err) + "): these are the events of this gateway's journal alone, and the state of those that were processed is not known."
		otherGateways, search.JournalOnly = nil, true
		list.sources, err = s.journalSources(ctx, intakes, search, list.at[s.Node])
	}
	if err != nil {
		return nil, err
	}
	// 2. Those of others, each below the place to which the list has come there.
	if f.Account != 0 { // which a user of one account need not name
		query.Set("account", f.Account.String())
	}
	list.several = len(otherGateways) > 0
	found, views := s.Peers.events(ctx, list.p, otherGateways, func(g gateway.Gateway) peerRequest {
		query := maps.Clone(query)
		query.Set("limit", strconv.Itoa(min(list.limit+1, maxLimit)))
		query.Set("cursor", list.at[g.Node].String())
		return peerRequest{method: http.MethodGet, path: "/internal/events", query: query, p: list.p}
	})
	for _, src := range found {
		src.advance()
	}
	list.sources, list.meta.Away = append(list.sources, found...), views
	return list, nil
}

// eventList is a list of events that is being written.
type eventList struct {
	node    string
	p       principal
	several bool // other gateways have events too
	kinds   []event.Kind
	limit   int
	hidden  bool // texts of messages are hidden
	sources eventSources
	at      positions
	meta    eventsMeta
}

// newest returns the source of the newest event, nil if the list ends here or the search
// stopped.
func (l *eventList) newest() *eventSource {
	src, stopped := l.sources.newest()
	if src == nil && stopped != nil {
		l.meta.SearchedTo = stopped.searchedTo
	}
	return src
}

// pass moves the list behind the head of a source.
func (l *eventList) pass(src *eventSource) {
	l.at.set(src.node, src.head.Kind, src.head.sequence())
	src.advance()
}

// write writes a page.
func (l *eventList) write(w *bufio.Writer) error {
	defer l.sources.stop()
	_, _ = w.WriteString(`{"data":[`) // an error stays
	for count, size := 0, 0; count < l.limit && size < pageBytes; count++ {
		src := l.newest()
		if src == nil {
			break
		}
		e := src.head
		e.hideText(l.hidden)
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
	if err := l.end(); err != nil {
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

// end notes where the next page begins.
func (l *eventList) end() error {
	hasMore := false
	for _, src := range l.sources {
		switch {
		case src.head != nil && src.kind != "":
			l.at.set(src.node, src.kind, src.head.sequence()+1)
		case src.head != nil: // it searches again below what was taken
		case src.err != nil && src.kind != "":
			return src.err
		case src.err != nil: // the answer broke off
			l.meta.Away = append(l.meta.Away, awayJSON{Node: src.node, Error: faultText(l.p, src.err)})
			continue
		case src.goOn != nil:
			for kind, seq := range src.goOn {
				l.at.set(src.node, kind, seq)
			}
		default:
			for _, kind := range l.kinds { // it has no more events
				if src.kind == "" || src.kind == kind {
					l.at.set(src.node, kind, 1)
				}
			}
			continue
		}
		hasMore = true
	}
	switch {
	case !hasMore:
	case l.several:
		l.meta.Next = l.at.String()
	default:
		l.meta.Next = l.at[l.node].String()
	}
	return nil
}
