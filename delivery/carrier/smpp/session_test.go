package smpp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestAMessageIsAnsweredOnceItIsAccepted(t *testing.T) {
	s, release := newSMSC(t), make(chan struct{})
	l := &log{answer: func(context.Context, Arrival) error { <-release; return nil }}
	c, _ := start(t, s, l)
	p := s.bound()
	raw := frameOf(t, deliverSM, 0, 41, message("hello"))
	p.write(raw)
	p.say(deliverSM, 0, 42, message("other"))
	p.say(enquire, 0, 43, "")
	p.answers(enquireResp, 0, 43) // the link is served while messages wait
	eventually(t, "both wait at once", func() bool { return c.Status().InFlight == 2 })
	close(release)
	first, second := p.hear(), p.hear()
	if first.command != deliverSMResp || second.command != deliverSMResp || first.status+second.status != 0 || first.sequence+second.sequence != 83 {
		t.Errorf("answers: %+v, %+v", first, second)
	}
	got := l.all()
	if len(got) != 2 || !bytes.Equal(got[0].PDU, raw) && !bytes.Equal(got[1].PDU, raw) || got[0].Carrier != "one" || got[0].ID == got[1].ID || got[0].Receipt {
		t.Errorf("accepted: %+v", got)
	}
	if st := c.Status(); st.State != Bound || st.Messages != 2 || st.Binds != 1 || st.Refused != 0 {
		t.Errorf("status %+v", st)
	}
}

func TestWhatCannotBeAcceptedStaysWithTheSMSC(t *testing.T) {
	s := newSMSC(t)
	l := &log{answer: func(context.Context, Arrival) error { return errors.New("disk full") }}
	c, _ := start(t, s, l)
	p := s.bound()
	p.say(deliverSM, 0, 1, message("hello"))
	p.answers(deliverSMResp, 0x64, 1)
	p.say(deliverSM, 0, 2, "00") // malformed, and it could not even be kept
	p.answers(deliverSMResp, 0x64, 2)
	p.say(enquire, 0, 3, "")
	p.answers(enquireResp, 0, 3)
	if st := c.Status(); st.Refused != 2 || st.Messages != 0 {
		t.Errorf("status %+v", st)
	}
}

func TestWhatHasNoPlaceStaysWithTheSMSC(t *testing.T) {
	s, l := newSMSC(t), &log{refuse: errors.New("closed")}
	c, _ := start(t, s, l)
	p := s.bound()
	p.say(deliverSM, 0, 1, message("hello"))
	p.answers(deliverSMResp, 0x64, 1)
	if st := c.Status(); st.Refused != 1 || len(l.all()) != 0 {
		t.Errorf("status %+v", st)
	}
}

func TestReceiptsAreTold(t *testing.T) {
	s, l := newSMSC(t), &log{}
	c, _ := start(t, s, l)
	p := s.bound()
	p.say(deliverSM, 0, 1, strings.Replace(message("id:1 stat:DELIVRD"), "343536 00 00", "343536 00 04", 1))
	p.answers(deliverSMResp, 0, 1)
	p.say(0x103, 0, 2, "00 0101 31 00 0101 32 00 24 00 00")
	p.answers(0x80000103, 0, 2)
	if got := l.all(); len(got) != 2 || !got[0].Receipt || !got[1].Receipt || c.Status().Receipts != 2 {
		t.Errorf("accepted %+v", got)
	}
}

func TestARepetitionHasTheIDOfTheFirst(t *testing.T) {
	s, l := newSMSC(t), &log{}
	start(t, s, l)
	p := s.bound()
	ids := make(map[string][]uint32)
	for _, m := range []struct {
		sequence uint32
		text     string
	}{{1, "a"}, {1, "a"}, {2, "a"}, {1, "b"}} {
		p.say(deliverSM, 0, m.sequence, message(m.text))
		p.answers(deliverSMResp, 0, m.sequence)
		all := l.all()
		id := all[len(all)-1].ID
		ids[id] = append(ids[id], m.sequence)
	}
	if len(ids) != 3 {
		t.Errorf("ids %v, want that of the first twice and two others", ids)
	}
}

func TestMalformedPDUs(t *testing.T) {
	text := message("hello")
	for name, tc := range map[string]struct {
		raw             []byte
		command, status uint32
		sequence        uint32
		kept            int // octets; 0 means all
	}{
		"a body that is not there":            {frameOf(t, deliverSM, 0, 9, ""), deliverSMResp, 0x15, 9, 0},
		"a service type without an end":       {frameOf(t, deliverSM, 0, 9, strings.Repeat("61", 30)), deliverSMResp, 0x15, 9, 0},
		"a source without an end":             {frameOf(t, deliverSM, 0, 9, "00 0101"+strings.Repeat("31", 70)), deliverSMResp, 0x0A, 9, 0},
		"a destination without an end":        {frameOf(t, deliverSM, 0, 9, "00 0101 31 00 0101 3232"), deliverSMResp, 0x0B, 9, 0},
		"a text that reaches beyond":          {frameOf(t, deliverSM, 0, 9, strings.Replace(text, "0005", "00ff", 1)), deliverSMResp, 0x01, 9, 0},
		"a parameter that reaches beyond":     {frameOf(t, deliverSM, 0, 9, text+"0424 FFFF 61"), deliverSMResp, 0xC0, 9, 0},
		"a time without an end":               {frameOf(t, deliverSM, 0, 9, "00 0101 31 00 0101 32 00 00 00 00"+strings.Repeat("31", 30)), deliverSMResp, 0x61, 9, 0},
		"a data_sm that is cut":               {frameOf(t, 0x103, 0, 9, "00 0101"), 0x80000103, 0x0A, 9, 0},
		"a command that does not exist":       {frameOf(t, 0x77, 0, 9, "0102"), nack, 0x03, 9, 0},
		"a command that is not for us":        {frameOf(t, 0x04, 0, 9, text), nack, 0x03, 9, 0},
		"a length shorter than a header":      {[]byte{0, 0, 0, 6, 1, 2}, nack, 0x02, 0, 0},
		"a length of nothing":                 {[]byte{0, 0, 0, 0}, nack, 0x02, 0, 0},
		"a PDU that is far too long, skipped": {append([]byte{0, 2, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9}, make([]byte, 0x20000-16)...), nack, 0x02, 9, maxPDU},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := newSMSC(t), &log{}
			c, _ := start(t, s, l)
			p := s.bound()
			p.write(tc.raw)
			p.answers(tc.command, tc.status, tc.sequence)
			p.say(deliverSM, 0, 10, text)
			p.answers(deliverSMResp, 0, 10) // the bind is up, and in step
			got := l.all()
			if len(got) != 2 || tc.kept == 0 && !bytes.Equal(got[0].PDU, tc.raw) || tc.kept > 0 && len(got[0].PDU) != tc.kept {
				t.Errorf("kept: %d PDUs", len(got))
			}
			if st := c.Status(); st.Binds != 1 || st.Malformed != 1 || st.Messages != 1 {
				t.Errorf("status %+v", st)
			}
		})
	}
}

func TestAStreamThatMakesNoSenseEndsTheBind(t *testing.T) {
	for name, tc := range map[string]struct {
		raw    []byte
		status uint32
	}{
		"a length beyond all measure":  {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 0x02},
		"one bad length after another": {bytes.Repeat([]byte{0, 0, 0, 4}, 2*maxBadLengths), 0x02},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := newSMSC(t), &log{}
			start(t, s, l)
			p := s.bound()
			p.write(tc.raw)
			if h := p.hear(); h.command != nack || h.status != tc.status {
				t.Errorf("got %+v", h)
			}
			s.bound() // again
			if len(l.all()) == 0 {
				t.Error("nothing was kept of it")
			}
		})
	}
}

func TestAnswersAndAlertsAreNotAnswered(t *testing.T) {
	s, l := newSMSC(t), &log{}
	start(t, s, l)
	p := s.bound()
	p.say(0x80000077, 3, 1, "")
	p.say(nack, 3, 2, "")
	p.say(0x102, 0, 3, "0101 31 00 0101 32 00")
	p.say(enquire, 0, 4, "")
	p.answers(enquireResp, 0, 4)
	if len(l.all()) != 0 {
		t.Errorf("kept %+v", l.all())
	}
}

func TestTheLinkIsTried(t *testing.T) {
	s, l := newSMSC(t), &log{}
	start(t, s, l, func(o *Options) { o.EnquireLink, o.Timeout = 20*time.Millisecond, patience })
	p := s.bound()
	for range 3 {
		h := p.hear()
		if h.command != enquire {
			t.Fatalf("got %+v", h)
		}
		p.say(enquireResp, 0, h.sequence, "")
	}
}

func TestASilentLinkIsLeft(t *testing.T) {
	s, l := newSMSC(t), &log{}
	c, _ := start(t, s, l, func(o *Options) { o.EnquireLink, o.Timeout = 10*time.Millisecond, time.Second })
	s.bound() // and never a word
	if p, bind := s.accept(); bind.command != 9 {
		t.Errorf("got %+v", bind)
	} else {
		p.say(0x80000009, 0, bind.sequence, "00")
	}
	eventually(t, "it is bound again", func() bool { return c.Status().Binds == 2 })
}

func TestTheSMSCUnbinds(t *testing.T) {
	s, release := newSMSC(t), make(chan struct{})
	l := &log{answer: func(context.Context, Arrival) error { <-release; return nil }}
	c, _ := start(t, s, l)
	p := s.bound()
	p.say(deliverSM, 0, 1, message("under way"))
	p.say(unbind, 0, 2, "")
	eventually(t, "the message is under way", func() bool { return c.Status().InFlight == 1 })
	close(release)
	p.answers(deliverSMResp, 0, 1)
	p.answers(unbindResp, 0, 2)
	s.bound()
}

func TestStopAnswersWhatIsUnderWay(t *testing.T) {
	s, release := newSMSC(t), make(chan struct{})
	l := &log{answer: func(context.Context, Arrival) error { <-release; return nil }}
	c, stop := start(t, s, l)
	p := s.bound()
	p.say(deliverSM, 0, 1, message("under way"))
	eventually(t, "it is under way", func() bool { return c.Status().InFlight == 1 })
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	from := p.stream()
	sent := uint32(1)
	for refused := false; !refused; { // until the client has seen that it must stop
		sent++
		p.say(deliverSM, 0, sent, message("perhaps too late"))
		select {
		case h := <-from:
			if refused = h.status == 0x64; !refused {
				t.Fatalf("got %+v", h)
			}
		case <-time.After(time.Millisecond):
		case <-stopped:
			t.Fatal("it left what was under way")
		}
	}
	close(release)
	answered := map[uint32]uint32{}
	last := <-from
	for ; last.command == deliverSMResp; last = <-from {
		answered[last.sequence] = last.status
	}
	if status, ok := answered[1]; last.command != unbind || !ok || status != 0 {
		t.Errorf("answers %v, then %+v", answered, last)
	}
	p.say(unbindResp, 0, last.sequence, "")
	<-stopped
	if c.Status().State != Stopped {
		t.Errorf("status %+v", c.Status())
	}
}

func TestStopDoesNotWaitForASilentSMSC(t *testing.T) {
	s, l := newSMSC(t), &log{}
	c, stop := start(t, s, l, func(o *Options) { o.Timeout = time.Second })
	s.bound()
	eventually(t, "it is bound", func() bool { return c.Status().State == Bound })
	stop()
}

func TestThousandsUnderWay(t *testing.T) {
	s := newSMSC(t)
	var most, now atomic.Int64
	gate := make(chan struct{})
	l := &log{answer: func(context.Context, Arrival) error {
		for n, m := now.Add(1), most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-gate
		now.Add(-1)
		return nil
	}}
	start(t, s, l, func(o *Options) { o.InFlight = 50 })
	p := s.bound()
	const n = 3000
	go func() {
		for i := range uint32(n) {
			if _, err := p.conn.Write(frameOf(t, deliverSM, 0, i+1, message(fmt.Sprint(i)))); err != nil {
				return
			}
		}
	}()
	eventually(t, "as many wait as may", func() bool { return now.Load() == 50 })
	close(gate)
	answered := make(map[uint32]bool)
	for range n {
		h := p.hear()
		if h.command != deliverSMResp || h.status != 0 || answered[h.sequence] {
			t.Fatalf("got %+v", h)
		}
		answered[h.sequence] = true
	}
	if len(l.all()) != n || most.Load() != 50 {
		t.Errorf("%d accepted, %d at most at a time", len(l.all()), most.Load())
	}
	for i, a := range l.staged {
		if want := frameOf(t, deliverSM, 0, uint32(i+1), message(fmt.Sprint(i))); !bytes.Equal(a.PDU, want) {
			t.Fatalf("at place %d stands %x", i, a.PDU)
		}
	}
}
