package iot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/delivery/embedded/embeddedtest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// faulty is a cache that can be down, or lose changes that it acknowledged, as in a failover.
type faulty struct {
	iot.Cache
	mu    sync.Mutex
	down  error
	lossy bool
	calls int
}

func (c *faulty) set(down error, lossy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down, c.lossy = down, lossy
}

// call reports whether to pass on a call.
func (c *faulty) call(change bool) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	return c.down == nil && (!change || !c.lossy), c.down
}

func (c *faulty) Claim(ctx context.Context, frames []iot.Seen, ttl time.Duration) ([]string, error) {
	if ok, err := c.call(false); !ok {
		return nil, err
	}
	return c.Cache.Claim(ctx, frames, ttl)
}

func (c *faulty) MergeParts(ctx context.Context, acct relay.AccountID, parts []iot.FramePart, ttl time.Duration) ([]iot.MergedFrame, error) {
	if ok, err := c.call(false); !ok {
		return nil, err
	}
	return c.Cache.MergeParts(ctx, acct, parts, ttl)
}

func (c *faulty) SetHeard(ctx context.Context, at map[relay.AccountID]map[string]time.Time) error {
	if ok, err := c.call(true); !ok {
		return err
	}
	return c.Cache.SetHeard(ctx, at)
}

func (c *faulty) Heard(ctx context.Context, acct relay.AccountID, ids []string) (map[string]iot.Heard, error) {
	if ok, err := c.call(false); !ok {
		return nil, err
	}
	return c.Cache.Heard(ctx, acct, ids)
}

func (c *faulty) SetLatest(ctx context.Context, points []iot.Point) error {
	if ok, err := c.call(true); !ok {
		return err
	}
	return c.Cache.SetLatest(ctx, points)
}

func (c *faulty) FillLatest(ctx context.Context, acct relay.AccountID, device string, points []iot.Point, asOf time.Time) error {
	if ok, err := c.call(true); !ok {
		return err
	}
	return c.Cache.FillLatest(ctx, acct, device, points, asOf)
}

func (c *faulty) Latest(ctx context.Context, acct relay.AccountID, device string) ([]iot.Point, time.Time, error) {
	if ok, err := c.call(false); !ok {
		return nil, time.Time{}, err
	}
	return c.Cache.Latest(ctx, acct, device)
}

// emptied gives the gateway an empty cache.
func (g *gateway) emptied() {
	g.t.Helper()
	g.cache.mu.Lock()
	defer g.cache.mu.Unlock()
	g.cache.Cache = embeddedtest.Cache(g.t).IoT()
}

// seen returns when the device was heard last.
func (g *gateway) seen() string { return g.device(1).LastSeen.Format("15:04:05") }

func errDown() error { return relay.Errorf(relay.KindUnavailable, "Redis unavailable: dial tcp") }

func TestLatestValuesComeFromTheReadingsWhenTheCacheWasEmptied(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0, "humidity", 2.0)))
	g.stored(g.later(2, values("temperature", 3.0)))
	want := []string{"humidity=2", "temperature=3"}
	for _, when := range []string{"with a warm cache", "again"} {
		if got := g.latest(); !slices.Equal(got, want) {
			t.Errorf("%s: %q", when, got)
		}
	}
	g.emptied()
	g.stored(g.later(3, values("temperature", 4.0)))
	want[1] = "temperature=4"
	for _, when := range []string{"emptied, then one value came", "filled"} {
		if got, at := g.latest(), g.seen(); !slices.Equal(got, want) || at != "12:03:00" {
			t.Errorf("%s: %q, seen at %s", when, got, at)
		}
	}
	g.emptied()
	if got, at := g.latest(), g.seen(); !slices.Equal(got, want) || at != "12:03:00" {
		t.Errorf("emptied: %q, seen at %s", got, at)
	}
}

func TestAFilledCacheSparesTheReadings(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0)))
	g.latest()
	g.device(1)
	asked := g.readings.asked
	for i := range 5 {
		g.now = g.now.Add(5 * time.Second)
		g.stored(g.frame(fmt.Sprint("n1-x", i), values("temperature", float64(i))))
		if got := g.latest(); !slices.Equal(got, []string{fmt.Sprint("temperature=", i)}) {
			t.Errorf("%q", got)
		}
	}
	if g.readings.asked != asked {
		t.Errorf("the readings were asked %d times", g.readings.asked-asked)
	}
}

func TestFramesGoOnWhileTheCacheIsDown(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0)))
	g.latest()
	g.cache.set(errDown(), false)
	again := g.later(2, values("temperature", 2.0))
	again.Frame.NetworkTime = g.now
	g.stored(again)
	again.Record = "n2-u2" // the same frame, of another post
	g.stored(again)
	if got, at := g.latest(), g.seen(); !slices.Equal(got, []string{"temperature=2"}) || at != "12:02:00" {
		t.Errorf("while it is down: %q, seen at %s", got, at)
	}
	if got := g.history(1); !slices.Equal(got, []string{"temperature=2", "temperature=1"}) {
		t.Errorf("a frame that came twice is stored over itself: %q", got)
	}
	calls := g.cache.calls
	g.latest()
	if g.cache.calls != calls {
		t.Error("a cache that failed a moment ago is asked")
	}

	g.cache.set(nil, false) // with what it knew before
	g.now = g.now.Add(10 * time.Second)
	for _, when := range []string{"when it is back", "filled"} {
		if got, at := g.latest(), g.seen(); !slices.Equal(got, []string{"temperature=2"}) || at != "12:02:00" {
			t.Errorf("%s: %q, seen at %s", when, got, at)
		}
	}
	relaytest.Equal(t, "whether the same record in one batch is a duplicate", g.ingest(g.frame("n3-u9", nil), g.frame("n3-u9", nil))[1].Duplicate, false)
	again.Record = "n1-u9"
	g.ingest(again)
	again.Record = "n1-u10"
	relaytest.Equal(t, "whether another record of the frame is a duplicate", g.ingest(again)[0].Duplicate, true)
}

// A failover loses acknowledged writes without an error.
func TestWritesLostInAFailoverAreReadAgain(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0)))
	g.latest()
	g.cache.set(nil, true)
	g.stored(g.later(2, values("temperature", 2.0)))
	g.cache.set(nil, false)
	g.now = g.now.Add(time.Minute)
	if got := g.latest(); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("%q", got)
	}
	g.now = g.now.Add(time.Hour)
	if at := g.seen(); at != "12:02:00" {
		t.Errorf("seen at %s", at)
	}
}

// Values that fill the cache may be older than values that are stored meanwhile.
func TestAFillDoesNotUndoWhatCameMeanwhile(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0)))
	g.emptied()
	g.readings.meanwhile = func() {
		g.readings.meanwhile = nil
		g.stored(g.later(2, values("temperature", 2.0)))
	}
	g.latest()
	if got := g.latest(); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("%q", got)
	}
}

func TestAnswersWhileTheReadingsAreDown(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0)))
	g.latest()
	g.device(1)
	g.readings.down = errors.New("influx is down")
	g.now = g.now.Add(time.Hour)
	if got, at := g.latest(), g.seen(); !slices.Equal(got, []string{"temperature=1"}) || at != "12:01:00" {
		t.Errorf("%q, seen at %s", got, at)
	}
	g.emptied()
	if _, err := g.Latest(t.Context(), 1, g.device(1).ID, iot.Metric); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("neither knows the latest values: %v", err)
	}
}

// Posts about a frame are stored even if the cache was emptied between them.
func TestAPositionIsStoredWithoutTheCache(t *testing.T) {
	for name, lose := range map[string]func(g *gateway){
		"emptied": func(g *gateway) { g.emptied() },
		"down":    func(g *gateway) { g.cache.set(errDown(), false) },
	} {
		t.Run(name, func(t *testing.T) {
			g := gatewayOf(t, []string{sigfoxData})
			lose(g)
			frames, err := netserver.Parse(netserver.Post{Body: []byte(sigfoxPlace), ReceivedAt: g.now})
			relaytest.NoError(t, err)
			g.stored(iot.Arrival{Record: "n1-u9", Account: 1, DecoderID: "raw", ReceivedAt: g.now, Frame: frames[0]})
			if got, want := g.radio(), "12:00:00 f_cnt=9, 12:00:00 gateways=1, 12:00:00 latitude=51.5, 12:00:00 rssi=-120, 12:00:00 snr=8"; got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

func TestADeviceThatIsDeletedIsForgotten(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0)))
	d := g.device(1)
	g.latest()
	relaytest.NoError(t, g.DeleteDevice(t.Context(), 1, d.ID))
	points, filled, err := g.cache.Latest(t.Context(), 1, d.ID)
	heard, err2 := g.cache.Heard(t.Context(), 1, []string{d.ID})
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the cached points and times", []int{len(points), len(heard)}, []int{0, 0})
	relaytest.Equal(t, "the time at which the cache was filled", filled, time.Time{})
	g.stored(g.later(2, values("temperature", 2.0)))
	g.cache.set(errDown(), false)
	relaytest.NoError(t, g.DeleteDevice(t.Context(), 1, g.device(1).ID))
}

func TestACancelledCallIsNoFaultOfTheCache(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Ingest(ctx, []iot.Arrival{g.later(2, values("temperature", 2.0))}); err == nil {
		t.Error("no error")
	}
	calls := g.cache.calls
	g.latest()
	if g.cache.calls == calls {
		t.Error("the cache is not called")
	}
}

// Two gateways share one cache.
func TestAnotherGatewayReadsAgainAfterAMinute(t *testing.T) {
	g := newGateway(t)
	other := &gateway{t: t, records: g.records, cache: &faulty{Cache: g.cache.Cache}, readings: g.readings, now: g.now, o: g.o}
	other.o.Now = func() time.Time { return g.now }
	other.Service = iot.New(other.records, other.cache, other.readings, catalogtest.Compile, other.o)
	g.stored(g.later(1, values("temperature", 1.0)))
	other.latest()
	g.cache.set(errDown(), false)
	g.stored(g.later(2, values("temperature", 2.0)))
	if got := g.latest(); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("the gateway that stored the frame reads %q, want temperature=2", got)
	}
	g.now = g.now.Add(time.Minute)
	if got := other.latest(); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("the other gateway reads %q after a minute, want temperature=2", got)
	}
}
