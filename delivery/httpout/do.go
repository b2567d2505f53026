package httpout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/outbox"
)

// Response is the response to a request, whatever its status.
type Response struct {
	Status int
	Header http.Header
	// Body is the body, cut at Options.MaxResponse bytes.
	Body []byte
	// Truncated means that the body was longer.
	Truncated bool
	// BodyErr is the error that ended reading the body early, if any.
	BodyErr error
}

// OK reports whether the status is 2xx.
func (r Response) OK() bool { return r.Status >= 200 && r.Status <= 299 }

// maxExcerpt is the largest number of bytes of a response that are stored with an attempt.
const maxExcerpt = 1 << 10

// Excerpt returns the start of the body: valid UTF-8 without NUL, at most 1 KiB.
func (r Response) Excerpt() string {
	head := r.Body[:min(len(r.Body), maxExcerpt)]
	text := strings.ToValidUTF8(string(head), "")
	return strings.ReplaceAll(text, "\x00", "")
}

// JSONRequest returns a request to a back end with JSON bodies. The token is sent as
// Authorization: Bearer, unless it is empty. A nil body sends no body.
func JSONRequest(method, url, token string, body []byte) outbox.Request {
	req := outbox.Request{Method: method, URL: url, Headers: map[string]string{"Accept": "application/json"}, Body: body}
	if body != nil {
		req.ContentType = "application/json"
	}
	if token != "" {
		req.Headers["Authorization"] = "Bearer " + token
	}
	return req
}

// Doer makes one request within a timeout; *Client implements it.
type Doer interface {
	Do(ctx context.Context, req outbox.Request) (Response, error)
}

// Do sends a request and reads the response. Without a status, Do returns an error without
// secrets, for delivery.Classify. A response whose body is incomplete or too slow has its status
// nevertheless. The error is delivery.Unsendable for a request that can never be sent, for
// example because of an invalid URL or header.
func (c *Client) Do(ctx context.Context, req outbox.Request) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	httpReq, err := c.build(ctx, req)
	if err != nil {
		return Response{}, delivery.Unsendable(err)
	}
	resp, err := c.transport.RoundTrip(httpReq)
	if err != nil {
		// The transport's errors name hosts and addresses, never the URL, because
		// http.Client, which adds it, is not used. A failure of the resolver is not a fault of the
		// target.
		if _, isDNS := errors.AsType[*net.DNSError](err); !isDNS && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s: %w", c.opts.Timeout, context.DeadlineExceeded)
		}
		return Response{}, err
	}
	defer resp.Body.Close()
	r := Response{Status: resp.StatusCode, Header: resp.Header}
	r.Body, r.BodyErr = io.ReadAll(io.LimitReader(resp.Body, c.opts.MaxResponse+1))
	if int64(len(r.Body)) > c.opts.MaxResponse {
		r.Body, r.Truncated = r.Body[:c.opts.MaxResponse], true
	}
	return r, nil
}

// build builds the request; its errors contain no secret.
func (c *Client) build(ctx context.Context, req outbox.Request) (*http.Request, error) {
	u, err := ValidURL(req.URL)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	var body io.Reader
	if len(req.Body) > 0 {
		body = bytes.NewReader(req.Body)
	}
	httpReq, err := http.NewRequestWithContext(ctx, req.Method, "", body)
	if err != nil {
		return nil, fmt.Errorf("request: method %q is not valid", req.Method)
	}
	httpReq.URL, httpReq.Host = u, strings.TrimSuffix(u.Host, ":")
	if u.User != nil {
		password, _ := u.User.Password()
		httpReq.SetBasicAuth(u.User.Username(), password)
	}
	return httpReq, c.setHeader(httpReq, req)
}

// Preview returns a request as Do would send it: every header field, and the URL without its
// fragment and its credentials, which become a header. It returns an error for a request that
// can never be sent.
func (c *Client) Preview(ctx context.Context, req outbox.Request) (outbox.Request, error) {
	httpReq, err := c.build(ctx, req)
	if err != nil {
		return req, err
	}
	u := *httpReq.URL
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	headers := map[string]string{"Host": httpReq.Host, "Content-Length": strconv.Itoa(len(req.Body))}
	if len(req.Body) == 0 && (req.Method == http.MethodGet || req.Method == http.MethodHead) {
		delete(headers, "Content-Length")
	}
	for name, values := range httpReq.Header {
		if len(values) > 0 {
			headers[name] = values[0]
		}
	}
	return outbox.Request{Method: req.Method, URL: u.String(), Headers: headers, Body: req.Body}, nil
}

// ValidURL parses a URL, which must have the scheme http or https and a host.
func ValidURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("not a valid http or https URL")
	}
	return u, nil
}

func (c *Client) setHeader(httpReq *http.Request, req outbox.Request) error {
	httpReq.Header.Set("User-Agent", "Penstock")
	if req.ContentType != "" {
		httpReq.Header.Set("Content-Type", req.ContentType)
	}
	for name, value := range req.Headers {
		httpReq.Header.Set(name, value)
	}
	for name, values := range httpReq.Header {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(values[0]) {
			return fmt.Errorf("request: header %q is not valid", name)
		}
	}
	if host := httpReq.Header.Get("Host"); host != "" {
		httpReq.Host = host
	}
	if httpReq.Header.Get("Webhook-Id") != "" {
		// This field lets net/http repeat the request on a new connection. An empty list is not
		// sent.
		httpReq.Header["X-Idempotency-Key"] = append([]string{}, httpReq.Header["X-Idempotency-Key"]...)
	}
	return nil
}
