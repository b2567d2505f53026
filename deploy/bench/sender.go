package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sender is a client that posts frames of one account over many connections, at a
// rate whatever the answers are, or on each connection as fast as they come. Frames
// differ in number, device and time as those of a load, but cost the client
// less: it shares the processors with the gateway.
type sender struct {
	addr, token string
	conns       int
	rate        float64 // frames a second; 0: as fast as they are answered
	devices     int64
	firstDevice int64
	next        *atomic.Int64 // the number of the next frame
	base        time.Time
}

// counts is how many frames of a sender were accepted, refused and lost.
type counts struct {
	accepted, refused, broken int64 // broken: the connection ended without an answer
	took                      time.Duration
	cpu                       time.Duration   // of the gateway
	latencies                 []time.Duration // of those accepted, sorted
}

func (t counts) goodput() float64 { return float64(t.accepted) / t.took.Seconds() }

func (t counts) sent() float64 {
	return float64(t.accepted+t.refused+t.broken) / t.took.Seconds()
}

// micros is the gateway's CPU per accepted frame, in microseconds.
func (t counts) micros() float64 { return outcome{count: t.accepted, cpu: t.cpu}.micros() }

func (t counts) p(q float64) time.Duration { return quantile(t.latencies, q) }

// run sends until ctx ends.
func (c *sender) run(ctx context.Context) (counts, error) {
	var mu sync.Mutex
	var all counts
	var wg sync.WaitGroup
	errs := make([]error, c.conns)
	start := time.Now()
	for i := range c.conns {
		wg.Go(func() {
			one, err := c.connection(ctx, start, i)
			errs[i] = err
			mu.Lock()
			defer mu.Unlock()
			all.accepted, all.refused, all.broken = all.accepted+one.accepted, all.refused+one.refused, all.broken+one.broken
			all.latencies = append(all.latencies, one.latencies...)
		})
	}
	wg.Wait()
	all.took = time.Since(start)
	slices.Sort(all.latencies)
	return all, errors.Join(errs...)
}

// connection sends the frames of one connection: every so often, or the next one
// once the last one is answered. A frame that is late because of the answer to the
// one before it is not made up for.
func (c *sender) connection(ctx context.Context, start time.Time, i int) (t counts, err error) {
	var pause time.Duration
	due := start
	if c.rate > 0 {
		pause = time.Duration(float64(c.conns) / c.rate * float64(time.Second))
		due = start.Add(pause * time.Duration(i) / time.Duration(c.conns))
	}
	f := c.newFrame()
	var conn net.Conn
	var answers *bufio.Reader
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	for {
		if !sleep(ctx, time.Until(due)) {
			return t, nil
		}
		if conn == nil {
			if conn, err = net.Dial("tcp", c.addr); err != nil {
				return t, err
			}
			answers = bufio.NewReaderSize(conn, 1<<10)
		}
		sent := time.Now()
		status, err := exchange(conn, answers, f.numbered(c.next.Add(1)-1))
		switch {
		case err != nil:
			t.broken++
			_ = conn.Close()
			conn = nil
		case status/100 == 2:
			t.accepted++
			t.latencies = append(t.latencies, time.Since(sent))
		case status == http.StatusServiceUnavailable:
			t.refused++
		default:
			return t, fmt.Errorf("answer %d", status)
		}
		for due = due.Add(pause); pause > 0 && time.Until(due) < -pause; {
			due = due.Add(pause)
		}
	}
}

func exchange(conn net.Conn, answers *bufio.Reader, request []byte) (int, error) {
	if _, err := conn.Write(request); err != nil {
		return 0, err
	}
	return readStatus(answers)
}

// sleep waits and reports false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// frame is the request of a frame, in which what tells it from others is overwritten
// in place.
type frame struct {
	c                          *sender
	request                    []byte
	id, at, device, frameCount int
}

// The forms of what is overwritten: all have a fixed width.
const (
	idDigits     = 12
	deviceDigits = 6
	countDigits  = 7
	timeForm     = "2006-01-02T15:04:05.000000Z"
)

func (c *sender) newFrame() *frame {
	const count = 1_000_000 // its width is that of every count
	body := fmt.Sprintf(frameBody, 0, timeForm, 0, 0, count, "AWcA8gJoUA==", 24.2, 40.0)
	head := fmt.Sprintf("POST /webhooks/lorawan?event=up&decoder_id=bench HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", c.addr, c.token, len(body))
	request := []byte(head + body)
	behind := func(mark string) int { return bytes.Index(request, []byte(mark)) + len(mark) }
	return &frame{
		c: c, request: request, id: behind(`-9386-`), at: behind(`"time":"`), device: behind(`"devEui":"a840416b2c`), frameCount: behind(`"fCnt":`),
	}
}

// numbered returns the request of the n-th frame, valid until the next call.
func (f *frame) numbered(n int64) []byte {
	putDigits(f.request[f.id:f.id+idDigits], n, 10)
	copy(f.request[f.at:], f.c.base.Add(time.Duration(n)*time.Microsecond).UTC().Format(timeForm))
	putDigits(f.request[f.device:f.device+deviceDigits], f.c.firstDevice+n%f.c.devices, 16)
	putDigits(f.request[f.frameCount:f.frameCount+countDigits], 1_000_000+n/f.c.devices, 10)
	return f.request
}

// putDigits writes a number with leading zeros.
func putDigits(b []byte, n, base int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = "0123456789abcdef"[n%base]
		n /= base
	}
}
