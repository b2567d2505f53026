package iot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// timed is a codec whose source is the duration of a call, by the gateway's clock. A call of 100 ms
// or more exceeds the limit. It records its frames.
type timed struct {
	g     *gateway
	took  time.Duration
	calls *[]string
}

func (c timed) Decode(f *decoders.Frame) (decoders.Result, error) {
	if f.Payload[0] == quick[0] {
		c.took = time.Millisecond
	}
	c.g.now = c.g.now.Add(c.took)
	*c.calls = append(*c.calls, f.DedupID)
	if c.took >= 100*time.Millisecond {
		return decoders.Result{LimitExceeded: true}, fmt.Errorf("the codec did not end within 100ms")
	}
	return decoders.Result{Readings: []decoders.Reading{{Key: "temperature", Value: 1}}}, nil
}

// quick is a payload that every codec decodes at once.
var quick = []byte{0xff}

// clocked is a gateway whose codecs "expr" are timed; calls are their frames.
func clocked(t *testing.T) (g *gateway, calls *[]string) {
	t.Helper()
	g, calls = newGateway(t), new([]string)
	g.compile = func(codec, source string, raw bool) (decoders.Decoder, error) {
		if codec != catalog.Expr {
			return catalogtest.Compile(codec, source, raw)
		}
		took, err := time.ParseDuration(source)
		return timed{g, took, calls}, err
	}
	g.start()
	for _, acct := range []relay.AccountID{1, 2} {
		for _, took := range []string{"100ms", "60ms", "30ms", "1ms"} {
			d := decoder(took, "temperature")
			d.Codec, d.Source = catalog.Expr, took
			relaytest.NoError(t, g.records.CreateDecoder(t.Context(), acct, d))
		}
	}
	return g, calls
}

// of returns an uplink of a device with a decoder of an account.
func (g *gateway) of(acct relay.AccountID, device, decoderID, record string) iot.Arrival {
	a := g.payload(record, 1)
	a.Account, a.DecoderID, a.Frame.Identifier, a.Frame.IsDevEUI = acct, decoderID, fmt.Sprint(device, " of ", acct), false
	return a
}

func TestACodecThatKeepsRunningOutOfTimeIsSuspended(t *testing.T) {
	g, calls := clocked(t)
	n := 0
	next := func(decoderID string) iot.Outcome {
		n++
		a := g.of(1, decoderID, decoderID, fmt.Sprint("r", n))
		a.NoDefer = true
		return g.ingest(a)[0]
	}
	var out iot.Outcome
	for range 20 {
		out = next("100ms")
	}
	relaytest.Equal(t, "the number of calls", len(*calls), 5)
	for _, part := range []string{"decoder 100ms is suspended until 2026-03-01T12:10:00Z", "5 times in succession"} {
		if !strings.Contains(out.Refused, part) {
			t.Errorf("the reason %q lacks %q", out.Refused, part)
		}
	}
	c := g.Codecs()
	relaytest.Equal(t, "suspended codecs, and suspensions", []int64{int64(c.Suspended), c.Suspensions}, []int64{1, 1})
	t.Run("the account's other decoders go on", func(t *testing.T) {
		if out := next("1ms"); out.Refused != "" {
			t.Error(out.Refused)
		}
	})
	t.Run("changes of other records do not lift it", func(t *testing.T) {
		relaytest.NoError(t, g.records.PutLocation(t.Context(), 1, iot.Location{ID: "new"}))
		next("1ms")
		relaytest.NoError(t, g.records.PutLocation(t.Context(), 1, iot.Location{ID: "newer"}))
		if out := next("100ms"); !strings.Contains(out.Refused, "is suspended") {
			t.Error(out.Refused)
		}
	})
	t.Run("a rehearsal says so and counts nothing", func(t *testing.T) {
		if f := g.preview(g.of(1, "100ms", "100ms", "x")); !strings.Contains(f[0].Refused, "is suspended") {
			t.Error(f[0].Refused)
		}
		before := g.Codecs()
		for range 9 {
			g.preview(g.of(2, "100ms", "100ms", "x"))
		}
		relaytest.Equal(t, "the statistics of codecs", g.Codecs(), before)
	})
	t.Run("after ten minutes one call decides", func(t *testing.T) {
		*calls = nil
		g.now = g.now.Add(10 * time.Minute)
		for range 3 {
			out = next("100ms")
		}
		if len(*calls) != 1 || !strings.Contains(out.Refused, "6 times") {
			t.Errorf("%d calls; %q", len(*calls), out.Refused)
		}
	})
	t.Run("a source that is changed runs at once", func(t *testing.T) {
		_, err := g.ChangeDecoder(t.Context(), 1, "100ms", iot.DecoderChange{Codec: new(catalog.Expr), Source: new("2ms")})
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the reason", next("100ms").Refused, "")
		relaytest.Equal(t, "the suspended codecs", g.Codecs().Suspended, 0)
	})
}

// A codec that exceeded a limit does not delay the frames of others a second time.
func TestFramesOfACodecThatExceededALimitAreDeferred(t *testing.T) {
	g, calls := clocked(t)
	g.ingest(g.of(1, "100ms", "100ms", "r1"))
	*calls = nil
	out := g.ingest(g.of(1, "100ms", "100ms", "r2"), g.of(2, "1ms", "1ms", "r3"), g.of(1, "1ms", "1ms", "r4"))
	relaytest.Equal(t, "the frames that are deferred", []bool{out[0].Deferred, out[1].Deferred, out[2].Deferred}, []bool{true, false, false})
	relaytest.Equal(t, "the number of calls", len(*calls), 2)
}

func TestOverrunsOfBatchesInFlightCountTogether(t *testing.T) {
	g, calls := clocked(t)
	g.afterReads(3, func() {
		relaytest.NoError(t, g.records.PutLocation(t.Context(), 1, iot.Location{ID: "new"}))
		a := g.of(1, "another", "100ms", "another")
		a.Frame.Payload = quick
		g.ingest(a)
	})
	var batch []iot.Arrival
	for n := range 5 {
		a := g.of(1, fmt.Sprint("probe", n), "100ms", fmt.Sprint("r", n))
		a.NoDefer = true
		batch = append(batch, a)
	}
	g.ingest(batch...)
	if c := g.Codecs(); c.Suspended != 1 || c.Suspensions != 1 {
		t.Errorf("%d suspended, %d suspensions after %q", c.Suspended, c.Suspensions, *calls)
	}
	if out := g.ingest(g.of(1, "another", "100ms", "later"))[0]; !strings.Contains(out.Refused, "is suspended") {
		t.Errorf("refused for %q after %q", out.Refused, *calls)
	}
}

// A codec that exceeds the limit occasionally is not suspended.
func TestACodecThatSometimesRunsOutOfTimeGoesOn(t *testing.T) {
	g, calls := clocked(t)
	for n := range 40 {
		a := g.of(1, "probe", "100ms", fmt.Sprint("r", n))
		a.NoDefer = true
		if n%5 == 4 {
			a.Frame.Payload = quick
		}
		g.ingest(a)
	}
	relaytest.Equal(t, "the number of calls", len(*calls), 40)
	relaytest.Equal(t, "the number of suspensions", g.Codecs().Suspensions, 0)
}

func TestDecodingTimeIsSharedByAccountAndDevice(t *testing.T) {
	batch := func(g *gateway, spec ...string) (all []iot.Arrival) { // "account device decoder count"
		for _, one := range spec {
			var acct, count int
			var device, decoderID string
			_, err := fmt.Sscan(one, &acct, &device, &decoderID, &count)
			relaytest.NoError(t, err)
			for range count {
				all = append(all, g.of(relay.AccountID(acct), device, decoderID, fmt.Sprintf("%d%s%d", acct, device, len(all))))
			}
		}
		return all
	}
	run := func(g *gateway, all []iot.Arrival) (took time.Duration, deferred, refused map[string]int) {
		began := g.now
		deferred, refused = map[string]int{}, map[string]int{}
		for n, out := range g.ingest(all...) {
			if out.Deferred {
				deferred[all[n].Frame.Identifier]++
			}
			if out.Refused != "" {
				refused[all[n].Frame.Identifier]++
			}
		}
		return g.now.Sub(began), deferred, refused
	}

	t.Run("an account with slow codecs puts off its own frames alone, and a batch ends", func(t *testing.T) {
		g, _ := clocked(t)
		took, deferred, refused := run(g, batch(g, "1 a 60ms 500", "2 b 1ms 50"))
		if took > 1200*time.Millisecond {
			t.Errorf("the batch took %s", took)
		}
		if deferred["a of 1"] < 450 {
			t.Errorf("%d frames of account 1 were deferred, want 450 or more", deferred["a of 1"])
		}
		relaytest.Equal(t, "the deferred frames of account 2", deferred["b of 2"], 0)
		relaytest.Equal(t, "the number of decoders with refused frames", len(refused), 0)
	})
	t.Run("of one account, devices with quick codecs do not wait for slow ones", func(t *testing.T) {
		g, _ := clocked(t)
		run(g, batch(g, "1 a 60ms 1"))
		took, deferred, _ := run(g, batch(g, "1 a 60ms 500", "1 b 1ms 50"))
		if took > 1200*time.Millisecond || deferred["b of 1"] != 0 {
			t.Errorf("%v, deferred %v", took, deferred)
		}
	})
	t.Run("devices whose codecs are slow take turns", func(t *testing.T) {
		g, calls := clocked(t)
		run(g, batch(g, "1 a 60ms 1"))
		*calls = nil
		run(g, batch(g, "1 a 60ms 500", "1 b 60ms 1", "1 c 60ms 2"))
		if got := strings.Join((*calls)[:6], " "); got != "1a0 1b500 1c501 1a1 1c502 1a2" {
			t.Error(got)
		}
	})
	t.Run("accounts whose codecs are slow share the time", func(t *testing.T) {
		g, calls := clocked(t)
		run(g, batch(g, "1 a 60ms 1", "2 b 30ms 1"))
		*calls = nil
		run(g, batch(g, "1 a 60ms 500", "2 b 30ms 500"))
		count := map[byte]int{}
		for _, c := range *calls {
			count[c[0]]++
		}
		one, two := count['1'], count['2']
		if one < 7 || one > 10 {
			t.Errorf("%d calls for account 1, want 7 to 10", one)
		}
		if two < 2*one-2 || two > 2*one+2 {
			t.Errorf("%d calls for account 2 and %d for account 1, want twice as many", two, one)
		}
	})
	t.Run("a frame that comes again is decoded, whatever it takes", func(t *testing.T) {
		g, _ := clocked(t)
		all := batch(g, "1 a 60ms 100")
		run(g, all)
		for i := range all {
			all[i].NoDefer = true
		}
		if _, deferred, refused := run(g, all); len(deferred)+len(refused) != 0 {
			t.Errorf("deferred %v, refused %v", deferred, refused)
		}
		if n := len(g.stored(all...)); n != 100 {
			t.Error(n)
		}
	})
	t.Run("what is deferred is not stored, and no duplicate of itself", func(t *testing.T) {
		g, _ := clocked(t)
		all := batch(g, "1 a 60ms 100")
		out := g.ingest(all...)
		last := out[99]
		relaytest.Equal(t, "whether the last frame is deferred, and a duplicate", []bool{last.Deferred, last.Duplicate}, []bool{true, false})
		relaytest.Equal(t, "the number of points of the last frame", len(last.Points), 0)
		relaytest.Equal(t, "whether the last frame, ingested again, is a duplicate", g.ingest(all...)[99].Duplicate, false)
	})
	t.Run("endless loops of one account cost the others nothing", func(t *testing.T) {
		g, calls := clocked(t)
		took, deferred, refused := run(g, batch(g, "1 a 100ms 1000", "2 b 1ms 10"))
		if took > 1200*time.Millisecond {
			t.Errorf("the batch took %s with %d calls", took, len(*calls))
		}
		relaytest.Equal(t, "the deferred and refused frames of account 2", []int{deferred["b of 2"], refused["b of 2"]}, []int{0, 0})
		relaytest.Equal(t, "the deferred or refused frames of account 1", deferred["a of 1"]+refused["a of 1"], 1000)
	})
}
