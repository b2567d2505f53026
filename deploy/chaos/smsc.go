package main

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"

	"github.com/penstock/penstock/deploy/servers"
)

// smscWindow is how many deliver_sm may be without an answer on a link.
const smscWindow = 20

// smsc is a carrier's SMSC. It takes submit_sm and reports delivery of each; it
// delivers inbound messages; what is not answered with ESME_ROK it delivers again.
// It survives its own death: what it took and what it has to deliver stays.
type smsc struct {
	addr string

	mu       sync.Mutex
	changed  *sync.Cond // the queue or a link
	listener net.Listener
	killed   bool // until start
	links    map[*link]bool
	queue    []*delivery
	taken    int
	seen     map[string]map[string]int // destination → part → how often it was submitted
}

// delivery is a deliver_sm to be made.
type delivery struct {
	pdu  *pdu.DeliverSM
	done func() // called when it is answered with ESME_ROK
}

// link is a connection of an ESME.
type link struct {
	conn    net.Conn
	bound   bool
	closed  bool
	next    int32
	pending map[int32]*delivery
}

func newSMSC() (*smsc, error) {
	s := &smsc{addr: servers.FreeAddr(), links: map[*link]bool{}, seen: map[string]map[string]int{}}
	s.changed = sync.NewCond(&s.mu)
	return s, s.start()
}

func (s *smsc) start() error {
	s.mu.Lock()
	s.killed = false
	s.mu.Unlock()
	l, err := servers.Listen(s.addr, s.serve)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = l
	return nil
}

// kill ends the SMSC with its connections.
func (s *smsc) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = true
	_ = s.listener.Close()
	for c := range s.links {
		_ = c.conn.Close()
	}
}

func (s *smsc) serve(conn net.Conn) {
	c := &link{conn: conn, pending: map[int32]*delivery{}}
	s.mu.Lock()
	if s.killed { // since conn was accepted
		s.mu.Unlock()
		_ = conn.Close()
		return
	}
	s.links[c] = true
	s.mu.Unlock()
	go s.feed(c)
	s.read(c)
}

// read answers what an ESME sends, until the link ends. What was not answered is
// delivered again.
func (s *smsc) read(c *link) {
	for {
		p, err := pdu.Parse(c.conn)
		if err != nil || !s.handle(c, p) {
			break
		}
	}
	_ = c.conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	c.closed = true
	delete(s.links, c)
	for _, d := range c.pending {
		s.queue = append(s.queue, d)
	}
	s.changed.Broadcast()
}

// handle handles a PDU and reports whether the link goes on.
func (s *smsc) handle(c *link, p pdu.PDU) bool {
	switch p := p.(type) {
	case *pdu.SubmitSM:
		answer := p.GetResponse().(*pdu.SubmitSMResp)
		answer.MessageID = s.take(p)
		return c.write(answer)
	case *pdu.BindRequest:
		if !c.write(p.GetResponse()) {
			return false
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		c.bound = true
		s.changed.Broadcast()
		return true
	case *pdu.DeliverSMResp:
		s.answered(c, p)
		return true
	case *pdu.Unbind:
		_ = c.write(p.GetResponse())
		return false
	}
	return !p.CanResponse() || c.write(p.GetResponse())
}

func marshal(p pdu.PDU) []byte {
	b := pdu.NewBuffer(make([]byte, 0, 128))
	p.Marshal(b)
	return b.Bytes()
}

func (c *link) write(p pdu.PDU) bool { return c.send(marshal(p)) }

func (c *link) send(octets []byte) bool {
	_ = c.conn.SetWriteDeadline(time.Now().Add(time.Minute))
	_, err := c.conn.Write(octets)
	return err == nil
}

// take takes a submission, returns its id and queues its receipt.
func (s *smsc) take(p *pdu.SubmitSM) string {
	text, _ := p.Message.GetMessageData()
	head, _ := p.Message.UDH().MarshalBinary()
	to := p.DestAddr.Address()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken++
	id := fmt.Sprintf("S%d", s.taken)
	if s.seen[to] == nil {
		s.seen[to] = map[string]int{}
	}
	s.seen[to][string(head)+string(text)]++
	receipt := deliverSM(to, p.SourceAddr.Address(), fmt.Sprintf(
		"id:%s sub:001 dlvrd:001 submit date:2601011200 done date:2601011201 stat:DELIVRD err:000 text:", id))
	receipt.EsmClass = data.SM_SMSC_DLV_RCPT_TYPE
	receipt.RegisterOptionalParam(pdu.Field{Tag: pdu.TagReceiptedMessageID, Data: append([]byte(id), 0)})
	receipt.RegisterOptionalParam(pdu.Field{Tag: pdu.TagMessageStateOption, Data: []byte{data.SM_STATE_DELIVERED}})
	if reference, given := p.OptionalParameters[pdu.TagUserMessageReference]; given {
		receipt.RegisterOptionalParam(reference)
	}
	s.queue = append(s.queue, &delivery{receipt, func() {}})
	s.changed.Broadcast()
	return id
}

// deliver queues an inbound message; done is called when it is acknowledged.
func (s *smsc) deliver(id, from, to, text string, done func()) {
	p := deliverSM(from, to, text)
	p.RegisterOptionalParam(pdu.Field{Tag: pdu.TagReceiptedMessageID, Data: append([]byte(id), 0)})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, &delivery{p, done})
	s.changed.Broadcast()
}

func deliverSM(from, to, text string) *pdu.DeliverSM {
	p := pdu.NewDeliverSM().(*pdu.DeliverSM)
	for _, a := range []struct {
		field  *pdu.Address
		number string
	}{{&p.SourceAddr, from}, {&p.DestAddr, to}} {
		a.field.SetTon(data.GSM_TON_INTERNATIONAL)
		a.field.SetNpi(data.GSM_NPI_ISDN)
		_ = a.field.SetAddress(a.number)
	}
	_ = p.Message.SetMessageWithEncoding(text, data.GSM7BIT)
	return p
}

// feed delivers what is queued over a link, a window at a time.
func (s *smsc) feed(c *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for !c.closed && (!c.bound || len(s.queue) == 0 || len(c.pending) >= smscWindow) {
			s.changed.Wait()
		}
		if c.closed {
			return
		}
		d := s.queue[0]
		s.queue = s.queue[1:]
		c.next++
		c.pending[c.next] = d
		d.pdu.SetSequenceNumber(c.next)
		octets := marshal(d.pdu)
		s.mu.Unlock()
		ok := c.send(octets)
		s.mu.Lock()
		if !ok {
			_ = c.conn.Close() // read ends, and queues what is pending
			c.bound = false
		}
	}
}

// answered settles a delivery, or queues it again.
func (s *smsc) answered(c *link, p *pdu.DeliverSMResp) {
	s.mu.Lock()
	d := c.pending[p.SequenceNumber]
	delete(c.pending, p.SequenceNumber)
	if d != nil && p.CommandStatus != data.ESME_ROK {
		s.queue = append(s.queue, d)
		d = nil
	}
	s.changed.Broadcast()
	s.mu.Unlock()
	if d != nil {
		d.done()
	}
}

// idle reports whether everything is delivered and acknowledged.
func (s *smsc) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.queue)
	for c := range s.links {
		n += len(c.pending)
	}
	return n == 0
}

// submitted is how many parts of a message to a number came, and how often the one
// that came most often did.
func (s *smsc) submitted(to string) (parts, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.seen[to] {
		parts, most = parts+1, max(most, n)
	}
	return parts, most
}
