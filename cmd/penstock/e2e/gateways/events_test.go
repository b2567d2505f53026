package gateways

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// eventPage is a page of events. Meta.Away lists the gateways that did not return their events.
type eventPage struct {
	Data []e2e.Event
	Meta struct {
		Next string
		Away []struct{ Node, Error string }
	}
}

// ids returns the ids of the events of a page, in order.
func (p eventPage) ids() (list []string) {
	for _, e := range p.Data {
		list = append(list, e.ID)
	}
	return list
}

// eventPages reads all pages of a list of events, with up to limit events on each page.
func eventPages(g *e2e.Gateway, query string, limit int) (allPages eventPage) {
	g.T.Helper()
	for cursor := ""; ; {
		var page eventPage
		g.Admin().Get(fmt.Sprintf("/admin/events?%s&limit=%d%s", query, limit, cursor)).Decode(g.T, &page)
		allPages.Data, allPages.Meta.Away = append(allPages.Data, page.Data...), page.Meta.Away
		if page.Meta.Next == "" {
			return allPages
		}
		cursor = "&cursor=" + page.Meta.Next
	}
}

func testSplitEvents(t *testing.T, s *e2e.Site) {
	sink := e2e.NewSink(t, nil)
	c := e2e.NewCluster(t, s, e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", s.Mailbox()))
	c.Spawn()
	var ids []string
	for n := range 2 * e2e.ClusterSize {
		ids = append(ids, e2e.CarrierOf(c.Gateways[n%e2e.ClusterSize]).PostInboundText(fmt.Sprint("lost-", n), "33123456789", fmt.Sprint("nobody takes ", n)))
	}
	c.Front.AwaitProcessed()
	slices.Reverse(ids)
	for _, g := range c.Gateways {
		for _, limit := range []int{1, 4, 100} {
			if page := eventPages(g, "state=unrouted", limit); !slices.Equal(page.ids(), ids) || len(page.Meta.Away) > 0 {
				t.Errorf("pages of %d: events = %q, away = %v, want %q and none", limit, page.ids(), page.Meta.Away, ids)
			}
		}
	}
	lastOfA, lastOfC := ids[2], ids[0]
	relaytest.Equal(t, "the trace of A's event at B", c.Gateways[1].Trace(lastOfA), c.Gateways[0].Trace(lastOfA))
	c.Gateways[2].Admin().Put("/admin/inventory", `{"accounts": [{"name": "acme", "relays": {"geo": [{"id": "g-new", "prefix": "33", "action": "http_get", "parameters": ["`+sink.URL+`/new?m=%m&i=%i"]}]}}]}`).Mentions(t, 200, `"acme"`)
	c.Gateways[1].Admin().Post("/admin/events/replay", `{"ids": ["`+lastOfA+`"]}`).Mentions(t, 200, `"count":1,`)
	e2e.SameValues(t, sink.Await(t, "/new", 1).Query, map[string]string{"m": "nobody takes 3", "i": lastOfA})
	c.Gateways[1].Admin().Post("/admin/events/replay", `{"state": "unrouted"}`).Mentions(t, 200, fmt.Sprintf(`"count":%d,`, len(ids)-1))
	sink.Await(t, "/new", len(ids))
	relaytest.Eventually(t, "every delivery has ended", func() (any, bool) {
		deliveries := c.Gateways[0].Deliveries("relay=g-new&state=delivered")
		return deliveries, len(deliveries) == len(ids)
	})
	testAway(t, c, ids, lastOfC)
	if n := len(sink.Requests("/new")); n != len(ids) {
		t.Errorf("requests for %[1]d messages = %[2]d, want %[1]d", len(ids), n)
	}
}

// testAway kills the third gateway, checks the lists of events without it, and starts it
// again. newest is the id of the gateway's newest event.
func testAway(t *testing.T, c *e2e.Cluster, ids []string, newest string) {
	t.Helper()
	node := newest[:strings.LastIndex(newest, "-")]
	c.Gateways[2].Kill()
	for _, g := range c.Gateways[:2] {
		page := eventPages(g, "kind=sms", 100)
		remaining := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return strings.HasPrefix(id, node+"-") })
		relaytest.Equal(t, "the events without "+node, page.ids(), remaining)
		if len(page.Meta.Away) != 1 {
			t.Fatalf("gateways away = %d, want 1", len(page.Meta.Away))
		}
		relaytest.Equal(t, "the gateway that is away", page.Meta.Away[0].Node, node)
		if resp := g.Admin().Get("/admin/events/" + newest); resp.Status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s, want 503, because its gateway does not answer", resp.Request, resp.Status, resp.Body)
		}
	}
	c.Gateways[2].Spawn()
	for _, g := range c.Gateways {
		relaytest.Eventually(t, "the events of "+node+" are listed again", func() (any, bool) {
			page := eventPages(g, "kind=sms", 100)
			return page, slices.Equal(page.ids(), ids) && len(page.Meta.Away) == 0
		})
	}
	relaytest.Equal(t, "the trace of C's event at A", c.Gateways[0].Trace(newest), c.Gateways[2].Trace(newest))
}
