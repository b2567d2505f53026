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
	"github.com/penstock/penstock/relay/relaytest"
)

var _ carrier.Carrier = (*Client)(nil)

const (
	submitSM     = 0x00000004
	submitSMResp = 0x80000004
)

// outcomes collects the outcomes of submissions by id.
type outcomes struct {
	mu   sync.Mutex
	byID map[string][]carrier.Result
}

// add returns a function that adds an outcome.
func (o *outcomes) add(id string) func(carrier.Result) {
	return func(outcome carrier.Result) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.byID == nil {
			o.byID = make(map[string][]carrier.Result)
		}
		o.byID[id] = append(o.byID[id], outcome)
	}
}

// await waits for the n-th outcome of a submission.
func (o *outcomes) await(t *testing.T, id string, n int) (outcome carrier.Result) {
	t.Helper()
	relaytest.Eventually(t, fmt.Sprintf("outcome %d of %s", n, id), func() (any, bool) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.byID[id]) >= n {
			outcome = o.byID[id][n-1]
		}
		return o.byID[id], len(o.byID[id]) >= n
	})
	return outcome
}

func textMessage(id, s string) carrier.Submission {
	return carrier.Submission{ID: id, From: "447700900123", To: "447800000001", Coding: 7, Data: []byte(s), Text: s}
}

// awaitReady waits until a client may submit.
func awaitReady(t *testing.T, c *Client) {
	t.Helper()
	relaytest.Eventually(t, "the client is ready", func() (any, bool) { return c.Status(), c.Ready() })
}

func TestSubmitSMHasTheFieldsOfTheMessage(t *testing.T) {
	long := strings.Repeat("x", 255)
	for name, tc := range map[string]struct {
		change   func(*carrier.Submission)
		alphabet smpp.Alphabet
		want     string // as returned by formatSubmitSM
	}{
		"a text":                          {func(*carrier.Submission) {}, "", "1/1/447700900123 1/1/447800000001 00 00 0 1 00 hello"},
		"from a name":                     {func(s *carrier.Submission) { s.From = "Example" }, "", "5/0/Example 1/1/447800000001 00 00 0 1 00 hello"},
		"from a name with umlauts":        {func(s *carrier.Submission) { s.From = "ÄÖÜäöüñÑéàß" }, "", "5/0/\xc4\xd6\xdc\xe4\xf6\xfc\xf1\xd1\xe9\xe0\xdf 1/1/447800000001 00 00 0 1 00 hello"},
		"from a name in ASCII":            {func(s *carrier.Submission) { s.From = "GOOGLE_NOW" }, "", "5/0/GOOGLE_NOW 1/1/447800000001 00 00 0 1 00 hello"},
		"from a name with an @":           {func(s *carrier.Submission) { s.From = "a@b_$[{~|}]" }, smpp.AlphabetPacked, "5/0/a@b_$[{~|}] 1/1/447800000001 00 00 0 1 00 \xe8\x32\x9b\xfd\x06"},
		"from a name in Latin-1":          {func(s *carrier.Submission) { s.From = "Käse" }, smpp.AlphabetLatin1, "5/0/K\xe4se 1/1/447800000001 00 00 0 1 00 hello"},
		"from a short code":               {func(s *carrier.Submission) { s.From = "66777" }, "", "0/0/66777 1/1/447800000001 00 00 0 1 00 hello"},
		"without an originator":           {func(s *carrier.Submission) { s.From = "" }, "", "0/0/ 1/1/447800000001 00 00 0 1 00 hello"},
		"flash":                           {func(s *carrier.Submission) { s.Flash = true }, "", "1/1/447700900123 1/1/447800000001 00 00 0 1 10 hello"},
		"flash in UCS-2":                  {func(s *carrier.Submission) { s.Flash, s.Coding, s.Data = true, 16, []byte("\x00A") }, "", "1/1/447700900123 1/1/447800000001 00 00 0 1 18 \x00A"},
		"UCS-2":                           {func(s *carrier.Submission) { s.Coding, s.Data = 16, []byte("\x04\x1f") }, "", "1/1/447700900123 1/1/447800000001 00 00 0 1 08 \x04\x1f"},
		"octets":                          {func(s *carrier.Submission) { s.Coding, s.Data = 8, []byte{0, 255} }, "", "1/1/447700900123 1/1/447800000001 00 00 0 1 04 \x00\xff"},
		"a message that replaces another": {func(s *carrier.Submission) { s.Replace = true }, "", "1/1/447700900123 1/1/447800000001 00 41 1 1 00 hello"},
		"a part":                          {func(s *carrier.Submission) { s.UDH = []byte{5, 0, 3, 42, 2, 1} }, "", "1/1/447700900123 1/1/447800000001 40 00 0 1 00 \x05\x00\x03\x2a\x02\x01hello"},
		"text in a packed alphabet":       {func(*carrier.Submission) {}, smpp.AlphabetPacked, "1/1/447700900123 1/1/447800000001 00 00 0 1 00 \xe8\x32\x9b\xfd\x06"},
		"text in Latin-1":                 {func(s *carrier.Submission) { s.Text, s.Data = "é@", []byte{5, 0} }, smpp.AlphabetLatin1, "1/1/447700900123 1/1/447800000001 00 00 0 1 00 \xe9@"},
		"text beyond Latin-1":             {func(s *carrier.Submission) { s.Text, s.Data = "5€", []byte{'5', 0x1b, 0x65} }, smpp.AlphabetLatin1, "1/1/447700900123 1/1/447800000001 00 00 0 1 08 \x005\x20\xac"},
		"longer than short_message":       {func(s *carrier.Submission) { s.Data = []byte(long) }, "", "1/1/447700900123 1/1/447800000001 00 00 0 1 00 [" + long + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			c, p, _ := startBound(t, &store{}, func(o *Options) { o.Alphabet = tc.alphabet })
			awaitReady(t, c)
			m := textMessage("7-1001-0", "hello")
			tc.change(&m)
			var o outcomes
			c.Submit(t.Context(), m, o.add("a"))
			h := p.read()
			if h.command != submitSM {
				t.Fatalf("got the command 0x%08X, want submit_sm", h.command)
			}
			relaytest.Equal(t, "the submit_sm", formatSubmitSM(t, h), tc.want)
			p.send(submitSMResp, 0, h.sequence, hex.EncodeToString([]byte("M-1\x00")))
			relaytest.Equal(t, "the outcome", o.await(t, "a", 1), carrier.Result{Verdict: carrier.Accepted, ID: "M-1"})
		})
	}
}

// formatSubmitSM formats a submit_sm: source address, destination address, esm_class,
// protocol_id, replace_if_present_flag, registered_delivery, data_coding and text.
func formatSubmitSM(t *testing.T, h received) string {
	t.Helper()
	raw := hex.EncodeToString(h.body)
	p := relaytest.Must(pdu.Parse(bytes.NewReader(frameOf(t, h.command, h.status, h.sequence, raw))))(t).(*pdu.SubmitSM)
	d := relaytest.Must(smpp.ParseDelivery(frameOf(t, deliverSM, 0, 1, raw)))(t) // deliver_sm has the same fields
	text := string(d.ShortMessage)
	if payload, ok := p.OptionalParameters[pdu.TagMessagePayload]; ok {
		text = "[" + string(payload.Data) + "]"
	}
	if ref := p.OptionalParameters[pdu.TagUserMessageReference]; len(ref.Data) != 2 {
		t.Errorf("user_message_reference = %x, want two octets", ref.Data)
	}
	return fmt.Sprintf("%d/%d/%s %d/%d/%s %02x %02x %d %d %02x %s", p.SourceAddr.Ton(), p.SourceAddr.Npi(), p.SourceAddr.Address(),
		p.DestAddr.Ton(), p.DestAddr.Npi(), p.DestAddr.Address(), p.EsmClass, p.ProtocolID, p.ReplaceIfPresentFlag, p.RegisteredDelivery, d.DataCoding, text)
}

func TestResponsesAreConvertedToOutcomes(t *testing.T) {
	c, p, _ := startBound(t, &store{})
	awaitReady(t, c)
	for name, tc := range map[string]struct {
		command, status uint32
		body            string
		want            carrier.Result // Reason is a prefix
	}{
		"accepted":                            {submitSMResp, 0, "616200", carrier.Result{Verdict: carrier.Accepted, ID: "ab"}},
		"accepted without an id":              {submitSMResp, 0, "00", carrier.Result{Verdict: carrier.Accepted}},
		"accepted without a body":             {submitSMResp, 0, "", carrier.Result{Verdict: carrier.Accepted}},
		"accepted with an unterminated id":    {submitSMResp, 0, "6162", carrier.Result{Verdict: carrier.Accepted, Reason: "the response has no readable id: smpp: message_id: offset 16: does not end within 65 octets"}},
		"throttled":                           {submitSMResp, 0x58, "", carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "the SMSC answered with 0x58, Throttling error (ESME has exceeded allowed message limits)"}},
		"message queue full":                  {submitSMResp, 0x14, "00", carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "the SMSC answered with 0x14, Message Queue Full"}},
		"a system error":                      {submitSMResp, 0x08, "", carrier.Result{Verdict: carrier.RetryLater, Reason: "the SMSC answered with 0x08, System Error"}},
		"invalid bind status":                 {submitSMResp, 0x04, "", carrier.Result{Verdict: carrier.RetryLater, Reason: "the SMSC answered with 0x04, Incorrect BIND Status for given command"}},
		"a temporary application error":       {submitSMResp, 0x64, "", carrier.Result{Verdict: carrier.RetryLater, Reason: "the SMSC answered with 0x64, ESME Receiver Temporary App Error Code"}},
		"an invalid number":                   {submitSMResp, 0x0B, "", carrier.Result{Verdict: carrier.Rejected, Reason: "the SMSC answered with 0x0B, Invalid Dest Addr"}},
		"a vendor-specific status":            {submitSMResp, 0x400, "", carrier.Result{Verdict: carrier.Rejected, Reason: "the SMSC answered with 0x400, "}},
		"generic_nack for an unknown command": {nack, 3, "", carrier.Result{Verdict: carrier.Rejected, Reason: "the SMSC answered with 0x03, Invalid Command ID"}},
		"a generic_nack without an error":     {nack, 0, "", carrier.Result{Verdict: carrier.Rejected, Reason: "the SMSC answered with the command 0x80000000"}},
	} {
		t.Run(name, func(t *testing.T) {
			var o outcomes
			c.Submit(t.Context(), textMessage("1-2-0", "hello"), o.add("a"))
			h := p.read()
			p.send(tc.command, tc.status, h.sequence, tc.body)
			got := o.await(t, "a", 1)
			if tc.want.Reason != "" && strings.HasPrefix(got.Reason, tc.want.Reason) {
				got.Reason = tc.want.Reason
			}
			relaytest.Equal(t, "the outcome", got, tc.want)
		})
	}
	p.send(submitSMResp, 0, 0x7000, "616200") // a response to an unknown request
	p.send(enquireLink, 0, 9, "")
	p.expect(enquireLinkResp, 0, 9)
}

func TestAMessageThatCannotBeEncodedIsRejected(t *testing.T) {
	c, p, _ := startBound(t, &store{}, func(o *Options) { o.Alphabet = smpp.AlphabetLatin1 })
	awaitReady(t, c)
	for name, m := range map[string]carrier.Submission{
		"a text beyond the alphabet and too long for UCS-2": {To: "447800000001", Coding: 7, Text: strings.Repeat("Ω", 71)},
		"an unknown coding":         {To: "447800000001", Coding: 9},
		"a number that is too long": {To: strings.Repeat("4", 22), Coding: 8},
		"a sender that is too long": {To: "447800000001", From: strings.Repeat("4", 22), Coding: 8},
	} {
		t.Run(name, func(t *testing.T) {
			var o outcomes
			c.Submit(t.Context(), m, o.add("a"))
			got := o.await(t, "a", 1)
			if got.Reason == "" {
				t.Error("the outcome has no reason")
			}
			got.Reason = ""
			relaytest.Equal(t, "the outcome", got, carrier.Result{Verdict: carrier.Rejected, NotSubmitted: true})
		})
	}
	p.send(enquireLink, 0, 9, "")
	p.expect(enquireLinkResp, 0, 9) // without a submit_sm before it
}

func TestASubmissionDoesNotWaitForAnSMSCThatDoesNotRead(t *testing.T) {
	o := newOutstanding(2)
	relaytest.Equal(t, "the first request is added", o.add(&pendingRequest{sequence: 1}), true)
	relaytest.Equal(t, "a second request is added", o.add(&pendingRequest{sequence: 2}), true)
	relaytest.Equal(t, "a request beyond the window is added", o.add(&pendingRequest{sequence: 3}), false)
	relaytest.Equal(t, "a response finds its request", o.resolve(1) != nil, true)
	relaytest.Equal(t, "the number of remaining requests", len(o.close()), 1)
	relaytest.Equal(t, "a request is added after close", o.add(&pendingRequest{sequence: 4}), false)
}

func TestARequestIsEitherWrittenOrAbandoned(t *testing.T) {
	r := &pendingRequest{raw: []byte("x")}
	relaytest.Equal(t, "a queued request is abandoned", r.abandon(), true)
	relaytest.Equal(t, "the octets of an abandoned request", string(r.appendTo(nil)), "")
	r = &pendingRequest{raw: []byte("x")}
	relaytest.Equal(t, "the octets of a queued request", string(r.appendTo(nil)), "x")
	relaytest.Equal(t, "a written request is abandoned", r.abandon(), false)
}

// The test fills the connection. A message that was not written is unsent rather than unknown,
// and is not written later.
func TestAMessageIsUnsentWhileTheSMSCDoesNotRead(t *testing.T) {
	c, p, _ := startBound(t, &store{}, func(o *Options) {
		o.AnswerTimeout, o.MaxUnwritten, o.Timeout = 200*time.Millisecond, 4, relaytest.Patience
	})
	awaitReady(t, c)
	var o outcomes
	long := strings.Repeat("x", 60_000)
	submitted := 0
	relaytest.Eventually(t, "a message is unsent", func() (any, bool) {
		for range 50 {
			c.Submit(t.Context(), carrier.Submission{ID: fmt.Sprint("1-2-", submitted), From: "1", To: "447700900123", Coding: 8, Data: []byte(long)}, o.add(fmt.Sprint(submitted)))
			submitted++
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		outcomes := o.byID[fmt.Sprint(submitted-1)]
		return submitted, len(outcomes) == 1 && outcomes[0].NotSubmitted
	})
	unsent := 0
	for i := range submitted {
		if got := o.await(t, fmt.Sprint(i), 1); got.NotSubmitted {
			unsent++
		} else {
			relaytest.Equal(t, "the verdict of a message that may have been read", got.Verdict, carrier.Unknown)
		}
	}
	for range submitted - unsent {
		p.read()
	}
	p.send(enquireLink, 0, 9, "")
	p.expect(enquireLinkResp, 0, 9) // without a submit_sm of an unsent message before it
}

func TestAcceptsOriginator(t *testing.T) {
	c := relaytest.Must(New(Options{Carrier: "one", Name: "1-transceiver", Addr: "h:1", Accept: (&store{}).accept}))(t)
	for originator, want := range map[string]bool{
		"My Shop": true, "A&B": true, "GOOGLE_NOW": true, "a@b": true, "ÄÖÜ": true, "447700900123": true, "5€": false, "ΔΦ": false,
	} {
		if c.AcceptsOriginator(originator) != want {
			t.Errorf("the originator %q is accepted: %t, want %t", originator, !want, want)
		}
	}
}

func TestMessagesArePipelinedInOrder(t *testing.T) {
	const n = 500
	c, p, _ := startBound(t, &store{}, func(o *Options) { o.MaxUnwritten = n })
	awaitReady(t, c)
	var o outcomes
	for i := range n {
		c.Submit(t.Context(), textMessage(fmt.Sprint("1-2-", i), fmt.Sprint(i)), o.add(fmt.Sprint(i)))
	}
	var sequences []uint32
	for i := range n {
		h := p.read() // before any response
		if want := fmt.Sprintf(" 00 %d", i); !strings.HasSuffix(formatSubmitSM(t, h), want) {
			t.Fatalf("submit_sm %d is %q, want it to end with %q", i, formatSubmitSM(t, h), want)
		}
		sequences = append(sequences, h.sequence)
	}
	slices.Reverse(sequences) // responses may arrive in any order
	for i, sequence := range sequences {
		p.send(submitSMResp, 0, sequence, hex.EncodeToString(fmt.Appendf(nil, "M%d\x00", n-1-i)))
	}
	for i := range n {
		relaytest.Equal(t, fmt.Sprintf("the id of message %d", i), o.await(t, fmt.Sprint(i), 1).ID, fmt.Sprint("M", i))
	}
}

func TestAMessageWithoutAResponseIsUnknown(t *testing.T) {
	c, p, _ := startBound(t, &store{}, func(o *Options) { o.AnswerTimeout = time.Second })
	awaitReady(t, c)
	var o outcomes
	c.Submit(t.Context(), textMessage("1-2-0", "late"), o.add("late"))
	late := p.read()
	relaytest.Equal(t, "the outcome without a response", o.await(t, "late", 1), carrier.Result{Verdict: carrier.Unknown, Reason: "the SMSC has not answered within 1s"})
	p.send(submitSMResp, 0, late.sequence, "616200")
	relaytest.Equal(t, "the outcome of a late response", o.await(t, "late", 2), carrier.Result{Verdict: carrier.Accepted, ID: "ab"})
	c.Submit(t.Context(), textMessage("1-3-0", "cut"), o.add("cut"))
	p.read()
	p.conn.Close()
	relaytest.Equal(t, "the verdict after the connection was closed", o.await(t, "cut", 1).Verdict, carrier.Unknown)
	p = p.smsc.acceptBind()
	awaitReady(t, c)
	c.Submit(t.Context(), textMessage("1-4-0", "again"), o.add("again"))
	p.send(submitSMResp, 0, p.read().sequence, "616200")
	relaytest.Equal(t, "the verdict over the new bind", o.await(t, "again", 1).Verdict, carrier.Accepted)
}

func TestWithoutABindAMessageIsUnsent(t *testing.T) {
	c, p, stop := startBound(t, &store{}, func(o *Options) { o.Bind = Receiver })
	await(t, c, "the client is bound", func(s Status) bool { return s.State == Bound })
	var o outcomes
	c.Submit(t.Context(), textMessage("1-2-0", "x"), o.add("a"))
	expectUnsent(t, "the outcome over a receiver", o.await(t, "a", 1))
	relaytest.Equal(t, "a receiver is ready to send", c.Ready(), false)
	go func() { p.send(unbindResp, 0, p.read().sequence, "") }()
	stop()
	c.Submit(t.Context(), textMessage("1-2-0", "x"), o.add("b"))
	expectUnsent(t, "the outcome after Run has returned", o.await(t, "b", 1))
}

// expectUnsent checks that a message may be sent over another bind.
func expectUnsent(t *testing.T, label string, got carrier.Result) {
	t.Helper()
	relaytest.Equal(t, label, carrier.Result{Verdict: got.Verdict, NotSubmitted: got.NotSubmitted}, carrier.Result{Verdict: carrier.RetryLater, NotSubmitted: true})
}

func TestATransmitterBindsWithBindTransmitter(t *testing.T) {
	s := newSMSC(t)
	start(t, s, &store{}, func(o *Options) { o.Bind = Transmitter })
	_, bind := s.acceptConn()
	relaytest.Equal(t, "the command of the bind", bind.command, 2)
}

func TestStopWaitsForResponses(t *testing.T) {
	c, p, stop := startBound(t, &store{})
	awaitReady(t, c)
	var o outcomes
	c.Submit(t.Context(), textMessage("1-2-0", "x"), o.add("a"))
	h := p.read()
	ended := make(chan struct{})
	go func() { defer close(ended); stop() }()
	relaytest.Eventually(t, "messages are refused", func() (any, bool) {
		var refused outcomes
		c.Submit(t.Context(), textMessage("1-3-0", "y"), refused.add("b"))
		refused.mu.Lock()
		defer refused.mu.Unlock()
		return refused.byID, len(refused.byID["b"]) == 1
	})
	p.send(submitSMResp, 0, h.sequence, "616200")
	for request := p.read(); ; request = p.read() {
		p.send(request.command|0x80000000, 0, request.sequence, "") // also responds to messages of the loop above
		if request.command == unbind {
			break
		}
	}
	relaytest.Equal(t, "the verdict", o.await(t, "a", 1).Verdict, carrier.Accepted)
	<-ended
}

// A PDU waits for the disk when the link breaks.
func TestOutcomesOfALostBindAreReportedAtOnce(t *testing.T) {
	hanging, release := make(chan struct{}), make(chan struct{})
	st := &store{onWait: func(context.Context, ReceivedPDU) error { close(hanging); <-release; return nil }}
	c, p, _ := startBound(t, st)
	defer close(release)
	awaitReady(t, c)
	var o outcomes
	c.Submit(t.Context(), textMessage("1-2-0", "x"), o.add("a"))
	p.read()
	p.send(deliverSM, 0, 1, message("hello"))
	<-hanging
	p.conn.Close()
	relaytest.Equal(t, "the verdict of an unanswered message", o.await(t, "a", 1).Verdict, carrier.Unknown)
	relaytest.Equal(t, "the bind is ready", c.Ready(), false)
	c.Submit(t.Context(), textMessage("1-3-0", "x"), o.add("b"))
	expectUnsent(t, "the outcome of another message", o.await(t, "b", 1))
}

// If the SMSC does not read, the bind refuses further requests, so that other binds send them.
func TestABindWithAWindowOfUnwrittenRequestsIsNotOpen(t *testing.T) {
	o := newOutstanding(2)
	for i, want := range []bool{true, true, false} {
		relaytest.Equal(t, fmt.Sprint("open before request ", i), o.hasRoom(), want)
		relaytest.Equal(t, fmt.Sprint("request is added ", i), o.add(&pendingRequest{sequence: uint32(i)}), want)
	}
}

func TestSinceIsTheTimeWhenTheBindWasEstablishedOrLost(t *testing.T) {
	var s status
	unix := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	for i, step := range []struct {
		state State
		since int
	}{{Waiting, 0}, {Connecting, 0}, {Bound, 2}, {Waiting, 3}, {Connecting, 3}, {Waiting, 3}} {
		s.set(step.state, unix(i), nil)
		relaytest.Equal(t, fmt.Sprint("since after step ", i), s.current.Since, unix(step.since))
	}
}
