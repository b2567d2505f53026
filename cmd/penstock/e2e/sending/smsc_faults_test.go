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

// rawPDU is a PDU in hex.
func rawPDU(command, sequence uint32, body string) string {
	body = strings.ReplaceAll(body, " ", "")
	return fmt.Sprintf("%08x%08x00000000%08x%s", 16+len(body)/2, command, sequence, body)
}

// deliverBody is the body of a deliver_sm in hex.
func deliverBody(to string, class, coding byte, text string) string {
	return fmt.Sprintf("00 0101%s00 0101%s00 %02x0000 0000 0000 %02x00 %02x%x",
		hex.EncodeToString([]byte("447700900123")), hex.EncodeToString([]byte(to)), class, coding, len(text), text)
}

// TestSMSCFaults has an SMSC send what is not as it should be.
func TestSMSCFaults(t *testing.T) {
	t.Parallel()
	peer, k := e2e.StartSMSC(t), newKannelSink(t)
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.SMSCInventory(k.url))
	g.Configure("carriers:\n" + peer.CarrierConfig("one"))
	g.Spawn()
	peer.Await("it is bound", func(e e2e.SMSCEvent) bool { return e.Bound == "bind_transceiver" && e.SystemID == "penstock" })
	answers := func(sequence uint32, answer string, status int) {
		t.Helper()
		got := peer.Await("its answer", func(e e2e.SMSCEvent) bool { return e.Answer != "" && e.Sequence == sequence })
		if got.Answer != answer || *got.Status != status {
			t.Errorf("got %s with 0x%02X, want %s with 0x%02X", got.Answer, *got.Status, answer, status)
		}
	}
	t.Run("PDUs that cannot be read are answered and kept, and the bind stays up", func(t *testing.T) {
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
			answers(uint32(0x7000+i), tc.answer, tc.status)
			relaytest.Eventually(t, "it is quarantined", func() (any, bool) {
				set := g.Events("kind=sms&state=quarantined&source=smpp&device=smpp/one")
				return set, len(set) == i+1
			})
			e := g.Events("kind=sms&state=quarantined")[0]
			relaytest.Equal(t, "the reason of the event", e.Reason, tc.reason)
			if e.Raw != tc.raw && e.Raw != rawText(t, tc.raw) {
				t.Errorf("the event shows %q, want %q", e.Raw, tc.raw)
			}
		}
		peer.SendRaw(rawPDU(5, 0x7010, deliverBody("447800000001", 0, 0, "after all")))
		answers(0x7010, "deliver_sm_resp", 0)
		k.receives(t, "/sms", 1, "m")
		if n := peer.BindCount(); n != 1 {
			t.Errorf("it was bound %d times", n)
		}
	})
	t.Run("a receipt is kept as an event under what it says", func(t *testing.T) {
		peer.SendRaw(rawPDU(5, 0x7020, deliverBody("447800000001", 4, 0, "id:77 sub:001 dlvrd:001 stat:DELIVRD err:000")))
		answers(0x7020, "deliver_sm_resp", 0)
		relaytest.Eventually(t, "the receipt", func() (any, bool) {
			set := g.Events("kind=receipt")
			return set, len(set) == 1 && set[0].State == "unrouted" && set[0].Source == "smpp" &&
				set[0].Reason == `receipt delivered: unknown message "77 or 4d or 119" of carrier one`
		})
	})
	t.Run("a message to no relay is unrouted", func(t *testing.T) {
		peer.SendRaw(rawPDU(5, 0x7030, deliverBody("33600000001", 0, 0, "nobody's")))
		answers(0x7030, "deliver_sm_resp", 0)
		relaytest.Eventually(t, "the event", func() (any, bool) {
			set := g.Events("kind=sms&state=unrouted&q=33600000001")
			return set, len(set) == 1
		})
	})
	t.Run("text in another alphabet is replayed once that is configured", func(t *testing.T) {
		peer.SendRaw(rawPDU(5, 0x7040, deliverBody("447800000002", 0, 0, "caf\xe9")))
		answers(0x7040, "deliver_sm_resp", 0)
		relaytest.Eventually(t, "it is quarantined", func() (any, bool) {
			set := g.Events("kind=sms&state=quarantined&q=above")
			return set, len(set) == 1 && set[0].Reason == "smpp: short_message in the default alphabet of one: gsm7: offset 3: octet above 0x7F"
		})
		g.Terminate()
		g.Configure("carriers:\n" + peer.CarrierConfig("one", "alphabet: latin1"))
		g.Spawn()
		g.Admin().Post("/admin/events/replay", `{"state":"quarantined","q":"above"}`).Mentions(t, 200, `"count":1,`)
		k.receives(t, "/sms", 2, "m")
		if got := k.seen("/sms", "m", "d"); got["café|447800000002"] != 1 {
			t.Errorf("got %v", got)
		}
	})
}

// rawText is a PDU as an event shows it that happens to be text.
func rawText(t *testing.T, raw string) string {
	t.Helper()
	b, err := hex.DecodeString(raw)
	relaytest.NoError(t, err)
	return string(b)
}

// TestReceiptsDoNotNeedRedis has Redis hang: the session stays, and a receipt is answered and
// processed.
func TestReceiptsDoNotNeedRedis(t *testing.T) {
	t.Parallel()
	s := *e2e.RealSite(t)
	s.Redis = redistest.Start(t)
	peer, k := e2e.StartSMSC(t), newKannelSink(t)
	g := e2e.NewGateway(t, &s, e2e.SMSCInventory(k.url))
	g.Configure("carriers:\n" + peer.CarrierConfig("one", "enquire_link: 1s"))
	g.Run()
	peer.Await("it is bound", func(e e2e.SMSCEvent) bool { return e.Bound != "" })
	resume := s.Redis.Pause()
	defer resume()
	peer.SendRaw(rawPDU(5, 0x7001, deliverBody("447800000001", 4, 0, "id:77 sub:001 dlvrd:001 submit date:2611200800 done date:2611200801 stat:DELIVRD err:000 text:")))
	answer := peer.Await("its answer", func(e e2e.SMSCEvent) bool { return e.Answer != "" && e.Sequence == 0x7001 })
	relaytest.Equal(t, "the answer", fmt.Sprint(answer.Answer, " ", *answer.Status), "deliver_sm_resp 0")
	relaytest.Eventually(t, "the receipt was processed", func() (any, bool) {
		set := g.Events("kind=receipt&state=unrouted")
		return set, len(set) == 1 && strings.Contains(set[0].Reason, "unknown message")
	})
	peer.Await("our enquire_link", func(e e2e.SMSCEvent) bool { return e.Asked })
	relaytest.Equal(t, "the binds", peer.BindCount(), 1)
}

// TestSMSCJournalFull fills the journal: the SMSC is told to keep what is left,
// and once there is room again everything arrives, once.
func TestSMSCJournalFull(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	peer, k := e2e.StartSMSC(t), newKannelSink(t)
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.SMSCInventory(k.url), "PENSTOCK_DATABASE_URL="+server.NewDatabase(t), "PENSTOCK_JOURNAL_MAX_BYTES=1MiB")
	g.Configure("carriers:\n" + peer.CarrierConfig("one"))
	g.Run()
	server.Kill()
	var all []e2e.SMSCMessage
	var want []string
	for i := range 100 {
		m := e2e.SMSCMessage{From: "447700900123", To: fmt.Sprintf("4478%08d", i), Form: "payload", Text: fmt.Sprint(i, strings.Repeat(" full", 3000))}
		all, want = append(all, m), append(want, m.Text+"|"+m.From+"|"+m.To)
	}
	peer.Deliver(all)
	peer.Await("the SMSC gets the status to keep a message", func(e e2e.SMSCEvent) bool { return e.Status != nil && *e.Status == 0x64 })
	relaytest.Eventually(t, "the journal is named as what is missing", func() (any, bool) {
		status, r := g.Ready()
		return r, status == 503 && r.Backends["journal sms"].Status == "down" && r.Backends["carrier one"].Status == "ok"
	})
	server.Start()
	end := peer.AwaitAnswers()
	k.receives(t, "/sms", len(want), "m", "o", "d")
	relaytest.NoError(t, g.Stop())
	onceEach(t, k.seen("/sms", "m", "o", "d"), want)
	if end.Refused == 0 || end.Answered < len(want) {
		t.Errorf("the gateway refused %d messages and answered %d, want some and at least %d", end.Refused, end.Answered, len(want))
	}
}

// TestSMSCRefusesTheBind has the carrier not know us.
func TestSMSCRefusesTheBind(t *testing.T) {
	t.Parallel()
	peer := e2e.StartSMSC(t, "password=other")
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.SMSCInventory("http://127.0.0.1:9"))
	g.Configure("carriers:\n" + peer.CarrierConfig("one"))
	g.Run()
	relaytest.Eventually(t, "the reason is shown", func() (any, bool) {
		status, r := g.Ready()
		b := r.Backends["carrier one"]
		return r, status == 200 && b.Status == "down" && b.Note == "smpp" && strings.HasPrefix(b.Error, "waiting: bind: the SMSC refused the bind with 0x0E, ")
	})
	if strings.Contains(g.Logs.String(), "secret") {
		t.Error("the log holds the password")
	}
}

// TestSMSCOverTLS has the SMSC behind TLS, with an authority of its own.
func TestSMSCOverTLS(t *testing.T) {
	t.Parallel()
	peer, k := e2e.StartSMSC(t), newKannelSink(t)
	front := httptest.NewUnstartedServer(nil) // for its certificate
	front.StartTLS()
	defer front.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	relaytest.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), 0o600))
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: front.TLS.Certificates})
	relaytest.NoError(t, err)
	defer l.Close()
	go relayBytes(l, fmt.Sprint("127.0.0.1:", peer.Port))
	peer.Port = l.Addr().(*net.TCPAddr).Port

	g := e2e.NewGateway(t, e2e.Embedded(), e2e.SMSCInventory(k.url))
	g.Configure("carriers:\n" + peer.CarrierConfig("one", "tls: tls", "ca_file: "+file) + peer.CarrierConfig("stranger", "tls: tls"))
	g.Run()
	all, want := smscThousands(100)
	peer.Deliver(all)
	peer.AwaitAnswers()
	k.receives(t, "/sms", len(want), "m", "o", "d")
	onceEach(t, k.seen("/sms", "m", "o", "d"), want)
	relaytest.Eventually(t, "a certificate that nobody vouches for is refused", func() (any, bool) {
		_, r := g.Ready()
		return r, strings.Contains(r.Backends["carrier stranger"].Error, "certificate") && r.Backends["carrier one"].Status == "ok"
	})
}

// relayBytes copies both ways between who connects and an address.
func relayBytes(l net.Listener, addr string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			if from.(*tls.Conn).Handshake() != nil {
				return
			}
			to, err := net.Dial("tcp", addr)
			if err != nil {
				return
			}
			defer to.Close()
			go func() { _, _ = io.Copy(to, from); to.Close() }()
			_, _ = io.Copy(from, to)
		}()
	}
}

// TestSMPPPage checks the examples of docs/smpp.md.
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
