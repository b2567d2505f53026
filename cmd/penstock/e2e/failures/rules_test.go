package failures

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestRulesSurviveKills kills the gateway at random moments under load, twice, 20 times
// in a soak or PENSTOCK_TEST_KILLS times, on real servers with Redis away for a while meanwhile. Every
// stored frame is evaluated once: no alarm is lost, none is raised twice, and
// no frame is forwarded twice.
func TestRulesSurviveKills(t *testing.T) {
	t.Parallel()
	kills := e2e.Rounds(t, "PENSTOCK_TEST_KILLS", 2, 20)
	e2e.OnRealSite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		if s.Redis != nil {
			s = e2e.OwnServers(t) // Redis is stopped
		}
		random := e2e.Random(t)
		heard := newNotices(t)
		g := e2e.NewGateway(t, s, e2e.Fixture(t, "load.yaml", "SINK", heard.url), "PENSTOCK_RULES_ACTIONS_PER_MINUTE=1000000")
		g.Spawn()
		heard.rules(g.As("acme-all-0123456"))
		l := g.StartLoad(e2e.Connections)
		var away <-chan time.Time
		for round := range kills {
			e2e.SleepRandomly(random, 400*time.Millisecond)
			if s.Redis != nil && round == kills/2 {
				s.Redis.Stop()
				away = time.After(outage(t))
				l.AwaitMessages(t, 20)
			}
			g.Kill()
			g.Spawn()
		}
		if away != nil {
			e2e.SleepRandomly(random, 400*time.Millisecond)
			<-away
			s.Redis.Restart()
		}
		l.AwaitMessages(t, 20)
		l.End()
		if len(l.Frames.Acked) == 0 {
			t.Fatalf("there was no load: %v", l.Refused)
		}
		g.AwaitProcessed()
		heard.check(t, l)
		g.EndCleanly()
	})
}

// notices is an endpoint of rules, and what came to it.
type notices struct {
	url string
	mu  sync.Mutex
	// alarms has the ids of the requests by alarm and state, frames those by device
	// and time.
	alarms, frames map[string]map[string]bool
}

func newNotices(t *testing.T) *notices {
	t.Helper()
	n := &notices{alarms: map[string]map[string]bool{}, frames: map[string]map[string]bool{}}
	n.url = e2e.NewServer(t, n)
	return n
}

func (n *notices) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	n.mu.Lock()
	defer n.mu.Unlock()
	id := r.Header.Get("Webhook-Id")
	switch r.URL.Path {
	case "/alarm":
		var one e2e.RuleNotice
		if json.Unmarshal(body, &one) == nil {
			add(n.alarms, one.AlarmID+" "+one.State, id)
		}
	case "/batch":
		var all []e2e.RuleNotice
		if json.Unmarshal(body, &all) == nil {
			for _, one := range all {
				add(n.frames, one.Device.Identifier+" "+one.Time, id)
			}
		}
	}
}

func add(to map[string]map[string]bool, key, id string) {
	if to[key] == nil {
		to[key] = map[string]bool{}
	}
	to[key][id] = true
}

// isHot is the condition on the readings of a load: every other one of a device.
const isHot = `int(values.generic_1) % 16777216 % 100 < 50`

func hotValue(value float64) bool { return int(value)%16777216%(2*e2e.DevicesEach) < e2e.DevicesEach }

// rules creates an alarm over all devices and the forwarding of those of the first
// connection.
func (n *notices) rules(c e2e.Client) {
	c.Gateway.T.Helper()
	c.Post("/iot/rules", fmt.Sprintf(`{"name":"Hot","on":"reading","when":%q,"actions":[{"action":"http_post","parameters":["%s/alarm"]}]}`, isHot, n.url)).Mentions(c.Gateway.T, 201)
	c.Post("/iot/rules", fmt.Sprintf(`{"name":"All","on":"reading","devices":{"name":"*"},"batch":{"count":20,"every":"2s"},
"actions":[{"action":"http_post","parameters":["%s/batch"]}]}`, n.url)).Mentions(c.Gateway.T, 201)
}

// check compares what was raised and forwarded with the frames that were stored.
func (n *notices) check(t *testing.T, l *e2e.Load) {
	t.Helper()
	acme := l.G.As("acme-all-0123456")
	var alarms, frames []string // that must have come
	for _, devEUI := range loadedDevices() {
		stored := acme.ReadingsByTime(devEUI)
		if len(stored) == 0 {
			continue
		}
		raised := false
		var want []string
		for _, at := range slices.Sorted(maps.Keys(stored)) {
			frames = append(frames, devEUI+" "+strings.Replace(at, " ", "T", 1)+"Z")
			switch is := hotValue(stored[at]); {
			case is && !raised:
				want = append(want, at+" – ")
			case !is && raised:
				want[len(want)-1] += at
			}
			raised = hotValue(stored[at])
		}
		got, ids := listAlarms(acme, acme.AwaitDevice(devEUI))
		if !slices.Equal(got, want) {
			t.Errorf("the alarms of %s: %q\nwant %q", devEUI, got, want)
		}
		alarms = append(alarms, ids...)
	}
	for what, one := range map[string]struct {
		want []string
		came map[string]map[string]bool
	}{"alarm": {alarms, n.alarms}, "frame": {frames, n.frames}} {
		relaytest.Eventually(t, "every "+what+" has come", func() (any, bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			lost := slices.DeleteFunc(slices.Clone(one.want), func(key string) bool { return one.came[key] != nil })
			return fmt.Sprintf("%d of %d are missing: %.5q", len(lost), len(one.want), lost), len(lost) == 0
		})
		n.once(t, what, one.want, one.came)
	}
	t.Logf("%d frames of %d devices, %d states of alarms", len(frames), len(l.Frames.Acked), len(alarms))
}

// loadedDevices are all that a load posts for, also those whose every post was cut off
// before its answer.
func loadedDevices() (all []string) {
	for c := range e2e.Connections {
		for n := range e2e.DevicesEach {
			all = append(all, fmt.Sprintf("70b3d57e%02x%06x", c, n))
		}
	}
	return all
}

// once fails the test for what came in two requests or should not have come.
func (n *notices) once(t *testing.T, what string, want []string, came map[string]map[string]bool) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, ids := range came {
		if len(ids) != 1 {
			t.Errorf("%s %s came in %d requests", what, key, len(ids))
		}
	}
	if len(came) != len(want) {
		t.Errorf("%d of each %s came, want %d", len(came), what, len(want))
	}
}

// listAlarms lists those of a device, oldest first, as "raised – cleared", and each with
// its states.
func listAlarms(c e2e.Client, device string) (list, states []string) {
	c.Gateway.T.Helper()
	type alarm struct {
		ID        string
		RaisedAt  string  `json:"raised_at"`
		ClearedAt *string `json:"cleared_at"`
	}
	for _, a := range e2e.List[alarm](c, "/iot/alarms?limit=500&device_id="+device) {
		ended := ""
		states = append(states, a.ID+" raised")
		if a.ClearedAt != nil {
			ended = *a.ClearedAt
			states = append(states, a.ID+" cleared")
		}
		list = append(list, a.RaisedAt+" – "+ended)
	}
	slices.Reverse(list)
	return list, states
}
