package sending

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// awaitBinds waits until at least n binds to an SMSC have been made.
func awaitBinds(t *testing.T, peer *e2e.SMSC, n int) {
	t.Helper()
	relaytest.Eventually(t, fmt.Sprint(n, " binds"), func() (any, bool) { got := peer.BindCount(); return got, got >= n })
}

// TestReceiptsArriveOverAnotherBind sends over a transmitter and receives the receipts over a
// receiver.
func TestReceiptsArriveOverAnotherBind(t *testing.T) {
	t.Parallel()
	peer, sink := e2e.StartSMSC(t), e2e.NewSink(t, nil)
	g, acme := newSender(t, peer.BindsConfig("op", "bind: transmitter", "bind: receiver"))
	awaitBinds(t, peer, 2)
	acme.SendMessages(e2e.SendBody(t, sink.URL, nil, "447700900100", "447700900105", "447700900109"))
	e2e.AwaitReports(t, sink, "447700900100:8", "447700900100:1", "447700900105:8", "447700900105:1", "447700900109:8", "447700900109:2")
	for _, e := range peer.Events() {
		if e.Destination != "" {
			relaytest.Equal(t, "the bind of the submission", e.BindCommand, "bind_transmitter")
		}
	}
	relaytest.Eventually(t, "no receipt is unrouted", func() (any, bool) {
		events := g.Events("kind=receipt&state=unrouted")
		return events, len(events) == 0
	})

	t.Run("back ends, metrics, status and events name the carrier and the bind", func(t *testing.T) {
		_, r := g.Ready()
		for _, name := range []string{"carrier op bind 1-transmitter", "carrier op bind 2-receiver"} {
			relaytest.Equal(t, name, r.Backends[name].Status, "ok")
		}
		m := e2e.Metrics(t, g.WithToken("").Get("/metrics").Body)
		for metric, want := range map[string]float64{
			`penstock_carrier_bound{bind="1-transmitter",carrier="op"}`: 1, `penstock_carrier_bound{bind="2-receiver",carrier="op"}`: 1,
			`penstock_carrier_receipts_total{bind="1-transmitter",carrier="op"}`: 0, `penstock_carrier_receipts_total{bind="2-receiver",carrier="op"}`: 3,
		} {
			relaytest.Equal(t, metric, m[metric], want)
		}
		g.Admin().Get("/admin/status").Mentions(t, 200, `"name":"op","bound":true`, `"name":"1-transmitter","type":"transmitter","addr":"127.0.0.1:`, `"name":"2-receiver","type":"receiver","addr":"127.0.0.1:`)
		for _, e := range g.Events("kind=receipt") {
			if !strings.HasSuffix(e.Outcome, "of carrier op over bind 2-receiver") {
				t.Errorf("outcome of a receipt = %q, want the carrier op and the bind 2-receiver", e.Outcome)
			}
		}
		if log := g.Logs.String(); !strings.Contains(log, "carrier=op bind=1-transmitter") || !strings.Contains(log, "carrier=op bind=2-receiver") {
			t.Errorf("log = %s\nwant the carrier and both binds", log)
		}
	})
}

// TestPartsArriveOverTwoBinds makes an SMSC deliver the parts of each message over two
// transceivers in turn.
func TestPartsArriveOverTwoBinds(t *testing.T) {
	t.Parallel()
	peer, sink := e2e.StartSMSC(t, "mix=1"), newKannelSink(t)
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.SMSCInventory(sink.url))
	g.Configure("carriers:\n" + peer.BindsConfig("op", "bind: transceiver", "bind: transceiver"))
	g.Run()
	awaitBinds(t, peer, 2)
	const n = 50
	var messages []e2e.SMSCMessage
	var want []string
	for i := range n {
		m := e2e.SMSCMessage{From: "447700900123", To: fmt.Sprintf("4478%08d", i), Form: []string{"udh8", "udh16", "sar"}[i%3], Text: fmt.Sprint(i, strings.Repeat(" halves", 35))}
		messages, want = append(messages, m), append(want, m.Text+"|"+m.From+"|"+m.To)
	}
	peer.Deliver(messages)
	peer.AwaitAnswers()
	sink.awaitRequests(t, "/sms", n, "m", "o", "d")
	checkEachOnce(t, sink.countBy("/sms", "m", "o", "d"), want)
	m := e2e.Metrics(t, g.WithToken("").Get("/metrics").Body)
	for _, bind := range []string{"1-transceiver", "2-transceiver"} {
		relaytest.Equal(t, "the parts over "+bind, m[`penstock_carrier_messages_total{bind="`+bind+`",carrier="op"}`], float64(n))
	}
}

// TestBindsOfSeveralGateways binds three gateways to one SMSC, which sends receipts and the
// parts of a message to the receivers of the gateways in turn.
func TestBindsOfSeveralGateways(t *testing.T) {
	t.Parallel()
	peer, sink := e2e.StartSMSC(t, "mix=1"), newKannelSink(t)
	reports := e2e.NewSink(t, nil)
	inventory := `accounts: [{name: acme, credit: 1000, tokens: [{token: acme-token-0123456, scopes: [messaging, carrier]}], relays: {geo: [{id: all, prefix: "4478", action: http_get,
  parameters: ["` + sink.url + `/sms?m=%m&o=%o&d=%d&u=%u&i=%i"]}]}}]`
	gateways := e2e.NewCluster(t, e2e.RealSite(t), inventory).Gateways
	for _, g := range gateways {
		g.Configure("carriers:\n" + peer.BindsConfig("op", "bind: transmitter", "bind: receiver"))
		g.Run()
	}
	awaitBinds(t, peer, 2*len(gateways))
	var messages []e2e.SMSCMessage
	var want, wantReports []string
	for i := range 20 {
		m := e2e.SMSCMessage{From: "447700900123", To: fmt.Sprintf("4478%08d", i), Form: "udh8", Text: fmt.Sprint(i, strings.Repeat(" halves", 35))}
		messages, want = append(messages, m), append(want, m.Text+"|"+m.From+"|"+m.To)
		number := fmt.Sprintf("44770090%02d00", i)
		gateways[i%len(gateways)].XAuth("acme-token-0123456").SendMessages(e2e.SendBody(t, reports.URL, nil, number))
		wantReports = append(wantReports, number+":8", number+":1")
	}
	peer.Deliver(messages)
	peer.AwaitAnswers()
	sink.awaitRequests(t, "/sms", len(want), "m", "o", "d")
	checkEachOnce(t, sink.countBy("/sms", "m", "o", "d"), want)
	e2e.AwaitReports(t, reports, wantReports...)
	for _, g := range gateways {
		m := e2e.Metrics(t, g.WithToken("").Get("/metrics").Body)
		for _, metric := range []string{"penstock_carrier_messages_total", "penstock_carrier_receipts_total"} {
			if m[metric+`{bind="2-receiver",carrier="op"}`] == 0 {
				t.Errorf("%s of a gateway = 0, want at least 1", metric)
			}
		}
	}
}

// TestOneGatewayHoldsTheBinds binds to an SMSC that allows one connection. One gateway is bound
// and sends the messages of all gateways. When that gateway is killed or stops, another
// gateway binds.
func TestOneGatewayHoldsTheBinds(t *testing.T) {
	t.Parallel()
	peer, reports := e2e.StartSMSC(t, "sessions=1"), e2e.NewSink(t, nil)
	cluster := e2e.NewCluster(t, e2e.RealSite(t), senderInventory(1000))
	for _, g := range cluster.Gateways {
		g.Configure("carriers:\n" + peer.CarrierConfig("op", "gateways: one"))
	}
	cluster.Spawn()
	running := slices.Clone(cluster.Gateways)
	holderIndex := func() (index int) {
		t.Helper()
		relaytest.Eventually(t, "one gateway is bound", func() (any, bool) {
			index = slices.IndexFunc(running, func(g *e2e.Gateway) bool {
				return e2e.Metrics(t, g.WithToken("").Get("/metrics").Body)[`penstock_carrier_bound{bind="1-transceiver",carrier="op"}`] == 1
			})
			return index, index >= 0
		})
		return index
	}
	messageCount := 0
	var want []string
	send := func() {
		t.Helper()
		for range 6 {
			number := fmt.Sprintf("44770090%02d00", messageCount)
			running[messageCount%len(running)].XAuth("acme-token-0123456").SendMessages(e2e.SendBody(t, reports.URL, nil, number))
			want = append(want, number+":8", number+":1")
			messageCount++
		}
		e2e.AwaitReports(t, reports, want...)
	}
	for _, stopGateway := range []func(*e2e.Gateway){(*e2e.Gateway).Kill, func(g *e2e.Gateway) { g.Terminate() }, nil} {
		index := holderIndex()
		send()
		for i, g := range running {
			_, r := g.Ready()
			relaytest.Equal(t, fmt.Sprintf("status of the carrier at gateway %d while gateway %d is bound", i, index), r.Backends["carrier op"].Status, "ok")
		}
		if stopGateway == nil {
			continue
		}
		stopGateway(running[index])
		running = slices.Delete(running, index, index+1)
	}
	submissions := make(map[string]int)
	for _, e := range peer.Events() {
		submissions[e.Destination]++
		if e.Excess {
			t.Error("two gateways were bound at the same time")
		}
	}
	for i := range messageCount {
		number := fmt.Sprintf("44770090%02d00", i)
		relaytest.Equal(t, "number of submissions of "+number, submissions[number], 1)
	}
}
