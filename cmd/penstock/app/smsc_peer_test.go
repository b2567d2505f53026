package app

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
)

// smsc is an SMSC of other people's making: npm's smpp, in a process of its own.
type smsc struct {
	t     *testing.T
	port  int
	stdin io.WriteCloser
	mu    sync.Mutex
	told  []smscEvent
}

// smscEvent is what the SMSC prints.
type smscEvent struct {
	Listening                 int
	Bound                     string
	SystemID                  string `json:"system_id"`
	Answered, Refused, Broken int
	Status                    *int
	Done, Asked, Alive        bool
	Unbound, Closed           bool
	Open                      int
	Answer                    string
	Sequence                  uint32

	// Of a message that was submitted to it.
	Submitted, From, Text, Part      string
	Coding, Class, Protocol, Replace int
}

// smscMessage is what the SMSC is to deliver; testdata/smsc.js says how.
type smscMessage struct {
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Coding int    `json:"coding"`
	Text   string `json:"text,omitempty"`
	Data   string `json:"data,omitempty"`
	Form   string `json:"form,omitempty"`
	Twice  string `json:"twice,omitempty"`
	Raw    string `json:"raw,omitempty"`
	End    bool   `json:"end,omitempty"`
}

// startSMSC starts one. It fails the test where Node.js or the library is
// missing, or skips it when PENSTOCK_TEST_SKIP_REAL=1 says so.
func startSMSC(t *testing.T, flags ...string) *smsc {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join("..", "..", "..", ".tools", "node", "node_modules"))
	must(t, err)
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
	cmd := exec.Command(node, append([]string{filepath.Join("testdata", "smsc.js")}, flags...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "NODE_PATH="+modules), os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	s := &smsc{t: t, stdin: stdin}
	heard := make(chan struct{})
	go func() { defer close(heard); s.listen(stdout) }()
	t.Cleanup(func() { // the end of its input is its own
		_ = stdin.Close()
		<-heard
		_ = cmd.Wait()
	})
	s.port = s.await("it listens", func(e smscEvent) bool { return e.Listening > 0 }).Listening
	return s
}

func (s *smsc) listen(from io.Reader) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var e smscEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			s.t.Errorf("the SMSC said %q", lines.Text())
		}
		s.mu.Lock()
		s.told = append(s.told, e)
		s.mu.Unlock()
	}
}

func (s *smsc) all() []smscEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]smscEvent(nil), s.told...)
}

// await waits for an event and returns it.
func (s *smsc) await(what string, is func(smscEvent) bool) (found smscEvent) {
	s.t.Helper()
	eventually(s.t, "of the SMSC: "+what, func() (any, bool) {
		all := s.all()
		for _, e := range all {
			if is(e) {
				found = e
				return nil, true
			}
		}
		return all[max(0, len(all)-5):], false
	})
	return found
}

// binds counts those there have been.
func (s *smsc) binds() (n int) {
	for _, e := range s.all() {
		if e.Bound != "" {
			n++
		}
	}
	return n
}

// deliver has the SMSC deliver messages.
func (s *smsc) deliver(all []smscMessage) {
	s.t.Helper()
	w := bufio.NewWriter(s.stdin)
	for _, m := range all {
		must(s.t, json.NewEncoder(w).Encode(m))
	}
	must(s.t, json.NewEncoder(w).Encode(smscMessage{End: true}))
	must(s.t, w.Flush())
}

// say has the SMSC send octets, in hex, as they are.
func (s *smsc) say(raw string) {
	s.t.Helper()
	must(s.t, json.NewEncoder(s.stdin).Encode(smscMessage{Raw: strings.ReplaceAll(raw, " ", "")}))
}

// done waits until the SMSC has an answer to everything.
func (s *smsc) done() smscEvent {
	s.t.Helper()
	return s.await("everything is answered", func(e smscEvent) bool { return e.Done })
}

// carrier is the configuration of a carrier, as YAML. Settings are further
// lines.
func (s *smsc) carrier(name string, settings ...string) string {
	lines := append([]string{"type: smpp", "name: " + name, fmt.Sprintf("addr: 127.0.0.1:%d", s.port), "system_id: penstock", "password: secret"}, settings...)
	return "  - {" + strings.Join(lines, ", ") + "}\n"
}

// configure gives a gateway that has not been started a configuration file.
func (g *gateway) configure(text string) {
	g.t.Helper()
	g.file = filepath.Join(g.dir, "penstock.yaml")
	must(g.t, os.WriteFile(g.file, []byte(text), 0o600))
}

// smscInventory sends all that comes for 4478… to a sink.
func smscInventory(sink string) string {
	return `accounts: [{name: acme, relays: {geo: [{id: all, prefix: "4478", action: http_get,
  parameters: ["` + sink + `/sms?m=%m&o=%o&d=%d&u=%u&i=%i"]}]}}]`
}
