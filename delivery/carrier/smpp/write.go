package smpp

import "time"

// maxWrite is the largest number of octets collected for one write.
const maxWrite = 32 << 10

// send enqueues a PDU to be written. It must not be called after run has ended.
func (s *session) send(p []byte) { s.out <- outgoingPDU{raw: p} }

// write writes enqueued PDUs, as many at once as there are. After an error it
// closes the connection and discards the rest, so that send never blocks.
func (s *session) write() {
	broken := false
	var buf []byte
	for p := range s.out {
		if broken {
			continue
		}
		buf = s.appendQueued(p.append(buf[:0]))
		_ = s.conn.SetWriteDeadline(time.Now().Add(s.o.Timeout))
		if _, err := s.conn.Write(buf); err != nil {
			broken = true
			s.conn.Close()
		}
	}
}

// append appends the PDU to buf and marks its request as written.
func (p outgoingPDU) append(buf []byte) []byte {
	if p.request != nil {
		p.request.written.Store(true)
	}
	return append(buf, p.raw...)
}

func (s *session) appendQueued(buf []byte) []byte {
	for len(buf) < maxWrite {
		select {
		case p, ok := <-s.out:
			if !ok {
				return buf
			}
			buf = p.append(buf)
		default:
			return buf
		}
	}
	return buf
}
