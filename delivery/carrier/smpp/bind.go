package smpp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"

	"github.com/penstock/penstock/decoders/smpp"
)

// bindError is the status with which the SMSC refused a bind.
type bindError struct{ status uint32 }

func (e *bindError) Error() string {
	status := data.CommandStatusType(e.status)
	return fmt.Sprintf("the SMSC refused the bind with 0x%02X, %s", e.status, status.Desc())
}

// wrongCredentials reports whether the SMSC refused the credentials.
func (e *bindError) wrongCredentials() bool {
	switch data.CommandStatusType(e.status) {
	case data.ESME_RBINDFAIL, data.ESME_RINVPASWD, data.ESME_RINVSYSID:
		return true
	}
	return false
}

// link is a bound connection.
type link struct {
	conn     net.Conn
	reader   *bufio.Reader
	systemID string // of the SMSC
}

// bind connects and binds, within twice the timeout.
func (c *Client) bind(ctx context.Context) (*link, error) {
	dialing, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	conn, err := c.dial(dialing)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	abort := context.AfterFunc(ctx, func() { conn.Close() })
	defer abort()
	l := &link{conn: conn, reader: bufio.NewReaderSize(conn, 64<<10)}
	if err := c.sendBind(l); err != nil {
		conn.Close()
		return nil, fmt.Errorf("bind: %w", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil || !abort() {
		conn.Close()
		return nil, errors.Join(errors.New("bind: interrupted"), err)
	}
	return l, nil
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	if c.o.TLS != nil {
		d := tls.Dialer{Config: c.o.TLS}
		return d.DialContext(ctx, "tcp", c.o.Addr)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", c.o.Addr)
}

// sendBind sends the bind request and reads its response. It skips PDUs that
// arrive before the response, such as an outbind.
func (c *Client) sendBind(l *link) error {
	p := pdu.NewBindRequest(c.o.Bind.kind())
	p.SystemID, p.Password, p.SystemType = c.o.SystemID, c.o.Password, c.o.SystemType
	p.AddressRange.AddressRange = c.o.AddressRange
	if err := l.conn.SetDeadline(time.Now().Add(c.o.Timeout)); err != nil {
		return err
	}
	if _, err := l.conn.Write(marshal(p)); err != nil {
		return err
	}
	for {
		raw, err := readPDU(l.reader)
		if err != nil {
			return err
		}
		h, err := smpp.ParseHeader(raw)
		if err != nil {
			return err
		}
		if h.Sequence != uint32(p.SequenceNumber) || !h.Command.Response() {
			continue
		}
		if h.Status != 0 {
			return &bindError{status: h.Status}
		}
		if h.Command == smpp.GenericNack {
			return errors.New("the SMSC did not understand the bind")
		}
		l.systemID = systemIDOf(raw)
		return nil
	}
}

func (b Bind) kind() pdu.BindingType {
	switch b {
	case Receiver:
		return pdu.Receiver
	case Transmitter:
		return pdu.Transmitter
	}
	return pdu.Transceiver
}

// systemIDOf returns the SMSC's system_id from a bind response; not all have
// one.
func systemIDOf(raw []byte) string {
	p, err := pdu.Parse(bytes.NewReader(raw))
	if answer, ok := p.(*pdu.BindResp); ok && err == nil {
		return answer.SystemID
	}
	return ""
}

// marshal returns the wire format of a PDU.
func marshal(p pdu.PDU) []byte {
	b := pdu.NewBuffer(make([]byte, 0, 64))
	p.Marshal(b)
	return b.Bytes()
}
