package smpp

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linxGnu/gosmpp/pdu"

	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/delivery/carrier"
)

var _ carrier.Carrier = (*Client)(nil)

const (
	submitSM     = 0x00000004
	submitSMResp = 0x80000004
)

// told collects what a client says of submissions.
type told struct {
	mu  sync.Mutex
	all map[string][]carrier.Outcome
}

func (o *told) of(id string) func(carrier.Outcome) {
	return func(out carrier.Outcome) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.all == nil {
			o.all = make(map[string][]carrier.Outcome)
		}
		o.all[id] = append(o.all[id], out)
	}
}

// says waits for the n-th outcome of a submission.
func (o *told) says(t *testing.T, id string, n int) (out carrier.Outcome) {
	t.Helper()
	eventually(t, fmt.Sprintf("outcome %d of %s", n, id), func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.all[id]) < n {
			return false
		}
		out = o.all[id][n-1]
		return true
	})
	return out
}

func text(id, s string) carrier.Submission {
	return carrier.Submission{ID: id, From: "447700900123", To: "447800000001", Coding: 7, Data: []byte(s), Text: s}
}

// ready waits until a client may submit.
func ready(t *testing.T, c *Client) {
	t.Helper()
	eventually(t, "the client is ready", c.Ready)
}

func TestAMessageAsTheSMSCSeesIt(t *testing.T) {
	long := strings.Repeat("x", 255)
	for name, tc := range map[string]struct {
		change   func(*carrier.Submission)
		alphabet smpp.Alphabet
		want     string // source, destination, classes, coding, text
	}{
		"a text":                      {func(*carrier.Submission) {}, "", "1/1/447700900123 1/1/447800000001 00 00 0 1 00 hello"},
		"from a name":                 {func(s *carrier.Submission) { s.From = "Example" }, "", "5/0/Example 1/1/447800000001 00 00 0 1 00 hello"},
		"from a name with umlauts":    {func(s *carrier.Submission) { s.From = "ÄÖÜäöüñÑéàß" }, "", "5/0/\x5b\x5c\x5e\x7b\x7c\x7e\x7d\x5d\x05\x7f\x1e 1/1/447800000001 00 00 0 1 00 hello"},
		"from a name in Latin-1":      {func(s *carrier.Submission) { s.From = "Käse" }, smpp.AlphabetLatin1, "5/0/K\xe4se 1/1/447800000001 00 00 0 1 00 hello"},
		"from a short code":           {func(s *carrier.Submission) { s.From = "66777" }, "", "0/0/66777 1/1/447800000001 00 00 0 1 00 hello"},
		"from nobody":                 {func(s *carrier.Submission) { s.From = "" }, "", "0/0/ 1/1/447800000001 00 00 0 1 00 hello"},
		"flash":                       {func(s *carrier.Submission) { s.Flash = true }, "", "1/1/447700900123 1/1/447800000001 00 00 0 1 10 hello"},
		"flash in UCS-2":              {func(s *carrier.Submission) { s.Flash, s.Coding, s.Data = true, 16, []byte("\x00A") }, "", "1/1/447700900123 1/1/447800000001 00 00 0 1 18 \x00A"},
		"UCS-2":                       {func(s *carrier.Submission) { s.Coding, s.Data = 16, []byte("\x04\x1f") }, "", "1/1/447700900123 1/1/447800000001 00 00 0 1 08 \x04\x1f"},
		"octets":                      {func(s *carrier.Submission) { s.Coding, s.Data = 8, []byte{0, 255} }, "", "1/1/447700900123 1/1/447800000001 00 00 0 1 04 \x00\xff"},
		"that replaces":               {func(s *carrier.Submission) { s.Replace = true }, "", "1/1/447700900123 1/1/447800000001 00 41 1 1 00 hello"},
		"a part":                      {func(s *carrier.Submission) { s.UDH = []byte{5, 0, 3, 42, 2, 1} }, "", "1/1/447700900123 1/1/447800000001 40 00 0 1 00 \x05\x00\x03\x2a\x02\x01hello"},
		"in a packed alphabet":        {func(*carrier.Submission) {}, smpp.AlphabetPacked, "1/1/447700900123 1/1/447800000001 00 00 0 1 00 \xe8\x32\x9b\xfd\x06"},
		"in Latin-1":                  {func(s *carrier.Submission) { s.Text, s.Data = "é@", []byte{5, 0} }, smpp.AlphabetLatin1, "1/1/447700900123 1/1/447800000001 00 00 0 1 00 \xe9@"},
		"what Latin-1 cannot write":   {func(s *carrier.Submission) { s.Text, s.Data = "5€", []byte{'5', 0x1b, 0x65} }, smpp.AlphabetLatin1, "1/1/447700900123 1/1/447800000001 00 00 0 1 08 \x005\x20\xac"},
		"more than short_message has": {func(s *carrier.Submission) { s.Data = []byte(long) }, "", "1/1/447700900123 1/1/447800000001 00 00 0 1 00 [" + long + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSMSC(t)
			c, _ := start(t, s, &log{}, func(o *Options) { o.Alphabet = tc.alphabet })
			p := s.bound()
			ready(t, c)
			m := text("7-1001-0", "hello")
			tc.change(&m)
			var o told
			c.Submit(t.Context(), m, o.of("a"))
			h := p.hear()
			if h.command != submitSM {
				t.Fatalf("the command 0x%08X came", h.command)
			}
			if got := shown(t, h); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
			p.say(submitSMResp, 0, h.sequence, hex.EncodeToString([]byte("M-1\x00")))
			if out := o.says(t, "a", 1); out.Verdict != carrier.Accepted || out.ID != "M-1" {
				t.Errorf("outcome %+v", out)
			}
		})
	}
}

// shown is a submit_sm as the library that others use reads it.
func shown(t *testing.T, h heard) string {
	t.Helper()
	raw := hex.EncodeToString(h.body)
	read, err := pdu.Parse(bytes.NewReader(frameOf(t, h.command, h.status, h.sequence, raw)))
	if err != nil {
		t.Fatal(err)
	}
	p := read.(*pdu.SubmitSM)
	d, err := smpp.ParseDelivery(frameOf(t, deliverSM, 0, 1, raw)) // which has the same fields
	if err != nil {
		t.Fatal(err)
	}
	said := string(d.ShortMessage)
	if payload, ok := p.OptionalParameters[pdu.TagMessagePayload]; ok {
		said = "[" + string(payload.Data) + "]"
	}
	if ref := p.OptionalParameters[pdu.TagUserMessageReference]; len(ref.Data) != 2 {
		t.Errorf("user_message_reference %x", ref.Data)
	}
	return fmt.Sprintf("%d/%d/%s %d/%d/%s %02x %02x %d %d %02x %s", p.SourceAddr.Ton(), p.SourceAddr.Npi(), p.SourceAddr.Address(),
		p.DestAddr.Ton(), p.DestAddr.Npi(), p.DestAddr.Address(), p.EsmClass, p.ProtocolID, p.ReplaceIfPresentFlag, p.RegisteredDelivery, d.DataCoding, said)
}

func TestWhatTheSMSCAnswersToAMessage(t *testing.T) {
	s := newSMSC(t)
	c, _ := start(t, s, &log{})
	p := s.bound()
	ready(t, c)
	for name, tc := range map[string]struct {
		command, status uint32
		body            string
		verdict         carrier.Verdict
		throttled       bool
		id, reason      string
	}{
		"it takes it":                     {submitSMResp, 0, "616200", carrier.Accepted, false, "ab", ""},
		"without an id":                   {submitSMResp, 0, "00", carrier.Accepted, false, "", ""},
		"without a body":                  {submitSMResp, 0, "", carrier.Accepted, false, "", ""},
		"with an id without an end":       {submitSMResp, 0, "6162", carrier.Accepted, false, "", "without an id that can be read: smpp: message_id: offset 16: does not end within 65 octets"},
		"throttled":                       {submitSMResp, 0x58, "", carrier.Later, true, "", "the SMSC answered with 0x58, Throttling error (ESME has exceeded allowed message limits)"},
		"its queue is full":               {submitSMResp, 0x14, "00", carrier.Later, true, "", "the SMSC answered with 0x14, Message Queue Full"},
		"it has a fault of its own":       {submitSMResp, 0x08, "", carrier.Later, false, "", "the SMSC answered with 0x08, System Error"},
		"the bind may not send":           {submitSMResp, 0x04, "", carrier.Later, false, "", "the SMSC answered with 0x04, Incorrect BIND Status for given command"},
		"its application has":             {submitSMResp, 0x64, "", carrier.Later, false, "", "the SMSC answered with 0x64, ESME Receiver Temporary App Error Code"},
		"the number is none":              {submitSMResp, 0x0B, "", carrier.Rejected, false, "", "the SMSC answered with 0x0B, Invalid Dest Addr"},
		"a status of the carrier's own":   {submitSMResp, 0x400, "", carrier.Rejected, false, "", "the SMSC answered with 0x400, "},
		"it does not know submit_sm":      {nack, 3, "", carrier.Rejected, false, "", "the SMSC answered with 0x03, Invalid Command ID"},
		"it says nack, and means nothing": {nack, 0, "", carrier.Rejected, false, "", "the SMSC answered with the command 0x80000000"},
	} {
		t.Run(name, func(t *testing.T) {
			var o told
			c.Submit(t.Context(), text("1-2-0", "hello"), o.of("a"))
			h := p.hear()
			p.say(tc.command, tc.status, h.sequence, tc.body)
			out := o.says(t, "a", 1)
			if out.Verdict != tc.verdict || out.Throttled != tc.throttled || out.ID != tc.id || !strings.HasPrefix(out.Reason, tc.reason) || tc.reason == "" && out.Reason != "" {
				t.Errorf("got %+v", out)
			}
		})
	}
	p.say(submitSMResp, 0, 0x7000, "616200") // nobody asked
	p.say(enquire, 0, 9, "")
	p.answers(enquireResp, 0, 9)
}

func TestWhatCannotBeWrittenIsRejected(t *testing.T) {
	s := newSMSC(t)
	c, _ := start(t, s, &log{}, func(o *Options) { o.Alphabet = smpp.AlphabetLatin1 })
	p := s.bound()
	ready(t, c)
	for name, m := range map[string]carrier.Submission{
		"what the alphabet lacks and does not fit in UCS-2": {To: "447800000001", Coding: 7, Text: strings.Repeat("Ω", 71)},
		"a coding that there is not":                        {To: "447800000001", Coding: 9},
		"a number that is too long":                         {To: strings.Repeat("4", 22), Coding: 8},
		"a sender that is too long":                         {To: "447800000001", From: strings.Repeat("4", 22), Coding: 8},
	} {
		t.Run(name, func(t *testing.T) {
			var o told
			c.Submit(t.Context(), m, o.of("a"))
			if out := o.says(t, "a", 1); out.Verdict != carrier.Rejected || !out.Unsent || out.Reason == "" {
				t.Errorf("outcome %+v", out)
			}
		})
	}
	p.say(enquire, 0, 9, "")
	p.answers(enquireResp, 0, 9) // and nothing before it
}

func TestWhatASourceAddressCanHave(t *testing.T) {
	for alphabet, takes := range map[smpp.Alphabet]map[string]bool{
		smpp.AlphabetGSM7:   {"My Shop": true, "A&B": true, "ÄÖÜ": true, "a@b": false, "€€€€€€€€€€€": false, "447700900123": true},
		smpp.AlphabetLatin1: {"My Shop": true, "a@b": true, "€": false, "ΔΦ": false},
	} {
		c, err := New(Options{Name: "one", Addr: "h:1", Alphabet: alphabet, Accept: func(context.Context, Arrival) (Wait, error) { return nil, nil }})
		if err != nil {
			t.Fatal(err)
		}
		for originator, want := range takes {
			if c.AcceptsOriginator(originator) != want {
				t.Errorf("%s: %q: %t", alphabet, originator, !want)
			}
		}
	}
}

func TestMessagesArePipelinedInOrder(t *testing.T) {
	s := newSMSC(t)
	c, _ := start(t, s, &log{})
	p := s.bound()
	ready(t, c)
	var o told
	const n = 500
	for i := range n {
		c.Submit(t.Context(), text(fmt.Sprint("1-2-", i), fmt.Sprint(i)), o.of(fmt.Sprint(i)))
	}
	var sequences []uint32
	for i := range n {
		h := p.hear() // without an answer to those before
		if want := fmt.Sprintf(" 00 %d", i); !strings.HasSuffix(shown(t, h), want) {
			t.Fatalf("%q came in place %d", shown(t, h), i)
		}
		sequences = append(sequences, h.sequence)
	}
	slices.Reverse(sequences) // answers may come in any order
	for i, sequence := range sequences {
		p.say(submitSMResp, 0, sequence, hex.EncodeToString(fmt.Appendf(nil, "M%d\x00", n-1-i)))
	}
	for i := range n {
		if out := o.says(t, fmt.Sprint(i), 1); out.ID != fmt.Sprint("M", i) {
			t.Fatalf("%d: %+v", i, out)
		}
	}
}

func TestAnAnswerThatIsLost(t *testing.T) {
	s := newSMSC(t)
	c, _ := start(t, s, &log{}, func(o *Options) { o.AnswerTimeout = time.Second })
	p := s.bound()
	ready(t, c)
	var o told
	c.Submit(t.Context(), text("1-2-0", "late"), o.of("late"))
	late := p.hear()
	if out := o.says(t, "late", 1); out.Verdict != carrier.Unknown || out.Reason != "the SMSC has not answered within 1s" {
		t.Errorf("no answer: %+v", out)
	}
	p.say(submitSMResp, 0, late.sequence, "616200")
	if out := o.says(t, "late", 2); out.Verdict != carrier.Accepted || out.ID != "ab" {
		t.Errorf("the answer that came late: %+v", out)
	}
	c.Submit(t.Context(), text("1-3-0", "cut"), o.of("cut"))
	p.hear()
	p.conn.Close()
	if out := o.says(t, "cut", 1); out.Verdict != carrier.Unknown {
		t.Errorf("cut off: %+v", out)
	}
	p = s.bound()
	ready(t, c)
	c.Submit(t.Context(), text("1-4-0", "again"), o.of("again"))
	p.say(submitSMResp, 0, p.hear().sequence, "616200")
	if out := o.says(t, "again", 1); out.Verdict != carrier.Accepted {
		t.Errorf("over the new bind: %+v", out)
	}
}

func TestWithoutABindAMessageWaits(t *testing.T) {
	s := newSMSC(t)
	c, stop := start(t, s, &log{}, func(o *Options) { o.Bind = Receiver })
	p := s.bound()
	eventually(t, "bound", func() bool { return c.Status().State == Bound })
	var o told
	c.Submit(t.Context(), text("1-2-0", "x"), o.of("a"))
	if out := o.says(t, "a", 1); out.Verdict != carrier.Later || !out.Throttled || c.Ready() {
		t.Errorf("over a receiver: %+v", out)
	}
	go func() { p.say(unbindResp, 0, p.hear().sequence, "") }()
	stop()
	c.Submit(t.Context(), text("1-2-0", "x"), o.of("b"))
	if out := o.says(t, "b", 1); out.Verdict != carrier.Later || !out.Throttled {
		t.Errorf("after the end: %+v", out)
	}
}

func TestATransmitterBinds(t *testing.T) {
	s := newSMSC(t)
	start(t, s, &log{}, func(o *Options) { o.Bind = Transmitter })
	if _, bind := s.accept(); bind.command != 2 {
		t.Errorf("the bind's command is 0x%08X", bind.command)
	}
}

func TestTheEndWaitsForAnswers(t *testing.T) {
	s := newSMSC(t)
	c, stop := start(t, s, &log{})
	p := s.bound()
	ready(t, c)
	var o told
	c.Submit(t.Context(), text("1-2-0", "x"), o.of("a"))
	h := p.hear()
	ended := make(chan struct{})
	go func() { defer close(ended); stop() }()
	eventually(t, "nothing more is taken", func() bool {
		var more told
		c.Submit(t.Context(), text("1-3-0", "y"), more.of("b"))
		more.mu.Lock()
		defer more.mu.Unlock()
		return len(more.all["b"]) == 1
	})
	p.say(submitSMResp, 0, h.sequence, "616200")
	for next := p.hear(); ; next = p.hear() {
		p.say(next.command|0x80000000, 0, next.sequence, "") // those that came before it took no more, too
		if next.command == unbind {
			break
		}
	}
	if out := o.says(t, "a", 1); out.Verdict != carrier.Accepted {
		t.Errorf("outcome %+v", out)
	}
	<-ended
}
