package sending

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// smscText returns a text that a coding can represent.
func smscText(coding, n int) string {
	texts := map[int][]string{
		1: {"plain words, in US-ASCII"},
		4: {"data"},
		6: {"Привет, мир №"},
		7: {"שלום"},
		0: {"plain words @ £1, é à Ω?", "€ [x] {y} ~ ^ \\ |", "%m %o are not replaced & 100% +1 #"},
		3: {"Çà et là: ½ ± ÿ", "plain words @ £1"},
		8: {"Привет, 你好", "🎉 Ünïcödé 𝄞 €"},
	}[coding]
	return fmt.Sprintf("%d %s", n, texts[n%len(texts)])
}

// smscMessages returns count messages, short and long, in every coding and with every form of
// concatenation, many of them repeated. want are the expected requests of the sink as
// text|sender|number.
func smscMessages(count int) (messages []e2e.SMSCMessage, want []string) {
	for i := range count {
		m := e2e.SMSCMessage{
			From: []string{"447700900123", "447700900124", "Example", "66777"}[i%4], To: fmt.Sprintf("4478%08d", i),
			Coding: []int{0, 3, 8, 4, 1, 6, 7}[i/4%7],
		}
		hasParts := i%5 >= 3
		m.Form, m.Repeat = []string{"plain", "payload", "data_sm"}[i/5%3], []string{"", "pdu", "id", ""}[i/7%4]
		if hasParts {
			m.Form, m.Repeat = []string{"udh8", "udh16", "sar", "payload"}[i/5%4], []string{"", "pdu", "part", "id"}[i/7%4]
			if m.Form == "payload" && m.Repeat == "part" {
				m.Repeat = ""
			}
		}
		repeats := 1
		if hasParts {
			repeats = 8 + i%11
		}
		text := strings.Repeat(smscText(m.Coding, i)+" ", repeats)
		m.Text = strings.TrimSpace(text)
		if m.Coding == 4 {
			m.Text, m.Data = "", hex.EncodeToString([]byte(text))
			text = m.Data
		}
		messages = append(messages, m)
		want = append(want, strings.TrimSpace(text)+"|"+m.From+"|"+m.To)
	}
	return messages, want
}

// checkEachOnce checks that exactly the wanted messages arrived, each once.
func checkEachOnce(t *testing.T, got map[string]int, want []string) {
	t.Helper()
	unexpected := maps.Clone(got)
	failures := 0
	for _, m := range want {
		if got[m] != 1 && failures < 10 {
			t.Errorf("%q arrived %d times, want 1", m, got[m])
			failures++
		}
		delete(unexpected, m)
	}
	for i, m := range slices.Sorted(maps.Keys(unexpected)) {
		if i < 10 {
			t.Errorf("%q arrived, but was not sent", m)
		}
	}
}

// TestMessagesFromAnSMSCArriveOnce delivers messages from an SMSC to the customer's endpoint.
func TestMessagesFromAnSMSCArriveOnce(t *testing.T) {
	t.Parallel()
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		peer, sink := e2e.StartSMSC(t, "window=200", "seed=7", "enquire=100"), newKannelSink(t)
		g := e2e.NewGateway(t, s, e2e.SMSCInventory(sink.url))
		g.Configure("carriers:\n" + peer.CarrierConfig("example-mobile", "enquire_link: 1s"))
		g.Run()
		messages, want := smscMessages(e2e.Rounds(t, "PENSTOCK_TEST_MESSAGES", 1_000, 10_000))
		startedAt := time.Now()
		peer.Deliver(messages)
		answers := peer.AwaitAnswers()
		t.Logf("%d PDUs answered in %v", answers.Answered, time.Since(startedAt).Round(time.Millisecond))
		sink.awaitRequests(t, "/sms", len(want), "m", "o", "d")
		t.Logf("%d messages delivered after %v", len(want), time.Since(startedAt).Round(time.Millisecond))
		peer.Await("the gateway's enquire_link", func(e e2e.SMSCEvent) bool { return e.EnquireLink })
		peer.Await("the gateway's answer to its enquire_link", func(e e2e.SMSCEvent) bool { return e.EnquireLinkResp })
		g.AwaitProcessed()
		m := e2e.Metrics(t, g.WithToken("").Get("/metrics").Body)
		relaytest.NoError(t, g.Stop())
		checkEachOnce(t, sink.countBy("/sms", "m", "o", "d"), want)
		if answers.Refused+answers.Broken > 0 {
			t.Errorf("refused PDUs = %d, unanswered PDUs = %d, want none", answers.Refused, answers.Broken)
		}
		if n := m[`penstock_carrier_messages_total{bind="1-transceiver",carrier="example-mobile"}`]; int(n) < answers.Answered || m[`penstock_carrier_bound{bind="1-transceiver",carrier="example-mobile"}`] != 1 {
			t.Errorf("messages in the metrics = %v, want at least %d and a bound carrier", n, answers.Answered)
		}
		if unbind := peer.Await("the gateway's unbind", func(e e2e.SMSCEvent) bool { return e.Unbound }); unbind.Unanswered > 0 {
			t.Errorf("PDUs without an answer at the unbind = %d, want none", unbind.Unanswered)
		}
	})
}

// TestKillWhileAnSMSCDelivers kills the gateway at random moments while the SMSC delivers. Every
// answered message arrives, and the SMSC delivers unanswered messages again.
func TestKillWhileAnSMSCDelivers(t *testing.T) {
	t.Parallel()
	kills := e2e.Rounds(t, "PENSTOCK_TEST_KILLS", 4, 20)
	random := e2e.Random(t)
	peer, sink := e2e.StartSMSC(t, "window=50", fmt.Sprint("seed=", random.IntN(1_000_000))), newKannelSink(t)
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.SMSCInventory(sink.url))
	g.Configure("carriers:\n" + peer.CarrierConfig("one"))
	messages, want := smscMessages(e2e.Rounds(t, "PENSTOCK_TEST_MESSAGES", 1_000, 10_000))
	peer.Deliver(messages)
	for round := range kills {
		if round%4 == 3 {
			g.Launch()
			e2e.SleepRandomly(random, 200*time.Millisecond)
			g.Kill()
		}
		oldBinds := peer.BindCount()
		g.Spawn()
		relaytest.Eventually(t, "the gateway is bound", func() (any, bool) { return oldBinds, peer.BindCount() > oldBinds })
		e2e.SleepRandomly(random, 200*time.Millisecond)
		g.Kill()
	}
	g.Spawn()
	answers := peer.AwaitAnswers()
	sink.awaitRequests(t, "/sms", len(want), "m", "o", "d")
	g.AwaitProcessed()
	g.Terminate()
	got, missing := sink.countBy("/sms", "m", "o", "d"), 0
	for _, m := range want {
		if got[m] == 0 {
			missing++
		}
	}
	// If the outcome of a delivery was not saved before the kill, the delivery is repeated with the
	// same webhook-id. Only a PDU that the SMSC had to repeat may become a second message.
	duplicates := len(sink.countBy("/sms", "m", "o", "d", "webhook-id")) - len(got)
	t.Logf("%d PDUs answered, %d interrupted, %d messages stored twice", answers.Answered, answers.Broken, duplicates)
	if duplicates > answers.Broken {
		t.Errorf("messages that are stored twice = %d, want at most %d, the number of interrupted PDUs", duplicates, answers.Broken)
	}
	if missing > 0 || len(got) != len(want) {
		t.Errorf("%d messages are missing; %d different messages arrived, want %d", missing, len(got), len(want))
	}
}
