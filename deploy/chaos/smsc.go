package main

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"

	"github.com/penstock/penstock/deploy/servers"
)

// smscWindow is the maximum number of unanswered deliver_sm on a link.
const smscWindow = 20

// smsc is a carrier's SMSC. It accepts every submit_sm and sends a delivery receipt for it. It
// delivers inbound messages and receipts again until they are answered with ESME_ROK. Its state
// survives kill.
type smsc struct {
	addr    string
	queue   chan *delivery
	waiting atomic.Int64 // deliveries that are not acknowledged

	mu          sync.Mutex
	listener    net.Listener
	killed      bool // set by kill until start
	links       map[net.Conn]bool
	submissions int
	submitted   map[string]map[string]int // number of submissions by destination and part
}

// delivery is a queued deliver_sm.
type delivery struct {
	pdu  *pdu.DeliverSM
	done func() // called on the answer ESME_ROK
}

func newSMSC() (*smsc, error) {
	s := &smsc{addr: servers.FreeAddr(), queue: make(chan *delivery, 1<<20), links: map[net.Conn]bool{}, submitted: map[string]map[string]int{}}
	return s, s.start()
}

func (s *smsc) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := servers.Listen(s.addr, s.serve)
	if err == nil {
		s.listener, s.killed = l, false
	}
	return err
}

// kill closes the listener and all connections.
func (s *smsc) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = true
	_ = s.listener.Close()
	for conn := range s.links {
		_ = conn.Close()
	}
}

// link is a connection of an ESME.
type link struct {
	net.Conn
	sequence atomic.Int32
	pending  sync.Map      // sequence number → channel that receives the status of the answer
	ended    chan struct{} // closed when the connection has ended
}

// serve answers the PDUs of an ESME until the connection ends.
func (s *smsc) serve(conn net.Conn) {
	defer conn.Close()
	s.mu.Lock()
	if s.killed { // since conn was accepted
		s.mu.Unlock()
		return
	}
	s.links[conn] = true
	s.mu.Unlock()
	c := &link{Conn: conn, ended: make(chan struct{})}
	defer func() {
		close(c.ended)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.links, conn)
	}()
	for {
		p, err := pdu.Parse(conn)
		if err != nil {
			return
		}
		switch p := p.(type) {
		case *pdu.SubmitSM:
			answer := p.GetResponse().(*pdu.SubmitSMResp)
			answer.MessageID = s.accept(p)
			err = c.write(answer)
		case *pdu.DeliverSMResp:
			if answered, ok := c.pending.LoadAndDelete(p.SequenceNumber); ok {
				answered.(chan data.CommandStatusType) <- p.CommandStatus
			}
		case *pdu.BindRequest:
			err = c.write(p.GetResponse())
			for range smscWindow {
				go s.feed(c)
			}
		default:
			if p.CanResponse() {
				err = c.write(p.GetResponse())
			}
		}
		if _, unbound := p.(*pdu.Unbind); unbound || err != nil {
			return
		}
	}
}

// feed sends queued deliveries over a link, one after the other. A delivery that is not answered
// with ESME_ROK is queued again.
func (s *smsc) feed(c *link) {
	for {
		var d *delivery
		select {
		case <-c.ended:
			return
		case d = <-s.queue:
		}
		answered := make(chan data.CommandStatusType, 1)
		d.pdu.SetSequenceNumber(c.sequence.Add(1))
		c.pending.Store(d.pdu.SequenceNumber, answered)
		if c.write(d.pdu) != nil {
			_ = c.Close()
		}
		select {
		case status := <-answered:
			if status == data.ESME_ROK {
				d.done()
				s.waiting.Add(-1)
				continue
			}
		case <-c.ended:
		}
		s.queue <- d
	}
}

func marshal(p pdu.PDU) []byte {
	b := pdu.NewBuffer(make([]byte, 0, 128))
	p.Marshal(b)
	return b.Bytes()
}

func (c *link) write(p pdu.PDU) error {
	_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
	_, err := c.Write(marshal(p))
	return err
}

// accept records a submission, queues its receipt and returns its message id.
func (s *smsc) accept(p *pdu.SubmitSM) string {
	text, _ := p.Message.GetMessageData()
	udh, _ := p.Message.UDH().MarshalBinary()
	dst := p.DestAddr.Address()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.submissions++
	id := fmt.Sprintf("S%d", s.submissions)
	if s.submitted[dst] == nil {
		s.submitted[dst] = map[string]int{}
	}
	s.submitted[dst][string(udh)+string(text)]++
	receipt := deliverSM(dst, p.SourceAddr.Address(), fmt.Sprintf(
		"id:%s sub:001 dlvrd:001 submit date:2601011200 done date:2601011201 stat:DELIVRD err:000 text:", id))
	receipt.EsmClass = data.SM_SMSC_DLV_RCPT_TYPE
	receipt.RegisterOptionalParam(pdu.Field{Tag: pdu.TagReceiptedMessageID, Data: append([]byte(id), 0)})
	receipt.RegisterOptionalParam(pdu.Field{Tag: pdu.TagMessageStateOption, Data: []byte{data.SM_STATE_DELIVERED}})
	if reference, present := p.OptionalParameters[pdu.TagUserMessageReference]; present {
		receipt.RegisterOptionalParam(reference)
	}
	s.enqueue(&delivery{receipt, func() {}})
	return id
}

// deliver queues an inbound message. done is called when it is answered with ESME_ROK.
func (s *smsc) deliver(id, src, dst, text string, done func()) {
	p := deliverSM(src, dst, text)
	p.RegisterOptionalParam(pdu.Field{Tag: pdu.TagReceiptedMessageID, Data: append([]byte(id), 0)})
	s.enqueue(&delivery{p, done})
}

func (s *smsc) enqueue(d *delivery) {
	s.waiting.Add(1)
	s.queue <- d
}

func deliverSM(src, dst, text string) *pdu.DeliverSM {
	p := pdu.NewDeliverSM().(*pdu.DeliverSM)
	for _, a := range []struct {
		field  *pdu.Address
		number string
	}{{&p.SourceAddr, src}, {&p.DestAddr, dst}} {
		a.field.SetTon(data.GSM_TON_INTERNATIONAL)
		a.field.SetNpi(data.GSM_NPI_ISDN)
		_ = a.field.SetAddress(a.number)
	}
	_ = p.Message.SetMessageWithEncoding(text, data.GSM7BIT)
	return p
}

// idle reports whether every delivery is answered with ESME_ROK.
func (s *smsc) idle() bool { return s.waiting.Load() == 0 }

// partsTo returns the number of different parts submitted to a destination, and the largest number
// of submissions of one part.
func (s *smsc) partsTo(dst string) (parts, submissions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.submitted[dst] {
		parts, submissions = parts+1, max(submissions, n)
	}
	return parts, submissions
}
