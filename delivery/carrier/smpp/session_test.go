package smpp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestAMessageIsAnsweredAfterItWasAccepted(t *testing.T) {
	release := make(chan struct{})
	st := &store{onWait: func(context.Context, ReceivedPDU) error { <-release; return nil }}
	c, p, _ := startBound(t, st)
	raw, raw2 := frameOf(t, deliverSM, 0, 41, message("hello")), frameOf(t, deliverSM, 0, 42, message("other"))
	p.write(raw)
	p.write(raw2)
	p.send(enquireLink, 0, 43, "")
	p.expect(enquireLinkResp, 0, 43) // answered although messages wait
	await(t, c, "two PDUs are in flight", func(s Status) bool { return s.InFlight == 2 })
	close(release)
	responses := []received{p.read(), p.read()} // in any order
	slices.SortFunc(responses, func(a, b received) int { return cmp.Compare(a.sequence, b.sequence) })
	for i := range responses {
		responses[i].body = nil
	}
	relaytest.Equal(t, "the responses", responses, []received{{command: deliverSMResp, sequence: 41}, {command: deliverSMResp, sequence: 42}})
	got := st.pdus()
	slices.SortFunc(got, func(a, b ReceivedPDU) int { return bytes.Compare(a.PDU, b.PDU) })
	if len(got) == 2 && got[0].ID == got[1].ID {
		t.Errorf("both messages have the id %q", got[0].ID)
	}
	for i := range got {
		got[i].ID = ""
	}
	relaytest.Equal(t, "the accepted PDUs", got, []ReceivedPDU{{Carrier: "one", Bind: "1-transceiver", PDU: raw}, {Carrier: "one", Bind: "1-transceiver", PDU: raw2}})
	relaytest.Equal(t, "the state", c.Status().State, Bound)
	checkCounters(t, c, counters{Binds: 1, Messages: 2})
}

func TestAPDUThatCannotBeAcceptedIsRefused(t *testing.T) {
	st := &store{onWait: func(context.Context, ReceivedPDU) error { return errors.New("disk full") }}
	c, p, _ := startBound(t, st)
	p.send(deliverSM, 0, 1, message("hello"))
	p.expect(deliverSMResp, 0x64, 1)
	p.send(deliverSM, 0, 2, "00") // malformed, and refused too
	p.expect(deliverSMResp, 0x64, 2)
	p.send(enquireLink, 0, 3, "")
	p.expect(enquireLinkResp, 0, 3)
	checkCounters(t, c, counters{Binds: 1, Malformed: 1, Refused: 2})
}

func TestAPDUThatCannotBeEnqueuedIsRefused(t *testing.T) {
	st := &store{enqueueErr: errors.New("closed")}
	c, p, _ := startBound(t, st)
	p.send(deliverSM, 0, 1, message("hello"))
	p.expect(deliverSMResp, 0x64, 1)
	checkCounters(t, c, counters{Binds: 1, Refused: 1})
	relaytest.Equal(t, "the accepted PDUs", st.pdus(), nil)
}

func TestReceiptIsSetForReceipts(t *testing.T) {
	st := &store{}
	c, p, _ := startBound(t, st)
	p.send(deliverSM, 0, 1, strings.Replace(message("id:1 stat:DELIVRD"), "343536 00 00", "343536 00 04", 1))
	p.expect(deliverSMResp, 0, 1)
	p.send(0x103, 0, 2, "00 0101 31 00 0101 32 00 24 00 00")
	p.expect(0x80000103, 0, 2)
	var receipts []bool
	for _, a := range st.pdus() {
		receipts = append(receipts, a.Receipt)
	}
	relaytest.Equal(t, "Receipt of the accepted PDUs", receipts, []bool{true, true})
	checkCounters(t, c, counters{Binds: 1, Receipts: 2})
}

func TestARepeatedPDUHasTheIDOfTheFirst(t *testing.T) {
	st := &store{}
	_, p, _ := startBound(t, st)
	ids := make(map[string][]uint32)
	for _, m := range []struct {
		sequence uint32
		text     string
	}{{1, "a"}, {1, "a"}, {2, "a"}, {1, "b"}} {
		p.send(deliverSM, 0, m.sequence, message(m.text))
		p.expect(deliverSMResp, 0, m.sequence)
		pdus := st.pdus()
		if len(pdus) == 0 {
			t.Fatal("no PDU was accepted")
		}
		id := pdus[len(pdus)-1].ID
		ids[id] = append(ids[id], m.sequence)
	}
	if len(ids) != 3 {
		t.Errorf("sequence numbers by id: %v, want three ids, one of them for the repeated PDU", ids)
	}
}

func TestMalformedPDUsAreStoredAndTheBindStaysUp(t *testing.T) {
	text := message("hello")
	for name, tc := range map[string]struct {
		raw             []byte
		command, status uint32
		sequence        uint32
		storedLen       int // number of stored octets; 0 means the whole PDU
	}{
		"no body":                         {frameOf(t, deliverSM, 0, 9, ""), deliverSMResp, 0x15, 9, 0},
		"an unterminated service type":    {frameOf(t, deliverSM, 0, 9, strings.Repeat("61", 30)), deliverSMResp, 0x15, 9, 0},
		"an unterminated source":          {frameOf(t, deliverSM, 0, 9, "00 0101"+strings.Repeat("31", 70)), deliverSMResp, 0x0A, 9, 0},
		"an unterminated destination":     {frameOf(t, deliverSM, 0, 9, "00 0101 31 00 0101 3232"), deliverSMResp, 0x0B, 9, 0},
		"a text longer than the PDU":      {frameOf(t, deliverSM, 0, 9, strings.Replace(text, "0005", "00ff", 1)), deliverSMResp, 0x01, 9, 0},
		"a parameter longer than the PDU": {frameOf(t, deliverSM, 0, 9, text+"0424 FFFF 61"), deliverSMResp, 0xC0, 9, 0},
		"an unterminated time":            {frameOf(t, deliverSM, 0, 9, "00 0101 31 00 0101 32 00 00 00 00"+strings.Repeat("31", 30)), deliverSMResp, 0x61, 9, 0},
		"a truncated data_sm":             {frameOf(t, 0x103, 0, 9, "00 0101"), 0x80000103, 0x0A, 9, 0},
		"an unknown command":              {frameOf(t, 0x77, 0, 9, "0102"), nack, 0x03, 9, 0},
		"a command for SMSCs":             {frameOf(t, 0x04, 0, 9, text), nack, 0x03, 9, 0},
		"a length shorter than a header":  {[]byte{0, 0, 0, 6, 1, 2}, nack, 0x02, 0, 0},
		"a length of 0":                   {[]byte{0, 0, 0, 0}, nack, 0x02, 0, 0},
		"a PDU beyond the limit":          {append([]byte{0, 2, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9}, make([]byte, 0x20000-16)...), nack, 0x02, 9, maxPDU},
	} {
		t.Run(name, func(t *testing.T) {
			st := &store{}
			c, p, _ := startBound(t, st)
			p.write(tc.raw)
			p.expect(tc.command, tc.status, tc.sequence)
			p.send(deliverSM, 0, 10, text)
			p.expect(deliverSMResp, 0, 10) // the bind is up, and the framing is correct
			got := st.pdus()
			if len(got) != 2 {
				t.Fatalf("%d PDUs were stored, want 2", len(got))
			}
			if tc.storedLen > 0 {
				relaytest.Equal(t, "the stored octets", len(got[0].PDU), tc.storedLen)
			} else {
				relaytest.Equal(t, "the stored PDU", got[0].PDU, tc.raw)
			}
			checkCounters(t, c, counters{Binds: 1, Malformed: 1, Messages: 1})
		})
	}
}

func TestAStreamWithoutFramingEndsTheBind(t *testing.T) {
	for name, tc := range map[string]struct {
		raw    []byte
		status uint32
	}{
		"an HTTP request":                  {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 0x02},
		"many consecutive invalid lengths": {bytes.Repeat([]byte{0, 0, 0, 4}, 2*maxBadLengths), 0x02},
	} {
		t.Run(name, func(t *testing.T) {
			st := &store{}
			_, p, _ := startBound(t, st)
			p.write(tc.raw)
			h := p.read()
			relaytest.Equal(t, "command and status of the response", [2]uint32{h.command, h.status}, [2]uint32{nack, tc.status})
			p.smsc.acceptBind() // the client binds again
			if len(st.pdus()) == 0 {
				t.Error("no part of the stream was stored")
			}
		})
	}
}

func TestResponsesAndAlertsAreNotAnswered(t *testing.T) {
	st := &store{}
	_, p, _ := startBound(t, st)
	p.send(0x80000077, 3, 1, "")
	p.send(nack, 3, 2, "")
	p.send(0x102, 0, 3, "0101 31 00 0101 32 00")
	p.send(enquireLink, 0, 4, "")
	p.expect(enquireLinkResp, 0, 4)
	relaytest.Equal(t, "the accepted PDUs", st.pdus(), nil)
}

func TestEnquireLinkIsSentRepeatedly(t *testing.T) {
	st := &store{}
	_, p, _ := startBound(t, st, func(o *Options) { o.EnquireLink, o.Timeout = 20*time.Millisecond, relaytest.Patience })
	for range 3 {
		h := p.read()
		if h.command != enquireLink {
			t.Fatalf("got the command 0x%08X, want an enquire_link", h.command)
		}
		p.send(enquireLinkResp, 0, h.sequence, "")
	}
}

func TestASilentLinkIsReplaced(t *testing.T) {
	s, st := newSMSC(t), &store{}
	c, _ := start(t, s, st, func(o *Options) { o.EnquireLink, o.Timeout = 10*time.Millisecond, time.Second })
	s.acceptBind() // without a response to enquire_link
	p, bind := s.acceptConn()
	relaytest.Equal(t, "the command of the second bind", bind.command, 9)
	p.send(0x80000009, 0, bind.sequence, "00")
	await(t, c, "the client is bound again", func(s Status) bool { return s.Binds == 2 })
}

func TestPDUsInFlightAreAnsweredWhenTheSMSCUnbinds(t *testing.T) {
	release := make(chan struct{})
	st := &store{onWait: func(context.Context, ReceivedPDU) error { <-release; return nil }}
	c, p, _ := startBound(t, st)
	p.send(deliverSM, 0, 1, message("in flight"))
	p.send(unbind, 0, 2, "")
	await(t, c, "the message is in flight", func(s Status) bool { return s.InFlight == 1 })
	close(release)
	p.expect(deliverSMResp, 0, 1)
	p.expect(unbindResp, 0, 2)
	p.smsc.acceptBind()
}

func TestStopAnswersPDUsInFlight(t *testing.T) {
	release := make(chan struct{})
	st := &store{onWait: func(context.Context, ReceivedPDU) error { <-release; return nil }}
	c, p, stop := startBound(t, st)
	p.send(deliverSM, 0, 1, message("in flight"))
	await(t, c, "the message is in flight", func(s Status) bool { return s.InFlight == 1 })
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	pdus := p.stream()
	sequence := uint32(1)
	for refused := false; !refused; { // until the client refuses messages
		sequence++
		p.send(deliverSM, 0, sequence, message("may be refused"))
		select {
		case h := <-pdus:
			if refused = h.status == 0x64; !refused {
				t.Fatalf("message %d was answered with 0x%02X, want a refusal with 0x64", h.sequence, h.status)
			}
		case <-time.After(time.Millisecond):
		case <-stopped:
			t.Fatal("the client ended with a PDU in flight")
		}
	}
	close(release)
	answered := map[uint32]uint32{}
	h := <-pdus
	for ; h.command == deliverSMResp; h = <-pdus {
		answered[h.sequence] = h.status
	}
	relaytest.Equal(t, "the command after the responses", h.command, unbind)
	if status, ok := answered[1]; !ok || status != 0 {
		t.Errorf("the message in flight was not accepted: statuses by sequence number = %v", answered)
	}
	p.send(unbindResp, 0, h.sequence, "")
	<-stopped
	relaytest.Equal(t, "the state", c.Status().State, Stopped)
}

func TestStopDoesNotWaitForASilentSMSC(t *testing.T) {
	s, st := newSMSC(t), &store{}
	c, stop := start(t, s, st, func(o *Options) { o.Timeout = time.Second })
	s.acceptBind()
	await(t, c, "the client is bound", func(s Status) bool { return s.State == Bound })
	stop()
}

func TestMessagesAreEnqueuedInOrderUpToTheLimitInFlight(t *testing.T) {
	s := newSMSC(t)
	var peak, inFlight atomic.Int64
	release := make(chan struct{})
	st := &store{onWait: func(context.Context, ReceivedPDU) error {
		for n, m := inFlight.Add(1), peak.Load(); n > m && !peak.CompareAndSwap(m, n); m = peak.Load() {
		}
		<-release
		inFlight.Add(-1)
		return nil
	}}
	start(t, s, st, func(o *Options) { o.InFlight = 50 })
	p := s.acceptBind()
	const n = 3000
	go func() {
		for i := range uint32(n) {
			if _, err := p.conn.Write(frameOf(t, deliverSM, 0, i+1, message(fmt.Sprint(i)))); err != nil {
				return
			}
		}
	}()
	relaytest.Eventually(t, "50 messages are in flight", func() (any, bool) { n := inFlight.Load(); return n, n == 50 })
	close(release)
	answered := make(map[uint32]bool)
	for range n {
		h := p.read()
		relaytest.Equal(t, "command and status of the response", [2]uint32{h.command, h.status}, [2]uint32{deliverSMResp, 0})
		if answered[h.sequence] {
			t.Fatalf("message %d was answered twice", h.sequence)
		}
		answered[h.sequence] = true
	}
	relaytest.Equal(t, "the number of accepted messages", len(st.pdus()), n)
	relaytest.Equal(t, "the largest number in flight", peak.Load(), 50)
	for i, a := range st.enqueued {
		if want := frameOf(t, deliverSM, 0, uint32(i+1), message(fmt.Sprint(i))); !bytes.Equal(a.PDU, want) {
			t.Fatalf("message %d is %x, want %x", i, a.PDU, want)
		}
	}
}
