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

// smscText is a text for a coding that the SMSC is to use.
func smscText(coding, n int) string {
	text := map[int][]string{
		1: {"plain words, in US-ASCII"},
		4: {"data"},
		6: {"Привет, мир №"},
		7: {"שלום"},
		0: {"plain words @ £1, é à Ω?", "€ [x] {y} ~ ^ \\ |", "%m %o are not replaced & 100% +1 #"},
		3: {"Çà et là: ½ ± ÿ", "plain words @ £1"},
		8: {"Привет, 你好", "🎉 Ünïcödé 𝄞 €"},
	}[coding]
	return fmt.Sprintf("%d %s", n, text[n%len(text)])
}

// smscThousands are so many messages, single and long, in every coding and every
// way to say which parts belong together, many of them repeated; and what the
// sink must see of them as text|sender|number.
func smscThousands(count int) (all []e2e.SMSCMessage, want []string) {
	for i := range count {
		m := e2e.SMSCMessage{
			From: []string{"447700900123", "447700900124", "Example", "66777"}[i%4], To: fmt.Sprintf("4478%08d", i),
			Coding: []int{0, 3, 8, 4, 1, 6, 7}[i/4%7],
		}
		long := i%5 >= 3
		m.Form, m.Twice = []string{"plain", "payload", "data_sm"}[i/5%3], []string{"", "pdu", "id", ""}[i/7%4]
		if long {
			m.Form, m.Twice = []string{"udh8", "udh16", "sar", "payload"}[i/5%4], []string{"", "pdu", "part", "id"}[i/7%4]
			if m.Form == "payload" && m.Twice == "part" {
				m.Twice = ""
			}
		}
		times := 1
		if long {
			times = 8 + i%11
		}
		text := strings.Repeat(smscText(m.Coding, i)+" ", times)
		m.Text = strings.TrimSpace(text)
		if m.Coding == 4 {
			m.Text, m.Data = "", hex.EncodeToString([]byte(text))
			text = m.Data
		}
		all = append(all, m)
		want = append(want, strings.TrimSpace(text)+"|"+m.From+"|"+m.To)
	}
	return all, want
}

// onceEach checks that exactly the messages wanted came, each once.
func onceEach(t *testing.T, got map[string]int, want []string) {
	t.Helper()
	left := maps.Clone(got)
	wrong := 0
	for _, m := range want {
		if got[m] != 1 && wrong < 10 {
			t.Errorf("came %d times: %q", got[m], m)
			wrong++
		}
		delete(left, m)
	}
	for i, m := range slices.Sorted(maps.Keys(left)) {
		if i < 10 {
			t.Errorf("nobody sent %q", m)
		}
	}
}

// TestSMSC has an SMSC deliver messages, until the customer's
// endpoint has each of them once.
func TestSMSC(t *testing.T) {
	t.Parallel()
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		peer, k := e2e.StartSMSC(t, "window=200", "seed=7", "enquire=100"), newKannelSink(t)
		g := e2e.NewGateway(t, s, e2e.SMSCInventory(k.url))
		g.Configure("carriers:\n" + peer.CarrierConfig("example-mobile", "enquire_link: 1s"))
		g.Run()
		all, want := smscThousands(e2e.Rounds(t, "PENSTOCK_TEST_MESSAGES", 1_000, 10_000))
		began := time.Now()
		peer.Deliver(all)
		end := peer.AwaitAnswers()
		t.Logf("%d PDUs answered in %v", end.Answered, time.Since(began).Round(time.Millisecond))
		k.receives(t, "/sms", len(want), "m", "o", "d")
		t.Logf("%d messages delivered after %v", len(want), time.Since(began).Round(time.Millisecond))
		peer.Await("our enquire_link", func(e e2e.SMSCEvent) bool { return e.Asked })
		peer.Await("our answer to its enquire_link", func(e e2e.SMSCEvent) bool { return e.Alive })
		g.AwaitProcessed()
		m := e2e.Metrics(t, g.As("").Get("/metrics").Body)
		relaytest.NoError(t, g.Stop())
		onceEach(t, k.seen("/sms", "m", "o", "d"), want)
		if end.Refused+end.Broken > 0 {
			t.Errorf("the SMSC had to repeat %d + %d PDUs", end.Refused, end.Broken)
		}
		if n := m[`penstock_carrier_messages_total{bind="1-transceiver",carrier="example-mobile"}`]; int(n) < end.Answered || m[`penstock_carrier_bound{bind="1-transceiver",carrier="example-mobile"}`] != 1 {
			t.Errorf("metrics count %v messages", n)
		}
		if bye := peer.Await("our unbind", func(e e2e.SMSCEvent) bool { return e.Unbound }); bye.Open > 0 {
			t.Errorf("we left %d PDUs without an answer", bye.Open)
		}
	})
}

// TestSMSCKill kills the gateway at random moments while the SMSC delivers: what
// it has an answer to arrives, and what it has none to it delivers again.
func TestSMSCKill(t *testing.T) {
	t.Parallel()
	kills := e2e.Rounds(t, "PENSTOCK_TEST_KILLS", 4, 20)
	random := e2e.Random(t)
	peer, k := e2e.StartSMSC(t, "window=50", fmt.Sprint("seed=", random.IntN(1_000_000))), newKannelSink(t)
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.SMSCInventory(k.url))
	g.Configure("carriers:\n" + peer.CarrierConfig("one"))
	all, want := smscThousands(e2e.Rounds(t, "PENSTOCK_TEST_MESSAGES", 1_000, 10_000))
	peer.Deliver(all)
	for round := range kills {
		if round%4 == 3 {
			g.Launch()
			e2e.SleepRandomly(random, 200*time.Millisecond)
			g.Kill()
		}
		before := peer.BindCount()
		g.Spawn()
		relaytest.Eventually(t, "it is bound", func() (any, bool) { return before, peer.BindCount() > before })
		e2e.SleepRandomly(random, 200*time.Millisecond)
		g.Kill()
	}
	g.Spawn()
	end := peer.AwaitAnswers()
	k.receives(t, "/sms", len(want), "m", "o", "d")
	g.AwaitProcessed()
	g.Terminate()
	got, lost := k.seen("/sms", "m", "o", "d"), 0
	for _, m := range want {
		if got[m] == 0 {
			lost++
		}
	}
	// A delivery whose outcome the kill kept from being written is repeated under its
	// webhook-id. Only a PDU that the SMSC had to repeat may become a second message.
	second := len(k.seen("/sms", "m", "o", "d", "webhook-id")) - len(got)
	t.Logf("%d PDUs answered, %d cut off, %d messages taken twice", end.Answered, end.Broken, second)
	if second > end.Broken {
		t.Errorf("more messages were taken twice than PDUs were cut off")
	}
	if lost > 0 || len(got) != len(want) {
		t.Errorf("%d messages were lost; %d different ones came, want %d", lost, len(got), len(want))
	}
}
