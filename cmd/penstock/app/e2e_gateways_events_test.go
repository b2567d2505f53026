package app

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// eventPage is a page of events with the gateways that are missing in it.
type eventPage struct {
	Data []happening
	Meta struct {
		Next string
		Away []struct{ Node, Error string }
	}
}

// ids are those of the events of a page, in its order.
func (p eventPage) ids() (out []string) {
	for _, e := range p.Data {
		out = append(out, e.ID)
	}
	return out
}

// eventPages reads a list of events to its end, so many a page.
func (g *gateway) eventPages(query string, limit int) (whole eventPage) {
	g.t.Helper()
	for cursor := ""; ; {
		var page eventPage
		g.admin().get(fmt.Sprintf("/admin/events?%s&limit=%d%s", query, limit, cursor)).into(g.t, &page)
		whole.Data, whole.Meta.Away = append(whole.Data, page.Data...), page.Meta.Away
		if page.Meta.Next == "" {
			return whole
		}
		cursor = "&cursor=" + page.Meta.Next
	}
}

func testSplitEvents(t *testing.T, s *site) {
	k := newSink(t, nil)
	c := newCluster(t, s, fixture(t, "relays.yaml", "SINK", k.url, "MAILBOX", s.mailbox()))
	c.spawn()
	var ids []string
	for n := range 2 * members {
		ids = append(ids, carrierOf(c.all[n%members]).text(fmt.Sprint("lost-", n), "33123456789", fmt.Sprint("nobody takes ", n)))
	}
	c.front.settled()
	slices.Reverse(ids)
	for _, g := range c.all {
		for _, limit := range []int{1, 4, 100} {
			if page := g.eventPages("state=unrouted", limit); !slices.Equal(page.ids(), ids) || len(page.Meta.Away) > 0 {
				t.Errorf("pages of %d: %q, %v away, want %q", limit, page.ids(), page.Meta.Away, ids)
			}
		}
	}
	lastOfA, lastOfC := ids[2], ids[0]
	same(t, "the trace of A's event at B", c.all[1].trace(lastOfA), c.all[0].trace(lastOfA))
	c.all[2].admin().put("/admin/inventory", `{"accounts": [{"name": "acme", "relays": {"geo": [{"id": "g-new", "prefix": "33", "action": "http_get", "parameters": ["`+k.url+`/new?m=%m&i=%i"]}]}}]}`).mentions(t, 200, `"acme"`)
	c.all[1].admin().post("/admin/events/replay", `{"ids": ["`+lastOfA+`"]}`).is(t, 200, `{"count": 1}`)
	sameValues(t, k.await(t, "/new", 1).query, map[string]string{"m": "nobody takes 3", "i": lastOfA})
	c.all[1].admin().post("/admin/events/replay", `{"state": "unrouted"}`).is(t, 200, fmt.Sprintf(`{"count": %d}`, len(ids)-1))
	k.await(t, "/new", len(ids))
	eventually(t, "every delivery has ended", func() (any, bool) {
		all := c.all[0].deliveries("relay=g-new&state=delivered")
		return all, len(all) == len(ids)
	})
	testAway(t, c, ids, lastOfC)
	if n := len(k.at("/new")); n != len(ids) {
		t.Errorf("%d messages were sent %d times", len(ids), n)
	}
}

// testAway kills the third gateway, whose newest event is given, and starts it again.
func testAway(t *testing.T, c *cluster, ids []string, newest string) {
	t.Helper()
	node := newest[:strings.LastIndex(newest, "-")]
	c.all[2].kill()
	for _, g := range c.all[:2] {
		page := g.eventPages("kind=sms", 100)
		left := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return strings.HasPrefix(id, node+"-") })
		if !slices.Equal(page.ids(), left) || len(page.Meta.Away) != 1 || page.Meta.Away[0].Node != node {
			t.Errorf("without %s: %q, %+v away, want %q", node, page.ids(), page.Meta.Away, left)
		}
		if a := g.admin().get("/admin/events/" + newest); a.status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s, want 503: its gateway does not answer", a.of, a.status, a.body)
		}
	}
	c.all[2].spawn()
	for _, g := range c.all {
		eventually(t, "the events of "+node+" are listed again", func() (any, bool) {
			page := g.eventPages("kind=sms", 100)
			return page, slices.Equal(page.ids(), ids) && len(page.Meta.Away) == 0
		})
	}
	same(t, "the trace of C's event at A", c.all[0].trace(newest), c.all[2].trace(newest))
}
