package httpd

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
)

// chunkTimeout is the longest time that a client may take for each piece of a streamed
// answer. The server's own limit is for whole answers, and these may be large.
const chunkTimeout = time.Minute

// Stream answers with a body of a known size in bytes, piece by piece, and closes
// it at the end.
func Stream(c *fiber.Ctx, body io.ReadCloser, size int64) {
	setStream(c, body, int(size), func() {})
}

// Write answers with what write writes, piece by piece, before the deadline of the request.
// Its error ends the connection before the end of the answer, so that the client notices.
// write runs after the handler has returned: it does not use c. It ends at the first error
// of w, which means that the client has left, and when the context of the request is done.
func Write(c *fiber.Ctx, write func(w *bufio.Writer) error) {
	body, w := io.Pipe()
	ended := make(chan struct{})
	path := c.Route().Path
	go func() {
		defer close(ended)
		buffer := bufio.NewWriterSize(w, minBuffer)
		err := relay.Recovered("answer of "+path, func() error { return write(buffer) })
		if err == nil {
			err = buffer.Flush()
		}
		_ = w.CloseWithError(err) // never fails
	}()
	setStream(c, body, -1, func() { <-ended })
}

// setStream makes body the answer; wait waits for what writes it, once it is closed.
func setStream(c *fiber.Ctx, body io.ReadCloser, size int, wait func()) {
	s := &stream{ReadCloser: body, conn: c.Context().Conn(), end: wait}
	s.deadline, _ = c.UserContext().Deadline()
	if state := stateOf(c); state != nil {
		state.streamed = true
		s.end = func() {
			state.ctx.end()
			wait()
			state.end()
		}
	}
	c.Context().SetBodyStream(s, size)
}

// stream gives the connection time for every piece that is read for it.
type stream struct {
	io.ReadCloser
	conn     net.Conn
	deadline time.Time // zero for none
	end      func()
	closed   sync.Once
}

// errSlow means that a client takes longer for an answer than the request may last.
var errSlow = errors.New("httpd: the answer was not read in time")

func (s *stream) Read(b []byte) (int, error) {
	due := time.Now().Add(chunkTimeout)
	if !s.deadline.IsZero() && s.deadline.Before(due) {
		due = s.deadline
	}
	if !due.After(time.Now()) {
		return 0, errSlow
	}
	if err := s.conn.SetWriteDeadline(due); err != nil {
		return 0, err
	}
	return s.ReadCloser.Read(b)
}

// Close closes the body, and ends the request.
func (s *stream) Close() (err error) {
	s.closed.Do(func() {
		err = s.ReadCloser.Close()
		s.end()
	})
	return err
}
