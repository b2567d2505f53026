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

// timedCodec is a codec whose source is the duration of a call by the gateway's clock. A call of
// 100 ms or more exceeds the limit. It records the frames of its calls.
type timedCodec struct {
	g        *gateway
	duration time.Duration
	calls    *[]string
}

func (c timedCodec) Decode(f *decoders.Frame) (decoders.Result, error) {
	if f.Payload[0] == quickPayload[0] {
		c.duration = time.Millisecond
	}
	c.g.now = c.g.now.Add(c.duration)
	*c.calls = append(*c.calls, f.DedupID)
	if c.duration >= 100*time.Millisecond {
		return decoders.Result{LimitExceeded: true}, fmt.Errorf("the codec did not end within 100ms")
	}
	return decoders.Result{Readings: []decoders.Reading{{Key: "temperature", Value: 1}}}, nil
}

// quickPayload is a payload that each codec decodes in 1 ms.
var quickPayload = []byte{0xff}

// newTimedGateway returns a gateway with a timedCodec as codec "expr", and the frames of its calls.
func newTimedGateway(t *testing.T) (g *gateway, calls *[]string) {
	t.Helper()
	g, calls = newGateway(t), new([]string)
	g.compile = func(codec, source string, raw bool) (decoders.Decoder, error) {
		if codec != catalog.Expr {
			return catalogtest.Compile(codec, source, raw)
		}
		duration, err := time.ParseDuration(source)
		return timedCodec{g, duration, calls}, err
	}
	g.start()
	for _, acct := range []relay.AccountID{1, 2} {
		for _, duration := range []string{"100ms", "60ms", "30ms", "1ms"} {
			d := decoder(duration, "temperature")
			d.Codec, d.Source = catalog.Expr, duration
			relaytest.NoError(t, g.records.CreateDecoder(t.Context(), acct, d))
		}
	}
	return g, calls
}

// uplink returns an uplink of a device with a decoder of an account.
func (g *gateway) uplink(acct relay.AccountID, device, decoderID, record string) iot.Arrival {
	a := g.payload(record, 1)
	a.Account, a.DecoderID, a.Frame.Identifier, a.Frame.IsDevEUI = acct, decoderID, fmt.Sprint(device, " of ", acct), false
	return a
}

func TestACodecThatExceedsItsLimitFiveTimesIsSuspended(t *testing.T) {
	g, calls := newTimedGateway(t)
	n := 0
	ingestNext := func(decoderID string) iot.Outcome {
		n++
		a := g.uplink(1, decoderID, decoderID, fmt.Sprint("r", n))
		a.DecodeNow = true
		return g.ingest(a)[0]
	}
	var outcome iot.Outcome
	for range 20 {
		outcome = ingestNext("100ms")
	}
	relaytest.Equal(t, "the number of calls", len(*calls), 5)
	for _, part := range []string{"decoder 100ms is suspended until 2026-03-01T12:10:00Z", "5 times in succession"} {
		if !strings.Contains(outcome.Refused, part) {
			t.Errorf("refused for %q, want %q in it", outcome.Refused, part)
		}
	}
	stats := g.Codecs()
	relaytest.Equal(t, "suspended codecs, and suspensions", []int64{int64(stats.Suspended), stats.Suspensions}, []int64{1, 1})
	t.Run("the account's other decoders are not suspended", func(t *testing.T) {
		if outcome := ingestNext("1ms"); outcome.Refused != "" {
			t.Error(outcome.Refused)
		}
	})
	t.Run("changes of other records do not end the suspension", func(t *testing.T) {
		relaytest.NoError(t, g.records.PutLocation(t.Context(), 1, iot.Location{ID: "new"}))
		ingestNext("1ms")
		relaytest.NoError(t, g.records.PutLocation(t.Context(), 1, iot.Location{ID: "newer"}))
		if outcome := ingestNext("100ms"); !strings.Contains(outcome.Refused, "is suspended") {
			t.Error(outcome.Refused)
		}
	})
	t.Run("a preview reports the suspension and counts nothing", func(t *testing.T) {
		if frames := g.preview(g.uplink(1, "100ms", "100ms", "x")); !strings.Contains(frames[0].Refused, "is suspended") {
			t.Error(frames[0].Refused)
		}
		oldStats := g.Codecs()
		for range 9 {
			g.preview(g.uplink(2, "100ms", "100ms", "x"))
		}
		relaytest.Equal(t, "the statistics of codecs", g.Codecs(), oldStats)
	})
	t.Run("after ten minutes one call renews the suspension", func(t *testing.T) {
		*calls = nil
		g.now = g.now.Add(10 * time.Minute)
		for range 3 {
			outcome = ingestNext("100ms")
		}
		if len(*calls) != 1 || !strings.Contains(outcome.Refused, "6 times") {
			t.Errorf("%d calls, want 1; refused for %q", len(*calls), outcome.Refused)
		}
	})
	t.Run("a changed source is not suspended", func(t *testing.T) {
		_, err := g.ChangeDecoder(t.Context(), 1, "100ms", iot.DecoderChange{Codec: new(catalog.Expr), Source: new("2ms")})
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the refusal", ingestNext("100ms").Refused, "")
		relaytest.Equal(t, "the suspended codecs", g.Codecs().Suspended, 0)
	})
}

// A codec that exceeded a limit does not delay the frames of other accounts a second time.
func TestFramesOfACodecThatExceededItsLimitAreDeferred(t *testing.T) {
	g, calls := newTimedGateway(t)
	g.ingest(g.uplink(1, "100ms", "100ms", "r1"))
	*calls = nil
	outcomes := g.ingest(g.uplink(1, "100ms", "100ms", "r2"), g.uplink(2, "1ms", "1ms", "r3"), g.uplink(1, "1ms", "1ms", "r4"))
	relaytest.Equal(t, "the frames that are deferred", []bool{outcomes[0].Deferred, outcomes[1].Deferred, outcomes[2].Deferred}, []bool{true, false, false})
	relaytest.Equal(t, "the number of calls", len(*calls), 2)
}

func TestOverrunsOfConcurrentBatchesAreAdded(t *testing.T) {
	g, calls := newTimedGateway(t)
	g.afterReads(3, func() {
		relaytest.NoError(t, g.records.PutLocation(t.Context(), 1, iot.Location{ID: "new"}))
		a := g.uplink(1, "another", "100ms", "another")
		a.Frame.Payload = quickPayload
		g.ingest(a)
	})
	var batch []iot.Arrival
	for n := range 5 {
		a := g.uplink(1, fmt.Sprint("probe", n), "100ms", fmt.Sprint("r", n))
		a.DecodeNow = true
		batch = append(batch, a)
	}
	g.ingest(batch...)
	if stats := g.Codecs(); stats.Suspended != 1 || stats.Suspensions != 1 {
		t.Errorf("%d suspended, %d suspensions after %q", stats.Suspended, stats.Suspensions, *calls)
	}
	if outcome := g.ingest(g.uplink(1, "another", "100ms", "later"))[0]; !strings.Contains(outcome.Refused, "is suspended") {
		t.Errorf("refused for %q, want a suspension, after calls %q", outcome.Refused, *calls)
	}
}

// A codec that exceeds the limit occasionally is not suspended.
func TestACodecThatSometimesExceedsItsLimitIsNotSuspended(t *testing.T) {
	g, calls := newTimedGateway(t)
	for n := range 40 {
		a := g.uplink(1, "probe", "100ms", fmt.Sprint("r", n))
		a.DecodeNow = true
		if n%5 == 4 {
			a.Frame.Payload = quickPayload
		}
		g.ingest(a)
	}
	relaytest.Equal(t, "the number of calls", len(*calls), 40)
	relaytest.Equal(t, "the number of suspensions", g.Codecs().Suspensions, 0)
}

func TestDecodingTimeIsSharedByAccountAndDevice(t *testing.T) {
	batch := func(g *gateway, specs ...string) (arrivals []iot.Arrival) { // "account device decoder count"
		for _, spec := range specs {
			var acct, count int
			var device, decoderID string
			_, err := fmt.Sscan(spec, &acct, &device, &decoderID, &count)
			relaytest.NoError(t, err)
			for range count {
				arrivals = append(arrivals, g.uplink(relay.AccountID(acct), device, decoderID, fmt.Sprintf("%d%s%d", acct, device, len(arrivals))))
			}
		}
		return arrivals
	}
	run := func(g *gateway, arrivals []iot.Arrival) (took time.Duration, deferred, refused map[string]int) {
		startedAt := g.now
		deferred, refused = map[string]int{}, map[string]int{}
		for n, outcome := range g.ingest(arrivals...) {
			if outcome.Deferred {
				deferred[arrivals[n].Frame.Identifier]++
			}
			if outcome.Refused != "" {
				refused[arrivals[n].Frame.Identifier]++
			}
		}
		return g.now.Sub(startedAt), deferred, refused
	}

	t.Run("slow codecs defer only frames of their own account, and the batch ends", func(t *testing.T) {
		g, _ := newTimedGateway(t)
		took, deferred, refused := run(g, batch(g, "1 a 60ms 500", "2 b 1ms 50"))
		if took > 1200*time.Millisecond {
			t.Errorf("the batch took %s", took)
		}
		if deferred["a of 1"] < 450 {
			t.Errorf("%d frames of account 1 were deferred, want at least 450", deferred["a of 1"])
		}
		relaytest.Equal(t, "the deferred frames of account 2", deferred["b of 2"], 0)
		relaytest.Equal(t, "the number of decoders with refused frames", len(refused), 0)
	})
	t.Run("devices with quick codecs do not wait for devices with slow codecs of the same account", func(t *testing.T) {
		g, _ := newTimedGateway(t)
		run(g, batch(g, "1 a 60ms 1"))
		took, deferred, _ := run(g, batch(g, "1 a 60ms 500", "1 b 1ms 50"))
		if took > 1200*time.Millisecond || deferred["b of 1"] != 0 {
			t.Errorf("the batch took %v, deferred %v; want 1.2 s at most and no frame of device b", took, deferred)
		}
	})
	t.Run("devices with slow codecs take turns", func(t *testing.T) {
		g, calls := newTimedGateway(t)
		run(g, batch(g, "1 a 60ms 1"))
		*calls = nil
		run(g, batch(g, "1 a 60ms 500", "1 b 60ms 1", "1 c 60ms 2"))
		if got := strings.Join((*calls)[:6], " "); got != "1a0 1b500 1c501 1a1 1c502 1a2" {
			t.Errorf("calls %s, want the devices in turn", got)
		}
	})
	t.Run("accounts with slow codecs share the time", func(t *testing.T) {
		g, calls := newTimedGateway(t)
		run(g, batch(g, "1 a 60ms 1", "2 b 30ms 1"))
		*calls = nil
		run(g, batch(g, "1 a 60ms 500", "2 b 30ms 500"))
		count := map[byte]int{}
		for _, c := range *calls {
			count[c[0]]++
		}
		count1, count2 := count['1'], count['2']
		if count1 < 7 || count1 > 10 {
			t.Errorf("%d calls for account 1, want 7 to 10", count1)
		}
		if count2 < 2*count1-2 || count2 > 2*count1+2 {
			t.Errorf("%d calls for account 2 and %d for account 1, want twice as many", count2, count1)
		}
	})
	t.Run("a repeated frame is decoded regardless of its duration", func(t *testing.T) {
		g, _ := newTimedGateway(t)
		arrivals := batch(g, "1 a 60ms 100")
		run(g, arrivals)
		for i := range arrivals {
			arrivals[i].DecodeNow = true
		}
		if _, deferred, refused := run(g, arrivals); len(deferred)+len(refused) != 0 {
			t.Errorf("deferred %v, refused %v", deferred, refused)
		}
		if n := len(g.mustStore(arrivals...)); n != 100 {
			t.Errorf("%d outcomes, want 100", n)
		}
	})
	t.Run("a deferred frame is not stored and not a duplicate of itself", func(t *testing.T) {
		g, _ := newTimedGateway(t)
		arrivals := batch(g, "1 a 60ms 100")
		outcomes := g.ingest(arrivals...)
		lastOutcome := outcomes[99]
		relaytest.Equal(t, "whether the last frame is deferred, and a duplicate", []bool{lastOutcome.Deferred, lastOutcome.Duplicate}, []bool{true, false})
		relaytest.Equal(t, "the number of points of the last frame", len(lastOutcome.Points), 0)
		relaytest.Equal(t, "whether the last frame, ingested again, is a duplicate", g.ingest(arrivals...)[99].Duplicate, false)
	})
	t.Run("endless loops of one account do not defer frames of other accounts", func(t *testing.T) {
		g, calls := newTimedGateway(t)
		took, deferred, refused := run(g, batch(g, "1 a 100ms 1000", "2 b 1ms 10"))
		if took > 1200*time.Millisecond {
			t.Errorf("the batch took %s with %d calls", took, len(*calls))
		}
		relaytest.Equal(t, "the deferred and refused frames of account 2", []int{deferred["b of 2"], refused["b of 2"]}, []int{0, 0})
		relaytest.Equal(t, "the deferred or refused frames of account 1", deferred["a of 1"]+refused["a of 1"], 1000)
	})
}
