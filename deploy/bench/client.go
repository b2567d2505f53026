package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// target is a program that receives frames.
type target struct {
	addr     string
	counter  atomic.Int64 // the number of the next frame
	accepted atomic.Int64
	base     time.Time // the time in the first frame
}

// sender is a client that posts ChirpStack frames of one account over many connections: one
// frame per request, each with its own combination of device, counter, time and
// deduplicationId. It sends at a fixed rate, or on each connection as soon as the previous
// frame is answered.
type sender struct {
	*target
	token, decoder       string
	conns                int
	rate                 float64 // frames a second; 0: each frame follows the answer to the previous one
	devices, firstDevice int64
}

// sender returns a sender with the connections and devices of the settings.
func (b *bench) sender(t *target) *sender {
	return &sender{target: t, token: accountToken, decoder: "bench", conns: b.conns, devices: int64(b.devices)}
}

// withRate returns a copy of the sender with another number of connections and another rate.
func (s *sender) withRate(conns int, rate float64) *sender {
	sender := *s
	sender.conns, sender.rate = conns, rate
	return &sender
}

// run sends frames for a time and returns the sum of the outcomes of all connections.
func (s *sender) run(ctx context.Context, length time.Duration) (sum outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	errs := make([]error, s.conns)
	start := time.Now()
	for i := range s.conns {
		wg.Go(func() {
			var o outcome
			o, errs[i] = s.connection(ctx, start, i)
			mu.Lock()
			defer mu.Unlock()
			sum.count, sum.refused, sum.broken = sum.count+o.count, sum.refused+o.refused, sum.broken+o.broken
			sum.latencies = append(sum.latencies, o.latencies...)
		})
	}
	wg.Wait()
	sum.accepted = time.Since(start)
	s.target.accepted.Add(sum.count)
	slices.Sort(sum.latencies)
	return sum, errors.Join(errs...)
}

// connection sends the frames of connection i: at an interval if the sender has a rate, else
// each after the answer to the previous frame. Frames whose time has passed by more than an
// interval are skipped, not sent later.
func (s *sender) connection(ctx context.Context, start time.Time, i int) (o outcome, err error) {
	var pause time.Duration
	due := start
	if s.rate > 0 {
		pause = time.Duration(float64(s.conns) / s.rate * float64(time.Second))
		due = start.Add(pause * time.Duration(i) / time.Duration(s.conns))
	}
	var conn net.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	var answers *bufio.Reader
	var request []byte
	for sleep(ctx, time.Until(due)) {
		if conn == nil {
			if conn, err = net.Dial("tcp", s.addr); err != nil {
				return o, err
			}
			answers = bufio.NewReaderSize(conn, 1<<10)
		}
		request = s.request(request[:0], s.counter.Add(1)-1)
		sent := time.Now()
		status, err := exchange(conn, answers, request)
		switch {
		case err != nil:
			o.broken++
			_ = conn.Close()
			conn = nil
		case status/100 == 2:
			o.count++
			o.latencies = append(o.latencies, time.Since(sent))
		case status == http.StatusServiceUnavailable:
			o.refused++
		default:
			return o, fmt.Errorf("frame answered %d", status)
		}
		for due = due.Add(pause); pause > 0 && time.Until(due) < -pause; {
			due = due.Add(pause)
		}
	}
	return o, nil
}

// exchange sends a request, reads the whole answer and returns its status.
func exchange(conn net.Conn, answers *bufio.Reader, request []byte) (status int, err error) {
	if _, err := conn.Write(request); err != nil {
		return 0, err
	}
	length := 0
	for {
		line, err := answers.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if status == 0 {
			if len(line) < 12 {
				return 0, fmt.Errorf("invalid status line %q", line)
			}
			if status, err = strconv.Atoi(string(line[9:12])); err != nil {
				return 0, err
			}
			continue
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := strings.Cut(string(line), ":"); strings.EqualFold(name, "Content-Length") {
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	_, err = answers.Discard(length)
	return status, err
}

// request appends the HTTP request with the n-th frame to dst.
func (s *sender) request(dst []byte, n int64) []byte {
	body := s.body(n)
	dst = fmt.Appendf(dst, "POST /webhooks/lorawan?event=up&decoder_id=%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", s.decoder, s.addr, s.token, len(body))
	return append(dst, body...)
}

func (s *sender) body(n int64) string {
	device, t := s.firstDevice+n%s.devices, s.base.Add(time.Duration(n)*time.Microsecond)
	temperature, humidity := uint16(200+n%100), byte(60+n%80)
	payload := base64.StdEncoding.EncodeToString([]byte{1, 0x67, byte(temperature >> 8), byte(temperature), 2, 0x68, humidity})
	return fmt.Sprintf(frameBody, n, t.UTC().Format(time.RFC3339Nano), device, device, n/s.devices, payload, float64(temperature)/10, float64(humidity)/2)
}

// frameBody is an uplink of ChirpStack v4 as its documentation shows it, about 1,000 bytes
// long. Its object has the two readings that ChirpStack's codec decoded. A gateway decodes
// the payload again; Telegraf stores the decoded values.
const frameBody = `{"deduplicationId":"3ac7e3c4-4401-4b8d-9386-%012d","time":"%s","deviceInfo":{` +
	`"tenantId":"52f14cd4-c6f1-4fbd-8f87-4025e1d49242","tenantName":"ChirpStack","applicationId":"17c82e96-be03-4f38-aef3-f83d48582d97",` +
	`"applicationName":"Test application","deviceProfileId":"14855bf7-d10d-4aee-b618-ebfcb64dc7ad","deviceProfileName":"Test device-profile",` +
	`"deviceName":"Test device %d","devEui":"a840416b2c%06x","tags":{"key":"value"}},"devAddr":"00189440","adr":true,"dr":1,"fCnt":%d,"fPort":1,` +
	`"confirmed":false,"data":"%s","object":{"temperature_1":%.1f,"relative_humidity_2":%.1f},"rxInfo":[{"gatewayId":"0016c001f153a14c","uplinkId":4217106255,"rssi":-36,"snr":10.5,"context":"E3OWOQ==",` +
	`"metadata":{"region_name":"eu868","region_common_name":"EU868"}}],"txInfo":{"frequency":867100000,"modulation":{"lora":{"bandwidth":125000,` +
	`"spreadingFactor":11,"codeRate":"CR_4_5"}}}}`

// newClient returns a client that keeps up to conns idle connections.
func newClient(conns int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns, DisableCompression: true}}
}

// newRequest returns a request with a JSON body, or without a body if body is empty. It sends
// a token in both headers because some of the gateway's APIs read X-Auth-Token.
func newRequest(ctx context.Context, method, url, token, body string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err == nil && body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if err == nil && token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("X-Auth-Token", token)
	}
	return req, err
}

// postJSON posts value as JSON and decodes the answer into answer unless that is nil.
func postJSON(ctx context.Context, client *http.Client, url, token string, value, answer any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return call(ctx, client, http.MethodPost, url, token, string(body), answer)
}

// call makes a request and decodes the answer as JSON into answer unless that is nil. A
// status other than 2xx is an error.
func call(ctx context.Context, client *http.Client, method, url, token, body string, answer any) error {
	req, err := newRequest(ctx, method, url, token, body)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var text bytes.Buffer
	if _, err := text.ReadFrom(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered %d: %.1000s", req.URL.Path, resp.StatusCode, text.String())
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text.Bytes(), answer)
}

// spread calls do with the numbers from start to end-1, in one goroutine per connection. The
// first error ends all of them.
func (b *bench) spread(start, end int64, do func(n int64) error) error {
	var counter atomic.Int64
	counter.Store(start)
	errs := make([]error, b.conns)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for n := counter.Add(1) - 1; n < end; n = counter.Add(1) - 1 {
				if errs[i] = do(n); errs[i] != nil {
					counter.Store(end) // end the other goroutines
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
