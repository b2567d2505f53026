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

// TestRulesSurviveKills kills the gateway at random moments under load: twice, 20 times in a
// soak, or PENSTOCK_TEST_KILLS times. On real servers, Redis is down for a part of the load.
// Every stored frame is evaluated once: no alarm is lost or raised twice, and no frame is
// forwarded twice.
func TestRulesSurviveKills(t *testing.T) {
	t.Parallel()
	kills := e2e.Rounds(t, "PENSTOCK_TEST_KILLS", 2, 20)
	e2e.OnRealSite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		if s.Redis != nil {
			s = e2e.OwnServers(t) // Redis is stopped
		}
		random := e2e.Random(t)
		endpoint := newNotices(t)
		g := e2e.NewGateway(t, s, e2e.Fixture(t, "load.yaml", "SINK", endpoint.url), "PENSTOCK_RULES_ACTIONS_PER_MINUTE=1000000")
		g.Spawn()
		endpoint.createRules(g.WithToken("acme-all-0123456"))
		l := g.StartLoad(e2e.Connections)
		var outageEnd <-chan time.Time
		for round := range kills {
			e2e.SleepRandomly(random, 400*time.Millisecond)
			if s.Redis != nil && round == kills/2 {
				s.Redis.Stop()
				outageEnd = time.After(outageTime(t))
				l.AwaitMessages(t, 20)
			}
			g.Kill()
			g.Spawn()
		}
		if outageEnd != nil {
			e2e.SleepRandomly(random, 400*time.Millisecond)
			<-outageEnd
			s.Redis.Restart()
		}
		l.AwaitMessages(t, 20)
		l.End()
		if len(l.Frames.Acked) == 0 {
			t.Fatalf("no frames were acknowledged: %v", l.Refused)
		}
		g.AwaitProcessed()
		endpoint.check(t, l)
		g.TerminateCleanly()
	})
}

// notices is an endpoint for the actions of rules. It records their requests.
type notices struct {
	url string
	mu  sync.Mutex
	// alarms are the webhook-ids by alarm and state; frames are the webhook-ids by device and time.
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
		var notice e2e.RuleNotice
		if json.Unmarshal(body, &notice) == nil {
			addID(n.alarms, notice.AlarmID+" "+notice.State, id)
		}
	case "/batch":
		var batch []e2e.RuleNotice
		if json.Unmarshal(body, &batch) == nil {
			for _, notice := range batch {
				addID(n.frames, notice.Device.Identifier+" "+notice.Time, id)
			}
		}
	}
}

func addID(sets map[string]map[string]bool, key, id string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][id] = true
}

// isHot is a condition that holds for every other reading of a device in a load.
const isHot = `int(values.generic_1) % 16777216 % 100 < 50`

func hotValue(value float64) bool { return int(value)%16777216%(2*e2e.DevicesEach) < e2e.DevicesEach }

// createRules creates a rule that raises alarms for all devices, and a rule that forwards the frames of
// all devices in batches.
func (n *notices) createRules(c e2e.Client) {
	c.Gateway.T.Helper()
	c.Post("/iot/rules", fmt.Sprintf(`{"name":"Hot","on":"reading","when":%q,"actions":[{"action":"http_post","parameters":["%s/alarm"]}]}`, isHot, n.url)).Mentions(c.Gateway.T, 201)
	c.Post("/iot/rules", fmt.Sprintf(`{"name":"All","on":"reading","devices":{"name":"*"},"batch":{"count":20,"every":"2s"},
"actions":[{"action":"http_post","parameters":["%s/batch"]}]}`, n.url)).Mentions(c.Gateway.T, 201)
}

// check compares the alarms and the forwarded frames with the stored frames.
func (n *notices) check(t *testing.T, l *e2e.Load) {
	t.Helper()
	acme := l.G.WithToken("acme-all-0123456")
	var alarms, frames []string // expected at the endpoint
	for _, devEUI := range loadedDevices() {
		stored := acme.ReadingsByTime(devEUI)
		if len(stored) == 0 {
			continue
		}
		raised := false
		var want []string
		for _, timestamp := range slices.Sorted(maps.Keys(stored)) {
			frames = append(frames, devEUI+" "+strings.Replace(timestamp, " ", "T", 1)+"Z")
			switch hot := hotValue(stored[timestamp]); {
			case hot && !raised:
				want = append(want, timestamp+" – ")
			case !hot && raised:
				want[len(want)-1] += timestamp
			}
			raised = hotValue(stored[timestamp])
		}
		got, ids := listAlarms(acme, acme.AwaitDevice(devEUI))
		if !slices.Equal(got, want) {
			t.Errorf("alarms of %s = %q\nwant %q", devEUI, got, want)
		}
		alarms = append(alarms, ids...)
	}
	if len(frames) == 0 {
		t.Error("no frames are stored")
	}
	for kind, tc := range map[string]struct {
		want     []string
		received map[string]map[string]bool
	}{"alarm": {alarms, n.alarms}, "frame": {frames, n.frames}} {
		relaytest.Eventually(t, "every "+kind+" has arrived", func() (any, bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			lost := slices.DeleteFunc(slices.Clone(tc.want), func(key string) bool { return tc.received[key] != nil })
			return fmt.Sprintf("%d of %d are missing: %.5q", len(lost), len(tc.want), lost), len(lost) == 0
		})
		n.checkOnce(t, kind, tc.want, tc.received)
	}
	t.Logf("%d frames of %d devices, %d states of alarms", len(frames), len(l.Frames.Acked), len(alarms))
}

// loadedDevices returns all devices that a load posts for, including those without an
// acknowledged frame: the gateway may have stored a frame before it was killed.
func loadedDevices() (devEUIs []string) {
	for c := range e2e.Connections {
		for n := range e2e.DevicesEach {
			devEUIs = append(devEUIs, fmt.Sprintf("70b3d57e%02x%06x", c, n))
		}
	}
	return devEUIs
}

// checkOnce fails the test if a notice arrived in several requests or was not expected.
func (n *notices) checkOnce(t *testing.T, kind string, want []string, received map[string]map[string]bool) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, ids := range received {
		if len(ids) != 1 {
			t.Errorf("%s %s arrived in %d requests, want 1", kind, key, len(ids))
		}
	}
	if len(received) != len(want) {
		t.Errorf("got %d notices of kind %q, want %d", len(received), kind, len(want))
	}
}

// listAlarms returns the alarms of a device, oldest first, as "raised – cleared", and the
// states of the alarms as "id state".
func listAlarms(c e2e.Client, device string) (list, states []string) {
	c.Gateway.T.Helper()
	type alarm struct {
		ID        string
		RaisedAt  string  `json:"raised_at"`
		ClearedAt *string `json:"cleared_at"`
	}
	for _, a := range e2e.List[alarm](c, "/iot/alarms?limit=500&device_id="+device) {
		clearedAt := ""
		states = append(states, a.ID+" raised")
		if a.ClearedAt != nil {
			clearedAt = *a.ClearedAt
			states = append(states, a.ID+" cleared")
		}
		list = append(list, a.RaisedAt+" – "+clearedAt)
	}
	slices.Reverse(list)
	return list, states
}
