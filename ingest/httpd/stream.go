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

// chunkTimeout is the time limit for the client to read one piece of a streamed answer. The
// library's limit is for whole answers, which may be large.
const chunkTimeout = time.Minute

// Stream answers with a body of size bytes in pieces, and closes the body at the end.
func Stream(c *fiber.Ctx, body io.ReadCloser, size int64) {
	setStream(c, body, int(size), func() {})
}

// Write answers with the output of write in pieces, before the deadline of the request. After an
// error of write the connection is closed before the end of the answer, so that the client notices
// the error.
//
// write runs after the handler has returned and must not use c. It must return at the first error
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

// setStream makes body the answer. wait is called after body is closed, and waits for its writer.
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

// stream is the body of an answer. It sets the write deadline of the connection for each piece.
type stream struct {
	io.ReadCloser
	conn      net.Conn
	deadline  time.Time // zero for none
	end       func()
	closeOnce sync.Once
}

// errSlow means that the client did not read the answer before the deadline of the request.
var errSlow = errors.New("httpd: the answer was not read in time")

func (s *stream) Read(b []byte) (int, error) {
	deadline := time.Now().Add(chunkTimeout)
	if !s.deadline.IsZero() && s.deadline.Before(deadline) {
		deadline = s.deadline
	}
	if !deadline.After(time.Now()) {
		return 0, errSlow
	}
	if err := s.conn.SetWriteDeadline(deadline); err != nil {
		return 0, err
	}
	return s.ReadCloser.Read(b)
}

// Close closes the body and ends the request.
func (s *stream) Close() (err error) {
	s.closeOnce.Do(func() {
		err = s.ReadCloser.Close()
		s.end()
	})
	return err
}
