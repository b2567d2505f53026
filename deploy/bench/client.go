package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// jsonPost is a request with a body in JSON.
func jsonPost(ctx context.Context, url string, value any) (*http.Request, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// getJSON reads the answer to a GET.
func getJSON(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	return answered(http.DefaultClient, req, http.StatusOK, into)
}

// answered makes a request, whose answer must have a status, and reads the answer as
// JSON unless into is nil.
func answered(client *http.Client, req *http.Request, status int, into any) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != status {
		return fmt.Errorf("%s answered %d %.1000s", req.URL.Path, resp.StatusCode, body.String())
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body.Bytes(), into)
}

// newClient is a client that keeps so many connections.
func newClient(conns int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns, DisableCompression: true}}
}
