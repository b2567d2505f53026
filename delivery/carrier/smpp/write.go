package smpp

import "time"

// maxWrite is how much is gathered for one write.
const maxWrite = 32 << 10

// send queues a PDU to be written. It is for the time before run ends.
func (s *session) send(p []byte) { s.out <- outgoing{raw: p} }

// write writes what is queued, as much as there is at a time. After an error it
// ends the reading and throws the rest away, so that nobody waits in send.
func (s *session) write() {
	broken := false
	var buf []byte
	for p := range s.out {
		if broken {
			continue
		}
		buf = s.gather(p.append(buf[:0]))
		_ = s.conn.SetWriteDeadline(time.Now().Add(s.o.Timeout))
		if _, err := s.conn.Write(buf); err != nil {
			broken = true
			s.conn.Close()
		}
	}
}

// append adds the PDU to what is about to be written.
func (p outgoing) append(buf []byte) []byte {
	if p.owed != nil {
		p.owed.written.Store(true)
	}
	return append(buf, p.raw...)
}

func (s *session) gather(buf []byte) []byte {
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
