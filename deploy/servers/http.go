package servers

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// Serve serves HTTP on an address, whose port may be 0, and returns the server and its address.
func Serve(addr string, h http.Handler) (*http.Server, string, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	return server, l.Addr().String(), nil
}

// Listen calls serve in a new goroutine for each connection to an address, whose port may be 0,
// until the listener is closed.
func Listen(addr string, serve func(net.Conn)) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l, nil
}

// Get makes a GET with a timeout of ten seconds. The status is 0 without a complete answer.
func Get(ctx context.Context, url string) (status int, body []byte) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, nil
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }()
	if body, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil
	}
	return resp.StatusCode, body
}
