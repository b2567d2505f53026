package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// newClient is a client that keeps so many connections.
func newClient(conns int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns, DisableCompression: true}}
}

// newRequest is a request whose body, if it is not empty, is JSON. A token is sent in both
// of the headers that the interfaces want.
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

// postJSON posts a value.
func postJSON(ctx context.Context, client *http.Client, url, token string, value, answer any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return call(ctx, client, http.MethodPost, url, token, string(body), answer)
}

// call makes a request, whose answer must have a status of success, and reads the answer
// as JSON unless answer is nil.
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
		return fmt.Errorf("%s answered %d %.1000s", req.URL.Path, resp.StatusCode, text.String())
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text.Bytes(), answer)
}

// spread calls do with the numbers from first to end, over all connections.
func (b *bench) spread(start, end int64, do func(n int64) error) error {
	var counter atomic.Int64
	counter.Store(start)
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range b.conns {
		wg.Go(func() {
			for n := counter.Add(1) - 1; n < end && failed.Load() == nil; n = counter.Add(1) - 1 {
				if err := do(n); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
