package httpd

import (
	"io"
	"net"
	"time"

	"github.com/gofiber/fiber/v2"
)

// chunkTimeout is how long a client may take for each piece of a download. The
// server's own limit is for whole answers, and these may be large.
const chunkTimeout = time.Minute

// Stream answers with a body of a known size in bytes, piece by piece, and closes
// it at the end.
func Stream(c *fiber.Ctx, body io.ReadCloser, size int64) {
	c.Context().SetBodyStream(&stream{body, c.Context().Conn()}, int(size))
}

// stream gives the connection time for every piece that is read for it.
type stream struct {
	io.ReadCloser
	conn net.Conn
}

func (s *stream) Read(b []byte) (int, error) {
	if err := s.conn.SetWriteDeadline(time.Now().Add(chunkTimeout)); err != nil {
		return 0, err
	}
	return s.ReadCloser.Read(b)
}
