package sending

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// smscStore stores the accepted parts of several SMSC processes and the messages that they deliver.
// Kills of these processes do not affect the store.
type smscStore struct {
	t    *testing.T
	port int

	mu               sync.Mutex
	partCount        int            // number of submitted parts, used for their ids
	submissionCounts map[string]int // number of submissions of a part, by number and text
	parts            map[string]int // submitted parts by number
	queue            []smscItem
	repeatCount      int // deliveries that were not answered
	flushCount       int // SMSCs that have reported all submissions
}

// smscItem is a deliver_sm.
type smscItem struct {
	Item      int    `json:"item"`
	From      string `json:"from"`
	To        string `json:"to"`
	Class     int    `json:"class"`
	Text      string `json:"text"` // hex
	Reference int    `json:"reference"`
}

// smscQuestion is a line that an SMSC sends.
type smscQuestion struct {
	Question, Item, Reference int
	Op, From, To, Text        string
}

// smscAnswer is a line that the store sends to an SMSC.
type smscAnswer struct {
	Question int        `json:"question"`
	ID       string     `json:"id,omitempty"`
	Items    []smscItem `json:"items,omitempty"`
}

func newSMSCStore(t *testing.T) *smscStore {
	t.Helper()
	l := relaytest.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	s := &smscStore{t: t, port: l.Addr().(*net.TCPAddr).Port, submissionCounts: make(map[string]int), parts: make(map[string]int)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

// serve answers the questions of an SMSC. When the SMSC exits, serve queues its unanswered deliveries
// again.
func (s *smscStore) serve(conn net.Conn) {
	defer conn.Close()
	unanswered := make(map[int]smscItem)
	answers := json.NewEncoder(conn)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var q smscQuestion
		if json.Unmarshal(lines.Bytes(), &q) != nil {
			break // the SMSC was killed within a line
		}
		s.mu.Lock()
		answer := s.handle(q, unanswered)
		s.mu.Unlock()
		if q.Question > 0 && answers.Encode(answer) != nil {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range unanswered {
		s.repeatCount++
		s.queue = append(s.queue, item)
	}
}

func (s *smscStore) handle(q smscQuestion, unanswered map[int]smscItem) smscAnswer {
	answer := smscAnswer{Question: q.Question}
	switch q.Op {
	case "take":
		s.partCount++
		answer.ID = fmt.Sprint("S", s.partCount)
		s.submissionCounts[q.To+" "+q.Text]++
		s.parts[q.To]++
		text := fmt.Sprintf("id:%s sub:001 dlvrd:001 submit date:2611271200 done date:2611271201 stat:DELIVRD err:000 text:", answer.ID)
		s.queue = append(s.queue, smscItem{Item: 1_000_000 + s.partCount, From: q.To, To: q.From, Class: 4, Text: hex.EncodeToString([]byte(text)), Reference: q.Reference})
	case "next":
		n := min(10, len(s.queue))
		answer.Items = append(answer.Items, s.queue[:n]...)
		s.queue = s.queue[n:]
		for _, item := range answer.Items {
			unanswered[item.Item] = item
		}
	case "done":
		delete(unanswered, q.Item)
	case "back":
		s.repeatCount++
		s.queue = append(s.queue, unanswered[q.Item])
		delete(unanswered, q.Item)
	case "flush":
		s.flushCount++
	}
	return answer
}

// add queues a deliver_sm.
func (s *smscStore) add(item smscItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, item)
}

// submitted returns the number of submitted parts for a phone number.
func (s *smscStore) submitted(number string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[number]
}

// flushes returns the number of SMSCs that have reported all submissions.
func (s *smscStore) flushes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushCount
}

// sharedSMSC is an SMSC process that shares a store.
type sharedSMSC struct {
	t     *testing.T
	store *smscStore
	port  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

func newSharedSMSC(t *testing.T, store *smscStore) *sharedSMSC {
	t.Helper()
	_, port, _ := strings.Cut(porttest.Address(t), ":")
	s := &sharedSMSC{t: t, store: store, port: port}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *sharedSMSC) start() {
	s.t.Helper()
	modules := relaytest.Must(filepath.Abs(filepath.Join(e2e.Root(s.t), ".tools", "node", "node_modules")))(s.t)
	s.cmd = exec.Command("node", e2e.File(s.t, "smscs.js"), "port="+s.port, fmt.Sprint("store=", s.store.port))
	s.cmd.Env, s.cmd.Stderr = append(os.Environ(), "NODE_PATH="+modules), os.Stderr
	s.stdin = relaytest.Must(s.cmd.StdinPipe())(s.t)
	relaytest.NoError(s.t, s.cmd.Start())
}

func (s *sharedSMSC) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// dropSession makes the SMSC close a connection of an ESME.
func (s *sharedSMSC) dropSession() { _, _ = io.WriteString(s.stdin, "drop\n") }

// TestBindsAndSMSCsAreKilled sends and receives over four transceivers at two SMSCs, and over a
// transmitter and a receiver at a third SMSC, while SMSCs and connections are killed.
func TestBindsAndSMSCsAreKilled(t *testing.T) {
	t.Parallel()
	orders := e2e.Rounds(t, "PENSTOCK_TEST_MESSAGES", 100, 1_000)
	random := e2e.Random(t)
	stores := []*smscStore{newSMSCStore(t), newSMSCStore(t)}
	smscs := []*sharedSMSC{newSharedSMSC(t, stores[0]), newSharedSMSC(t, stores[0]), newSharedSMSC(t, stores[1])}
	inbound, reports := newKannelSink(t), e2e.NewSink(t, nil)
	g := e2e.NewGateway(t, e2e.Embedded(), fmt.Sprintf(`accounts: [{name: acme, credit: 100000, tokens: [{token: acme-token-0123456, scopes: [messaging, carrier]}],
  relays: {geo: [{id: all, prefix: "4478", action: http_get, parameters: ["%s/sms?m=%%m&o=%%o&d=%%d&u=%%u&i=%%i"]}]}}]`, inbound.url))
	bind := func(smsc int, kind string) string {
		return fmt.Sprintf("{addr: '127.0.0.1:%s', bind: %s}", smscs[smsc].port, kind)
	}
	const settings = "type: smpp, system_id: penstock, password: secret, enquire_link: 1s, answer_timeout: 5s"
	g.Configure(fmt.Sprintf("carriers:\n  - {name: pair, %s, binds: [%s, %s, %s, %s]}\n  - {name: halves, %s, prefixes: ['44779'], binds: [%s, %s]}\n", settings,
		bind(0, "transceiver"), bind(0, "transceiver"), bind(1, "transceiver"), bind(1, "transceiver"), settings, bind(2, "transmitter"), bind(2, "receiver")))
	g.Run()

	// 1. The SMSCs deliver texts of two parts.
	var wantInbound []string
	for i := range 2 * orders {
		number := fmt.Sprintf("4478%08d", i)
		text := fmt.Sprintf("%06d", i) + strings.Repeat("x", 147) + " and the second half"
		wantInbound = append(wantInbound, text+"|447700900123|"+number)
		for part, partText := range []string{text[:153], text[153:]} {
			udh := fmt.Sprintf("050003%02x02%02x", i%256, part+1)
			stores[i%2].add(smscItem{Item: 2*i + part + 1, From: "447700900123", To: number, Class: 0x40, Text: udh + hex.EncodeToString([]byte(partText))})
		}
	}

	// 2. SMSCs and connections are killed until every message is ordered.
	allOrdered, killsEnded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(killsEnded)
		for kills := 0; ; kills++ {
			select {
			case <-allOrdered:
				if kills > 10 {
					return
				}
			default:
			}
			e2e.SleepRandomly(random, 300*time.Millisecond)
			smsc := smscs[random.IntN(len(smscs))]
			if kills%4 == 0 {
				smsc.kill()
				e2e.SleepRandomly(random, 500*time.Millisecond)
				smsc.start()
			} else {
				smsc.dropSession()
			}
		}
	}()
	acme := g.XAuth("acme-token-0123456")
	var numbers []string
	for i := range orders {
		var order []string
		for n := range 10 {
			order = append(order, fmt.Sprintf("447%d%06d00", 70+9*(n%2), 10*i+n))
		}
		acme.SendMessages(e2e.SendBody(t, reports.URL, nil, order...))
		numbers = append(numbers, order...)
	}
	close(allOrdered)
	<-killsEnded

	// 3. Like an operator, the test resends unknown parts that no SMSC has accepted.
	for _, smsc := range smscs {
		_, _ = io.WriteString(smsc.stdin, "flush\n")
	}
	relaytest.Eventually(t, "the SMSCs have reported all submissions", func() (any, bool) {
		flushCount := stores[0].flushes() + stores[1].flushes()
		return flushCount, flushCount == len(smscs)
	})
	resent := make(map[string]bool)
	var want []string
	for _, number := range numbers {
		want = append(want, number+":8", number+":1")
	}
	relaytest.Eventually(t, "every message is reported", func() (any, bool) {
		var list struct {
			Data []struct {
				ID          json.Number
				Destination string
			}
		}
		g.Admin().Get("/admin/messages?account=1&state=unknown&limit=1000").Decode(t, &list)
		for _, m := range list.Data {
			if stores[0].submitted(m.Destination)+stores[1].submitted(m.Destination) == 0 && !resent[m.Destination] {
				resent[m.Destination] = true
				g.Admin().Post("/admin/messages/resend", fmt.Sprintf(`{"account":1,"ids":["%s"]}`, m.ID)).Mentions(t, 200)
			}
		}
		got := len(reports.Requests("/dlr"))
		return fmt.Sprint(got, " of ", len(want), " reports, ", len(resent), " resent"), got >= len(want)
	})
	e2e.AwaitReports(t, reports, want...)
	inbound.awaitRequests(t, "/sms", len(wantInbound), "m", "o", "d")
	g.AwaitProcessed()
	m := e2e.Metrics(t, g.WithToken("").Get("/metrics").Body)
	relaytest.NoError(t, g.Stop())

	parts, repeatCount := 0, 0
	for _, store := range stores {
		for part, n := range store.submissionCounts {
			parts++
			if n > 1 {
				t.Errorf("submissions of %s = %d, want 1", part, n)
			}
		}
		repeatCount += store.repeatCount
	}
	relaytest.Equal(t, "the number of parts at the SMSCs", parts, len(numbers))
	got, missing := inbound.countBy("/sms", "m", "o", "d"), 0
	for _, text := range wantInbound {
		if got[text] == 0 {
			missing++
		}
	}
	if missing > 0 || len(got) != len(wantInbound) {
		t.Errorf("%d inbound messages are missing; %d different messages arrived, want %d", missing, len(got), len(wantInbound))
	}
	binds := 0.0
	for name, n := range m {
		if strings.HasPrefix(name, "penstock_carrier_binds_total") {
			binds += n
		}
	}
	t.Logf("%d parts, %d resent, %v binds, %d deliveries repeated", parts, len(resent), binds, repeatCount)
}
