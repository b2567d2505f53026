package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// load is a client that posts ChirpStack frames as fast as they are taken: one
// frame per request, each with its own device, counter, time and
// deduplicationId.
type load struct {
	addr, token string
	decoder     string // of the frames
	conns       int
	devices     int64
	firstDevice int64
	first       int64 // number of the first frame
	next        atomic.Int64
	base        time.Time
	took        time.Duration
	mu          sync.Mutex
	latencies   []time.Duration
}

// outcome is the result of a load.
type outcome struct {
	count    int64
	took     time.Duration
	p50, p99 time.Duration
	cpu      time.Duration // of the server's process
	beside   used
}

func (o outcome) rate() float64 { return float64(o.count) / o.took.Seconds() }

// micros is the server's CPU per request, in microseconds.
func (o outcome) micros() float64 { return float64(o.cpu.Microseconds()) / float64(max(o.count, 1)) }

func newLoad(addr, token string, s settings) *load {
	return &load{addr: addr, token: token, decoder: s.decoder, firstDevice: s.firstDevice, conns: s.conns, devices: int64(s.devices), base: time.Now().Add(-6 * time.Hour)}
}

// run sends for a length of time.
func (l *load) run(ctx context.Context, length time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	return l.each(func(int64) bool { return ctx.Err() == nil })
}

// send sends so many frames.
func (l *load) send(ctx context.Context, n int64) error {
	return l.each(func(i int64) bool { return i < n && ctx.Err() == nil })
}

// each sends frames over every connection while more returns true.
func (l *load) each(more func(n int64) bool) error {
	start := time.Now()
	errs := make([]error, l.conns)
	var wg sync.WaitGroup
	for i := range l.conns {
		wg.Go(func() { errs[i] = l.connection(more) })
	}
	wg.Wait()
	l.took = time.Since(start)
	return errors.Join(errs...)
}

func (l *load) connection(more func(n int64) bool) error {
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	answers := bufio.NewReader(conn)
	var latencies []time.Duration
	var request []byte
	for {
		n := l.next.Add(1) - 1
		if !more(n) {
			break
		}
		request = l.request(request[:0], l.first+n)
		start := time.Now()
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if err := readAnswer(answers); err != nil {
			return err
		}
		latencies = append(latencies, time.Since(start))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latencies = append(l.latencies, latencies...)
	return nil
}

// readAnswer reads one answer; anything but 2xx ends the run.
func readAnswer(r *bufio.Reader) error {
	status, err := readStatus(r)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("answer %d", status)
	}
	return err
}

// readStatus reads one answer and returns its status.
func readStatus(r *bufio.Reader) (status int, err error) {
	first, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(first) < 12 {
		return 0, fmt.Errorf("answer %q", strings.TrimSpace(string(first)))
	}
	if status, err = strconv.Atoi(string(first[9:12])); err != nil {
		return 0, err
	}
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return status, err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := strings.Cut(string(line), ":"); strings.EqualFold(name, "Content-Length") {
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	_, err = r.Discard(length)
	return status, err
}

// request appends the request of the n-th frame.
func (l *load) request(dst []byte, n int64) []byte {
	device, at := l.firstDevice+n%l.devices, l.base.Add(time.Duration(n)*time.Microsecond)
	temperature, humidity := uint16(200+n%100), byte(60+n%80)
	payload := base64.StdEncoding.EncodeToString([]byte{1, 0x67, byte(temperature >> 8), byte(temperature), 2, 0x68, humidity})
	body := fmt.Sprintf(frameBody, n, at.UTC().Format(time.RFC3339Nano), device, device, n/l.devices, payload,
		float64(temperature)/10, float64(humidity)/2)
	dst = fmt.Appendf(dst, "POST /webhooks/lorawan?event=up&decoder_id=%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", l.decoder, l.addr, l.token, len(body))
	return append(dst, body...)
}

// frameBody is an uplink of ChirpStack v4 as its documentation shows it, with what
// its own codec made of the two readings, of about 1,000 bytes. A gateway decodes
// the payload again; Telegraf takes the values.
const frameBody = `{"deduplicationId":"3ac7e3c4-4401-4b8d-9386-%012d","time":"%s","deviceInfo":{` +
	`"tenantId":"52f14cd4-c6f1-4fbd-8f87-4025e1d49242","tenantName":"ChirpStack","applicationId":"17c82e96-be03-4f38-aef3-f83d48582d97",` +
	`"applicationName":"Test application","deviceProfileId":"14855bf7-d10d-4aee-b618-ebfcb64dc7ad","deviceProfileName":"Test device-profile",` +
	`"deviceName":"Test device %d","devEui":"a840416b2c%06x","tags":{"key":"value"}},"devAddr":"00189440","adr":true,"dr":1,"fCnt":%d,"fPort":1,` +
	`"confirmed":false,"data":"%s","object":{"temperature_1":%.1f,"relative_humidity_2":%.1f},"rxInfo":[{"gatewayId":"0016c001f153a14c","uplinkId":4217106255,"rssi":-36,"snr":10.5,"context":"E3OWOQ==",` +
	`"metadata":{"region_name":"eu868","region_common_name":"EU868"}}],"txInfo":{"frequency":867100000,"modulation":{"lora":{"bandwidth":125000,` +
	`"spreadingFactor":11,"codeRate":"CR_4_5"}}}}`

func (l *load) result() outcome {
	return outcomeOf(l.latencies, l.took)
}

// outcomeOf is that of so many requests, whose times it sorts.
func outcomeOf(times []time.Duration, took time.Duration) outcome {
	slices.Sort(times)
	return outcome{count: int64(len(times)), took: took, p50: quantile(times, 0.50), p99: quantile(times, 0.99)}
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}
