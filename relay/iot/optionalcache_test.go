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

// faultyCache is a cache that can be down or lose acknowledged changes, as in a failover.
type faultyCache struct {
	iot.Cache
	mu    sync.Mutex
	down  error
	lossy bool
	calls int
}

func (c *faultyCache) set(down error, lossy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down, c.lossy = down, lossy
}

// call counts a call and reports whether to pass it on. It returns the error of a cache that is down.
func (c *faultyCache) call(change bool) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	return c.down == nil && (!change || !c.lossy), c.down
}

func (c *faultyCache) Deduplicate(ctx context.Context, frames []iot.FrameKey, ttl time.Duration) ([]string, error) {
	if ok, err := c.call(false); !ok {
		return nil, err
	}
	return c.Cache.Deduplicate(ctx, frames, ttl)
}

func (c *faultyCache) MergePosts(ctx context.Context, acct relay.AccountID, posts []iot.FramePost, ttl time.Duration) ([]iot.MergedFrame, error) {
	if ok, err := c.call(false); !ok {
		return nil, err
	}
	return c.Cache.MergePosts(ctx, acct, posts, ttl)
}

func (c *faultyCache) SetHeard(ctx context.Context, heardAt map[relay.AccountID]map[string]time.Time) error {
	if ok, err := c.call(true); !ok {
		return err
	}
	return c.Cache.SetHeard(ctx, heardAt)
}

func (c *faultyCache) Heard(ctx context.Context, acct relay.AccountID, ids []string) (map[string]iot.LastHeard, error) {
	if ok, err := c.call(false); !ok {
		return nil, err
	}
	return c.Cache.Heard(ctx, acct, ids)
}

func (c *faultyCache) SetLatest(ctx context.Context, points []iot.Point) error {
	if ok, err := c.call(true); !ok {
		return err
	}
	return c.Cache.SetLatest(ctx, points)
}

func (c *faultyCache) FillLatest(ctx context.Context, acct relay.AccountID, device string, points []iot.Point, asOf time.Time) error {
	if ok, err := c.call(true); !ok {
		return err
	}
	return c.Cache.FillLatest(ctx, acct, device, points, asOf)
}

func (c *faultyCache) Latest(ctx context.Context, acct relay.AccountID, device string) ([]iot.Point, time.Time, error) {
	if ok, err := c.call(false); !ok {
		return nil, time.Time{}, err
	}
	return c.Cache.Latest(ctx, acct, device)
}

// emptyCache replaces the cache of the gateway by an empty one.
func (g *gateway) emptyCache() {
	g.t.Helper()
	g.cache.mu.Lock()
	defer g.cache.mu.Unlock()
	g.cache.Cache = embeddedtest.Cache(g.t).IoT()
}

// lastSeen returns the time of day at which the device was last seen.
func (g *gateway) lastSeen() string { return g.device(1).LastSeen.Format("15:04:05") }

func errDown() error { return relay.Errorf(relay.KindUnavailable, "Redis unavailable: dial tcp") }

func TestLatestValuesAreReadFromTheStoreAfterTheCacheWasEmptied(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0, "humidity", 2.0)))
	g.mustStore(g.nextFrame(2, values("temperature", 3.0)))
	want := []string{"humidity=2", "temperature=3"}
	for _, label := range []string{"with a warm cache", "on a second read"} {
		if got := g.latestValues(); !slices.Equal(got, want) {
			t.Errorf("%s: %q", label, got)
		}
	}
	g.emptyCache()
	g.mustStore(g.nextFrame(3, values("temperature", 4.0)))
	want[1] = "temperature=4"
	for _, label := range []string{"after the cache was emptied and a frame stored", "with the filled cache"} {
		if got, heardAt := g.latestValues(), g.lastSeen(); !slices.Equal(got, want) || heardAt != "12:03:00" {
			t.Errorf("%s: %q, last seen at %s", label, got, heardAt)
		}
	}
	g.emptyCache()
	if got, heardAt := g.latestValues(), g.lastSeen(); !slices.Equal(got, want) || heardAt != "12:03:00" {
		t.Errorf("after the cache was emptied: %q, last seen at %s", got, heardAt)
	}
}

func TestAFilledCacheAvoidsReadsOfTheStore(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	g.latestValues()
	g.device(1)
	readsBefore := g.readings.reads
	for i := range 5 {
		g.now = g.now.Add(5 * time.Second)
		g.mustStore(g.frame(fmt.Sprint("n1-x", i), values("temperature", float64(i))))
		if got := g.latestValues(); !slices.Equal(got, []string{fmt.Sprint("temperature=", i)}) {
			t.Errorf("latest values %q, want temperature=%d", got, i)
		}
	}
	if g.readings.reads != readsBefore {
		t.Errorf("the reading store was read %d times, want 0", g.readings.reads-readsBefore)
	}
}

func TestFramesAreStoredWhileTheCacheIsDown(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	g.latestValues()
	g.cache.set(errDown(), false)
	repeated := g.nextFrame(2, values("temperature", 2.0))
	repeated.Frame.NetworkTime = g.now
	g.mustStore(repeated)
	repeated.RecordID = "n2-u2" // the same frame in another post
	g.mustStore(repeated)
	if got, heardAt := g.latestValues(), g.lastSeen(); !slices.Equal(got, []string{"temperature=2"}) || heardAt != "12:02:00" {
		t.Errorf("while the cache is down: latest values %q, last seen at %s", got, heardAt)
	}
	if got := g.history(1); !slices.Equal(got, []string{"temperature=2", "temperature=1"}) {
		t.Errorf("history after a repeated frame: %q, want each frame once", got)
	}
	calls := g.cache.calls
	g.latestValues()
	if g.cache.calls != calls {
		t.Error("a cache was called just after it failed")
	}

	g.cache.set(nil, false) // its old values are still there
	g.now = g.now.Add(10 * time.Second)
	for _, label := range []string{"after the cache is back", "with the filled cache"} {
		if got, heardAt := g.latestValues(), g.lastSeen(); !slices.Equal(got, []string{"temperature=2"}) || heardAt != "12:02:00" {
			t.Errorf("%s: %q, last seen at %s", label, got, heardAt)
		}
	}
	relaytest.Equal(t, "whether the same record in one batch is a duplicate", g.ingest(g.frame("n3-u9", nil), g.frame("n3-u9", nil))[1].Duplicate, false)
	repeated.RecordID = "n1-u9"
	g.ingest(repeated)
	repeated.RecordID = "n1-u10"
	relaytest.Equal(t, "whether another record of the frame is a duplicate", g.ingest(repeated)[0].Duplicate, true)
}

// A failover loses acknowledged writes without an error.
func TestValuesLostInAFailoverAreReadFromTheStore(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	g.latestValues()
	g.cache.set(nil, true)
	g.mustStore(g.nextFrame(2, values("temperature", 2.0)))
	g.cache.set(nil, false)
	g.now = g.now.Add(time.Minute)
	if got := g.latestValues(); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("latest values %q, want temperature=2", got)
	}
	g.now = g.now.Add(time.Hour)
	if heardAt := g.lastSeen(); heardAt != "12:02:00" {
		t.Errorf("last seen at %s", heardAt)
	}
}

// The values that fill the cache may be older than the values stored since they were read.
func TestAFillKeepsNewerValues(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	g.emptyCache()
	g.readings.meanwhile = func() {
		g.readings.meanwhile = nil
		g.mustStore(g.nextFrame(2, values("temperature", 2.0)))
	}
	g.latestValues()
	if got := g.latestValues(); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("latest values %q, want temperature=2", got)
	}
}

func TestTheCacheAnswersWhileTheReadingStoreIsDown(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	g.latestValues()
	g.device(1)
	g.readings.down = errors.New("influx is down")
	g.now = g.now.Add(time.Hour)
	if got, heardAt := g.latestValues(), g.lastSeen(); !slices.Equal(got, []string{"temperature=1"}) || heardAt != "12:01:00" {
		t.Errorf("%q, last seen at %s", got, heardAt)
	}
	g.emptyCache()
	if _, err := g.Latest(t.Context(), 1, g.device(1).ID, iot.Metric); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("with an empty cache and no reading store: %v, want kind unavailable", err)
	}
}

// Posts about the same frame are merged even if the cache was emptied between them.
func TestAPositionIsStoredWithoutTheCache(t *testing.T) {
	for name, loseCache := range map[string]func(g *gateway){
		"emptied": func(g *gateway) { g.emptyCache() },
		"down":    func(g *gateway) { g.cache.set(errDown(), false) },
	} {
		t.Run(name, func(t *testing.T) {
			g := gatewayWithPosts(t, []string{sigfoxData})
			loseCache(g)
			frames, err := netserver.Parse(netserver.Post{Body: []byte(sigfoxPosition), ReceivedAt: g.now})
			relaytest.NoError(t, err)
			g.mustStore(iot.Arrival{RecordID: "n1-u9", Account: 1, DecoderID: "raw", ReceivedAt: g.now, Frame: frames[0]})
			if got, want := g.radio(), "12:00:00 f_cnt=9, 12:00:00 gateways=1, 12:00:00 latitude=51.5, 12:00:00 rssi=-120, 12:00:00 snr=8"; got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

func TestTheCacheEntriesOfADeletedDeviceAreRemoved(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	d := g.device(1)
	g.latestValues()
	relaytest.NoError(t, g.DeleteDevice(t.Context(), 1, d.ID))
	points, filled, err := g.cache.Latest(t.Context(), 1, d.ID)
	heard, err2 := g.cache.Heard(t.Context(), 1, []string{d.ID})
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the cached points and times", []int{len(points), len(heard)}, []int{0, 0})
	relaytest.Equal(t, "the time at which the cache was filled", filled, time.Time{})
	g.mustStore(g.nextFrame(2, values("temperature", 2.0)))
	g.cache.set(errDown(), false)
	relaytest.NoError(t, g.DeleteDevice(t.Context(), 1, g.device(1).ID))
}

func TestACancelledCallDoesNotMarkTheCacheAsDown(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Ingest(ctx, []iot.Arrival{g.nextFrame(2, values("temperature", 2.0))}); err == nil {
		t.Error("the cancelled call returned no error")
	}
	calls := g.cache.calls
	g.latestValues()
	if g.cache.calls == calls {
		t.Error("the cache was not called after a cancelled call")
	}
}

// Two gateways share one cache.
func TestAnotherGatewayRereadsLatestValuesAfterAMinute(t *testing.T) {
	g := newGateway(t)
	otherGateway := &gateway{t: t, records: g.records, cache: &faultyCache{Cache: g.cache.Cache}, readings: g.readings, now: g.now, options: g.options}
	otherGateway.options.Now = func() time.Time { return g.now }
	otherGateway.Service = iot.New(otherGateway.records, otherGateway.cache, otherGateway.readings, catalogtest.Compile, otherGateway.options)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	otherGateway.latestValues()
	g.cache.set(errDown(), false)
	g.mustStore(g.nextFrame(2, values("temperature", 2.0)))
	if got := g.latestValues(); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("the gateway that stored the frame reads %q, want temperature=2", got)
	}
	g.now = g.now.Add(time.Minute)
	if got := otherGateway.latestValues(); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("the other gateway reads %q after a minute, want temperature=2", got)
	}
}
