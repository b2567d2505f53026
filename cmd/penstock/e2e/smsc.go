package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// SMSC is an independent SMSC, the smpp library of npm, in a process of its own.
type SMSC struct {
	t      *testing.T
	Port   int
	stdin  io.WriteCloser
	mu     sync.Mutex
	events []SMSCEvent
}

// SMSCEvent is an event that the SMSC prints as a line of JSON.
type SMSCEvent struct {
	Listening                 int
	Bound                     string
	SystemID                  string `json:"system_id"`
	Answered, Refused, Broken int
	Status                    *int
	Done                      bool
	EnquireLink               bool `json:"asked"` // the gateway has sent an enquire_link
	EnquireLinkResp           bool `json:"alive"` // the gateway has answered an enquire_link
	Unbound, Closed, Excess   bool
	Unanswered                int `json:"open"` // PDUs without an answer at the unbind
	Answer                    string
	Sequence                  uint32

	// Fields of a message that the gateway submitted.
	Destination                      string `json:"submitted"`
	From, Text, Part                 string
	BindCommand                      string `json:"over"` // bind command of the session
	Coding, Class, Protocol, Replace int
}

// SMSCMessage is a message for the SMSC to deliver; testdata/smsc.js describes the fields.
type SMSCMessage struct {
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Coding int    `json:"coding"`
	Text   string `json:"text,omitempty"`
	Data   string `json:"data,omitempty"`
	Form   string `json:"form,omitempty"`
	Repeat string `json:"twice,omitempty"`
	Raw    string `json:"raw,omitempty"`
	End    bool   `json:"end,omitempty"`
}

// StartSMSC starts an SMSC. If Node.js or the library is missing, it fails the test, or skips the
// test if PENSTOCK_TEST_SKIP_REAL=1.
func StartSMSC(t *testing.T, flags ...string) *SMSC {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join(Root(t), ".tools", "node", "node_modules"))
	relaytest.NoError(t, err)
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "smpp"))
	}
	switch {
	case err == nil:
	case os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1":
		t.Skipf("skipped: %v, and PENSTOCK_TEST_SKIP_REAL=1", err)
	default:
		t.Fatalf("%v: deploy/test-deps.sh installs Node.js and the library (PENSTOCK_TEST_SKIP_REAL=1 skips)", err)
	}
	cmd := exec.Command(node, append([]string{File(t, "smsc.js")}, flags...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "NODE_PATH="+modules), os.Stderr
	stdin, err := cmd.StdinPipe()
	relaytest.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	relaytest.NoError(t, err)
	relaytest.NoError(t, cmd.Start())
	s := &SMSC{t: t, stdin: stdin}
	drained := make(chan struct{})
	go func() { defer close(drained); s.listen(stdout) }()
	t.Cleanup(func() { // the SMSC exits at the end of its input
		_ = stdin.Close()
		<-drained
		_ = cmd.Wait()
	})
	s.Port = s.Await("the SMSC listens", func(e SMSCEvent) bool { return e.Listening > 0 }).Listening
	return s
}

func (s *SMSC) listen(stdout io.Reader) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var e SMSCEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			s.t.Errorf("the SMSC printed %q, which is not valid JSON", lines.Text())
		}
		s.mu.Lock()
		s.events = append(s.events, e)
		s.mu.Unlock()
	}
}

// Events returns the events that the SMSC has printed so far.
func (s *SMSC) Events() []SMSCEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]SMSCEvent(nil), s.events...)
}

// Await waits for an event and returns it.
func (s *SMSC) Await(event string, matches func(SMSCEvent) bool) (found SMSCEvent) {
	s.t.Helper()
	relaytest.Eventually(s.t, "SMSC: "+event, func() (any, bool) {
		events := s.Events()
		for _, e := range events {
			if matches(e) {
				found = e
				return nil, true
			}
		}
		return events[max(0, len(events)-5):], false
	})
	return found
}

// BindCount returns the number of binds so far.
func (s *SMSC) BindCount() (n int) {
	for _, e := range s.Events() {
		if e.Bound != "" {
			n++
		}
	}
	return n
}

// Deliver makes the SMSC deliver messages.
func (s *SMSC) Deliver(messages []SMSCMessage) {
	s.t.Helper()
	w := bufio.NewWriter(s.stdin)
	for _, m := range messages {
		relaytest.NoError(s.t, json.NewEncoder(w).Encode(m))
	}
	relaytest.NoError(s.t, json.NewEncoder(w).Encode(SMSCMessage{End: true}))
	relaytest.NoError(s.t, w.Flush())
}

// SendRaw makes the SMSC send octets unchanged; raw is hex.
func (s *SMSC) SendRaw(raw string) {
	s.t.Helper()
	relaytest.NoError(s.t, json.NewEncoder(s.stdin).Encode(SMSCMessage{Raw: strings.ReplaceAll(raw, " ", "")}))
}

// AwaitAnswers waits until the gateway has answered every PDU of the SMSC.
func (s *SMSC) AwaitAnswers() SMSCEvent {
	s.t.Helper()
	return s.Await("every PDU is answered", func(e SMSCEvent) bool { return e.Done })
}

// CarrierConfig returns the configuration of a carrier with this SMSC, as YAML. settings are
// additional fields.
func (s *SMSC) CarrierConfig(name string, settings ...string) string {
	lines := append([]string{"type: smpp", "name: " + name, fmt.Sprintf("addr: 127.0.0.1:%d", s.Port), "system_id: penstock", "password: secret"}, settings...)
	return "  - {" + strings.Join(lines, ", ") + "}\n"
}

// BindsConfig returns the configuration of a carrier with several binds to this SMSC, as YAML.
// binds has the settings of each bind, without the address.
func (s *SMSC) BindsConfig(name string, binds ...string) string {
	var list []string
	for _, b := range binds {
		list = append(list, fmt.Sprintf("{addr: '127.0.0.1:%d', %s}", s.Port, b))
	}
	return fmt.Sprintf("  - {type: smpp, name: %s, system_id: penstock, password: secret, binds: [%s]}\n", name, strings.Join(list, ", "))
}

// SMSCInventory returns an inventory that relays messages to numbers with the prefix 4478 to a sink.
func SMSCInventory(sink string) string {
	return `accounts: [{name: acme, relays: {geo: [{id: all, prefix: "4478", action: http_get,
  parameters: ["` + sink + `/sms?m=%m&o=%o&d=%d&u=%u&i=%i"]}]}}]`
}
