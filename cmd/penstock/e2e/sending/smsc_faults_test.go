package sending

import (
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// rawPDU returns a PDU in hex.
func rawPDU(command, sequence uint32, body string) string {
	body = strings.ReplaceAll(body, " ", "")
	return fmt.Sprintf("%08x%08x00000000%08x%s", 16+len(body)/2, command, sequence, body)
}

// deliverBody returns the body of a deliver_sm in hex.
func deliverBody(number string, class, coding byte, text string) string {
	return fmt.Sprintf("00 0101%s00 0101%s00 %02x0000 0000 0000 %02x00 %02x%x",
		hex.EncodeToString([]byte("447700900123")), hex.EncodeToString([]byte(number)), class, coding, len(text), text)
}

// TestSMSCFaults makes an SMSC send invalid and unexpected PDUs.
func TestSMSCFaults(t *testing.T) {
	t.Parallel()
	peer, sink := e2e.StartSMSC(t), newKannelSink(t)
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.SMSCInventory(sink.url))
	g.Configure("carriers:\n" + peer.CarrierConfig("one"))
	g.Spawn()
	peer.Await("the gateway is bound", func(e e2e.SMSCEvent) bool { return e.Bound == "bind_transceiver" && e.SystemID == "penstock" })
	expectAnswer := func(sequence uint32, answer string, status int) {
		t.Helper()
		got := peer.Await("the gateway's answer", func(e e2e.SMSCEvent) bool { return e.Answer != "" && e.Sequence == sequence })
		if got.Answer != answer || *got.Status != status {
			t.Errorf("answer = %s with status 0x%02X, want %s with 0x%02X", got.Answer, *got.Status, answer, status)
		}
	}
	t.Run("malformed PDUs are answered and quarantined, and the bind stays up", func(t *testing.T) {
		for i, tc := range []struct {
			raw, answer string
			status      int
			reason      string
		}{
			{rawPDU(5, 0x7000, "00 0101 31"), "deliver_sm_resp", 0x0A, "smpp: source_addr: offset 19: does not end within 65 octets"},
			{rawPDU(5, 0x7001, strings.Replace(deliverBody("447800000001", 0, 0, "hi"), "026869", "ff6869", 1)), "deliver_sm_resp", 0x01, "smpp: short_message: offset 57: reaches beyond the PDU"},
			{rawPDU(5, 0x7002, deliverBody("447800000001", 0, 0, "hi")+"0424 0009 61"), "deliver_sm_resp", 0xC0, "smpp: tlv: offset 63: reaches beyond the PDU"},
			{rawPDU(0x99, 0x7003, "01"), "generic_nack", 0x03, "smpp: command_id: offset 4: 0x00000099 does not carry a message"},
		} {
			peer.SendRaw(tc.raw)
			expectAnswer(uint32(0x7000+i), tc.answer, tc.status)
			relaytest.Eventually(t, "the PDU is quarantined", func() (any, bool) {
				events := g.Events("kind=sms&state=quarantined&source=smpp&device=smpp/one")
				return events, len(events) == i+1
			})
			e := g.Events("kind=sms&state=quarantined")[0]
			relaytest.Equal(t, "the reason of the event", e.Reason, tc.reason)
			if e.Raw != tc.raw && e.Raw != rawText(t, tc.raw) {
				t.Errorf("raw of the event = %q, want %q", e.Raw, tc.raw)
			}
		}
		peer.SendRaw(rawPDU(5, 0x7010, deliverBody("447800000001", 0, 0, "valid")))
		expectAnswer(0x7010, "deliver_sm_resp", 0)
		sink.awaitRequests(t, "/sms", 1, "m")
		if n := peer.BindCount(); n != 1 {
			t.Errorf("number of binds = %d, want 1", n)
		}
	})
	t.Run("the reason of an unrouted receipt has the state and the id in the receipt", func(t *testing.T) {
		peer.SendRaw(rawPDU(5, 0x7020, deliverBody("447800000001", 4, 0, "id:77 sub:001 dlvrd:001 stat:DELIVRD err:000")))
		expectAnswer(0x7020, "deliver_sm_resp", 0)
		relaytest.Eventually(t, "the receipt", func() (any, bool) {
			events := g.Events("kind=receipt")
			return events, len(events) == 1 && events[0].State == "unrouted" && events[0].Source == "smpp" &&
				events[0].Reason == `receipt delivered: unknown message "77 or 4d or 119" of carrier one`
		})
	})
	t.Run("a message without a relay is unrouted", func(t *testing.T) {
		peer.SendRaw(rawPDU(5, 0x7030, deliverBody("33600000001", 0, 0, "unrouted")))
		expectAnswer(0x7030, "deliver_sm_resp", 0)
		relaytest.Eventually(t, "the event", func() (any, bool) {
			events := g.Events("kind=sms&state=unrouted&q=33600000001")
			return events, len(events) == 1
		})
	})
	t.Run("text in another alphabet is readable after the alphabet is configured", func(t *testing.T) {
		peer.SendRaw(rawPDU(5, 0x7040, deliverBody("447800000002", 0, 0, "caf\xe9")))
		expectAnswer(0x7040, "deliver_sm_resp", 0)
		relaytest.Eventually(t, "the message is quarantined", func() (any, bool) {
			events := g.Events("kind=sms&state=quarantined&q=above")
			return events, len(events) == 1 && events[0].Reason == "smpp: short_message in the default alphabet of one: gsm7: offset 3: octet above 0x7F"
		})
		g.Terminate()
		g.Configure("carriers:\n" + peer.CarrierConfig("one", "alphabet: latin1"))
		g.Spawn()
		g.Admin().Post("/admin/events/replay", `{"state":"quarantined","q":"above"}`).Mentions(t, 200, `"count":1,`)
		sink.awaitRequests(t, "/sms", 2, "m")
		if got := sink.countBy("/sms", "m", "d"); got["café|447800000002"] != 1 {
			t.Errorf("the sink received %v, want café once", got)
		}
	})
}

// rawText decodes a PDU in hex: an event shows a PDU as text if the octets are valid text.
func rawText(t *testing.T, raw string) string {
	t.Helper()
	b, err := hex.DecodeString(raw)
	relaytest.NoError(t, err)
	return string(b)
}

// TestReceiptsDoNotNeedRedis makes Redis hang. The session stays bound, and a receipt is answered and
// processed.
func TestReceiptsDoNotNeedRedis(t *testing.T) {
	t.Parallel()
	s := *e2e.RealSite(t)
	s.Redis = redistest.Start(t)
	peer, sink := e2e.StartSMSC(t), newKannelSink(t)
	g := e2e.NewGateway(t, &s, e2e.SMSCInventory(sink.url))
	g.Configure("carriers:\n" + peer.CarrierConfig("one", "enquire_link: 1s"))
	g.Run()
	peer.Await("the gateway is bound", func(e e2e.SMSCEvent) bool { return e.Bound != "" })
	resume := s.Redis.Pause()
	defer resume()
	peer.SendRaw(rawPDU(5, 0x7001, deliverBody("447800000001", 4, 0, "id:77 sub:001 dlvrd:001 submit date:2611200800 done date:2611200801 stat:DELIVRD err:000 text:")))
	answer := peer.Await("the gateway's answer", func(e e2e.SMSCEvent) bool { return e.Answer != "" && e.Sequence == 0x7001 })
	relaytest.Equal(t, "the answer", fmt.Sprint(answer.Answer, " ", *answer.Status), "deliver_sm_resp 0")
	relaytest.Eventually(t, "the receipt is processed", func() (any, bool) {
		events := g.Events("kind=receipt&state=unrouted")
		return events, len(events) == 1 && strings.Contains(events[0].Reason, "unknown message")
	})
	peer.Await("the gateway's enquire_link", func(e e2e.SMSCEvent) bool { return e.EnquireLink })
	relaytest.Equal(t, "the number of binds", peer.BindCount(), 1)
}

// TestSMSCRepeatsMessagesAfterTheJournalWasFull fills the journal. The SMSC then gets a status that makes
// it repeat its messages later, and every message arrives once after the journal has room again.
func TestSMSCRepeatsMessagesAfterTheJournalWasFull(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	peer, sink := e2e.StartSMSC(t), newKannelSink(t)
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.SMSCInventory(sink.url), "PENSTOCK_DATABASE_URL="+server.NewDatabase(t), "PENSTOCK_JOURNAL_MAX_BYTES=1MiB")
	g.Configure("carriers:\n" + peer.CarrierConfig("one"))
	g.Run()
	server.Kill()
	var messages []e2e.SMSCMessage
	var want []string
	for i := range 100 {
		m := e2e.SMSCMessage{From: "447700900123", To: fmt.Sprintf("4478%08d", i), Form: "payload", Text: fmt.Sprint(i, strings.Repeat(" full", 3000))}
		messages, want = append(messages, m), append(want, m.Text+"|"+m.From+"|"+m.To)
	}
	peer.Deliver(messages)
	peer.Await("the status for a full journal", func(e e2e.SMSCEvent) bool { return e.Status != nil && *e.Status == 0x64 })
	relaytest.Eventually(t, "/readyz reports the journal as down", func() (any, bool) {
		status, r := g.Ready()
		return r, status == 503 && r.Backends["journal sms"].Status == "down" && r.Backends["carrier one"].Status == "ok"
	})
	server.Start()
	answers := peer.AwaitAnswers()
	sink.awaitRequests(t, "/sms", len(want), "m", "o", "d")
	relaytest.NoError(t, g.Stop())
	checkEachOnce(t, sink.countBy("/sms", "m", "o", "d"), want)
	if answers.Refused == 0 || answers.Answered < len(want) {
		t.Errorf("refused = %d, answered = %d; want at least 1 and at least %d", answers.Refused, answers.Answered, len(want))
	}
}

// TestSMSCRefusesTheBind binds to an SMSC that has another password.
func TestSMSCRefusesTheBind(t *testing.T) {
	t.Parallel()
	peer := e2e.StartSMSC(t, "password=other")
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.SMSCInventory("http://127.0.0.1:9"))
	g.Configure("carriers:\n" + peer.CarrierConfig("one"))
	g.Run()
	relaytest.Eventually(t, "/readyz shows the reason of the refused bind", func() (any, bool) {
		status, r := g.Ready()
		b := r.Backends["carrier one"]
		return r, status == 200 && b.Status == "down" && b.Note == "smpp" && strings.HasPrefix(b.Error, "waiting: bind: the SMSC refused the bind with 0x0E, ")
	})
	if strings.Contains(g.Logs.String(), "secret") {
		t.Error("the log contains the password")
	}
}

// TestSMSCOverTLS binds to an SMSC over TLS whose certificate is not in the system's roots. The carrier
// with the ca_file binds, and the carrier without it does not.
func TestSMSCOverTLS(t *testing.T) {
	t.Parallel()
	peer, sink := e2e.StartSMSC(t), newKannelSink(t)
	certServer := httptest.NewUnstartedServer(nil) // for its certificate
	certServer.StartTLS()
	defer certServer.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	relaytest.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certServer.Certificate().Raw}), 0o600))
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certServer.TLS.Certificates})
	relaytest.NoError(t, err)
	defer l.Close()
	go relayBytes(l, fmt.Sprint("127.0.0.1:", peer.Port))
	peer.Port = l.Addr().(*net.TCPAddr).Port

	g := e2e.NewGateway(t, e2e.Embedded(), e2e.SMSCInventory(sink.url))
	g.Configure("carriers:\n" + peer.CarrierConfig("one", "tls: tls", "ca_file: "+file) + peer.CarrierConfig("stranger", "tls: tls"))
	g.Run()
	messages, want := smscMessages(100)
	peer.Deliver(messages)
	peer.AwaitAnswers()
	sink.awaitRequests(t, "/sms", len(want), "m", "o", "d")
	checkEachOnce(t, sink.countBy("/sms", "m", "o", "d"), want)
	relaytest.Eventually(t, "a certificate of an unknown authority is refused", func() (any, bool) {
		_, r := g.Ready()
		return r, strings.Contains(r.Backends["carrier stranger"].Error, "certificate") && r.Backends["carrier one"].Status == "ok"
	})
}

// relayBytes accepts TLS connections, and copies data in both directions between each connection and
// an address.
func relayBytes(l net.Listener, addr string) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			if client.(*tls.Conn).Handshake() != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				return
			}
			defer server.Close()
			go func() { _, _ = io.Copy(server, client); server.Close() }()
			_, _ = io.Copy(client, server)
		}()
	}
}

// TestSMPPPage parses the examples of docs/smpp.md.
func TestSMPPPage(t *testing.T) {
	t.Parallel()
	blocks := strings.Split(e2e.RepositoryFile(t, "docs/smpp.md"), "```yaml\n")
	for i, block := range blocks[1:] {
		example, _, _ := strings.Cut(block, "```")
		if _, err := config.Parse([]byte(example), nil); err != nil {
			t.Errorf("example %d: %v", i+1, err)
		}
	}
	relaytest.Equal(t, "the number of examples", len(blocks)-1, 4)
	c, err := config.Parse([]byte(e2e.CodeBlock(t, "docs/smpp.md", "yaml")), nil)
	relaytest.NoError(t, err)
	if len(c.Carriers) != 2 {
		t.Fatalf("the example has %d carriers, want 2", len(c.Carriers))
	}
	relaytest.Equal(t, "the bind of the second carrier", c.Carriers[1].Bind, "receiver")
	relaytest.Equal(t, "the alphabet of the first carrier", c.Carriers[0].Alphabet, "gsm7")
}
