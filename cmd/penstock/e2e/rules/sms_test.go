package rules

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestKilledGatewaySendsEachSMSOfARuleOnce forwards frames as SMS and kills the gateway at random
// moments. The account pays for one message for each frame.
func TestKilledGatewaySendsEachSMSOfARuleOnce(t *testing.T) {
	t.Parallel()
	kills := e2e.Rounds(t, "PENSTOCK_TEST_KILLS", 2, 20)
	random := e2e.Random(t)
	g := e2e.NewGateway(t, e2e.Embedded(), rulesInventory(t, 100_000))
	g.Spawn()
	acme := g.WithToken("acme-all-0123456")
	acme.Post("/iot/rules", `{"name":"Forward","on":"reading","actions":[{"action":"sms","parameters":["447700900123"],"body":"'frame ' + uplink.f_cnt"}]}`).Mentions(t, 201)
	stop, frameCounts := make(chan struct{}), make(chan int)
	go func() { frameCounts <- postUntil(t, acme, stop) }()
	for range kills {
		e2e.SleepRandomly(random, 400*time.Millisecond)
		g.Kill()
		g.Spawn()
	}
	e2e.SleepRandomly(random, 400*time.Millisecond)
	close(stop)
	frames := <-frameCounts
	g.AwaitProcessed()
	relaytest.Eventually(t, "the deliveries end", func() (any, bool) {
		unfinished := append(g.Deliveries("kind=rule&state=queued"), g.Deliveries("kind=rule&state=retrying")...)
		return unfinished, len(unfinished) == 0
	})
	var credit struct{ Data struct{ Credit int } }
	e2e.CustomerOf(g).Get("/v2/sms/credit").Decode(t, &credit)
	if credits := 100_000 - credit.Data.Credit; credits != frames || frames == 0 {
		t.Errorf("frames = %d, credits = %d, deliveries = %d; want as many credits as frames", frames, credits, len(g.Deliveries("kind=rule&limit=1000")))
	}
	t.Logf("%d frames, %d kills", frames, kills)
}

// postUntil posts frames of a probe one after the other until stop is closed, and returns the number of
// acknowledged frames. Like ChirpStack, it repeats a frame without an answer. The gateway drops the
// repetition of a frame that it has accepted.
func postUntil(t *testing.T, c e2e.Client, stop <-chan struct{}) (count int) {
	firstFrameAt := time.Now().Add(-12 * time.Hour)
	for {
		select {
		case <-stop:
			return count
		default:
		}
		frameTime := firstFrameAt.Add(time.Duration(count) * time.Second).UTC().Format(time.RFC3339)
		body := e2e.Fixture(t, "chirpstack/up.json", "8b2f6c1e-", fmt.Sprintf("%08x-", count),
			"2026-03-01T10:15:30.250Z", frameTime, `"fCnt": 4711`, fmt.Sprint(`"fCnt": `, 4711+count))
		for acknowledged := false; !acknowledged; {
			resp, err := c.Try(http.MethodPost, "/webhooks/lorawan?decoder_id=lpp&event=up", body)
			acknowledged = err == nil && resp.Status == 200
		}
		count++
	}
}
