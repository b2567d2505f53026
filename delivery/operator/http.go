package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sim"
)

// Doer makes one request, bounded in time; *httpout.Client does.
type Doer interface {
	Do(ctx context.Context, r outbox.Request) (httpout.Response, error)
}

// HTTPOptions say where the back end is; all but URL may be zero.
type HTTPOptions struct {
	// URL is what /ready, /commands and /messages are appended to.
	URL string
	// Token is sent as Authorization: Bearer, unless it is empty.
	Token string
	// AtOnce is how many commands are under way at one time; 0 means 16. Others
	// wait up to Turn for theirs, 0 means 250 ms, and come again later.
	AtOnce int
	Turn   time.Duration
	// Trust is how long a back end that has answered counts as ready; 0 means 2 s.
	Trust time.Duration
	Now   func() time.Time
}

// HTTP is a back end that is reached over HTTP.
type HTTP struct {
	client Doer
	opts   HTTPOptions
	turns  chan struct{}
	// answered is when the back end did so last, in ns since 1970.
	answered atomic.Int64
}

// NewHTTP returns an HTTP back end; it refuses what is no URL.
func NewHTTP(c Doer, o HTTPOptions) (*HTTP, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" {
		return nil, errors.New("operator: the back end's URL is none")
	}
	o.URL = strings.TrimRight(o.URL, "/")
	o.AtOnce, o.Turn, o.Trust = cmp.Or(o.AtOnce, 16), cmp.Or(o.Turn, 250*time.Millisecond), cmp.Or(o.Trust, 2*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &HTTP{client: c, opts: o, turns: make(chan struct{}, o.AtOnce)}, nil
}

// Ready asks whether the back end takes commands, unless it has just answered.
func (h *HTTP) Ready(ctx context.Context, _ string) error {
	if h.opts.Now().Sub(time.Unix(0, h.answered.Load())) < h.opts.Trust {
		return nil
	}
	resp, err := h.client.Do(ctx, h.request(http.MethodGet, "/ready", "", nil))
	if err != nil {
		return relay.Errorf(relay.KindUnavailable, "operator: %w", err)
	}
	if resp.Status < 200 || resp.Status > 299 {
		return relay.Errorf(relay.KindUnavailable, "operator: not ready, status %d", resp.Status)
	}
	h.answered.Store(h.opts.Now().UnixNano())
	return nil
}

func (h *HTTP) request(method, path, key string, body []byte) outbox.Request {
	req := outbox.Request{
		Method: method, URL: h.opts.URL + path, Headers: map[string]string{"Accept": "application/json"}, Body: body,
	}
	if body != nil {
		req.ContentType = "application/json"
	}
	if key != "" {
		req.Headers["Idempotency-Key"] = key
	}
	if h.opts.Token != "" {
		req.Headers["Authorization"] = "Bearer " + h.opts.Token
	}
	return req
}

// Command gives a command. An answer that is none of the protocol's is
// relay.KindUnavailable.
func (h *HTTP) Command(ctx context.Context, c sim.Command) (sim.Report, error) {
	body, err := json.Marshal(commandOf(c))
	if err != nil {
		return sim.Report{}, fmt.Errorf("operator: command %s: encode: %w", c.ID, err)
	}
	release, err := h.turn(ctx)
	if err != nil {
		return sim.Report{}, err
	}
	defer release()
	resp, err := h.client.Do(ctx, h.request(http.MethodPost, "/commands", c.ID, body))
	if err != nil {
		return sim.Report{}, relay.Errorf(relay.KindUnavailable, "operator: command %s: %w", c.ID, err)
	}
	return h.report(c, resp)
}

// turn waits for leave to give a command.
func (h *HTTP) turn(ctx context.Context) (release func(), err error) {
	timer := time.NewTimer(h.opts.Turn)
	defer timer.Stop()
	select {
	case h.turns <- struct{}{}:
		return func() { <-h.turns }, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil, &sim.Unavailable{After: time.Second, Cause: errors.New("operator: too many commands are under way")}
}

// report reads an answer to a command.
func (h *HTTP) report(c sim.Command, resp httpout.Response) (sim.Report, error) {
	after, _ := delivery.ParseRetryAfter(resp.Header.Get("Retry-After"), h.opts.Now())
	a, err := answerOf(resp)
	if err != nil {
		cause := fmt.Errorf("operator: command %s: %w", c.ID, err)
		return sim.Report{}, &sim.Unavailable{After: after, Cause: cause}
	}
	h.answered.Store(h.opts.Now().UnixNano())
	return a.report(after), nil
}

// Deliver brings a message to a SIM.
func (h *HTTP) Deliver(ctx context.Context, id string, m outbox.SIM) (Result, error) {
	body, err := json.Marshal(messageOf(id, m))
	if err != nil {
		return Result{}, delivery.Unsendable(fmt.Errorf("operator: message %s: encode: %w", id, err))
	}
	resp, err := h.client.Do(ctx, h.request(http.MethodPost, "/messages", id, body))
	if err != nil {
		// Its text alone: what would make an endpoint's delivery dead, an address that
		// may not be reached, is here a mistake in our own settings.
		return Result{}, delivery.OwnFault(errors.New("operator: " + err.Error()))
	}
	return Result{Response: resp.Excerpt()}, judgeMessage(resp)
}

// judgeMessage says what an answer means for a message: the operator's word ends
// it; that it is busy uses up an attempt, and that it does not know us does not.
func judgeMessage(resp httpout.Response) error {
	a, err := answerOf(resp)
	switch {
	case err == nil && a.Status == refused:
		return delivery.Unsendable(errors.New("the operator refuses the message: " + a.reason()))
	case resp.Status >= 200 && resp.Status <= 299:
		return nil
	case resp.Status >= 500 || resp.Status == http.StatusTooManyRequests || resp.Status == http.StatusRequestTimeout:
		return fmt.Errorf("the operator answered with status %d", resp.Status)
	}
	return delivery.OwnFault(fmt.Errorf("operator: the back end answered with status %d", resp.Status))
}
