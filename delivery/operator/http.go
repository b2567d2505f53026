package operator

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/provisioning"
)

// HTTPOptions configures an HTTP back end; only URL is required.
type HTTPOptions struct {
	// URL is the prefix of /ready, /commands and /messages.
	URL string
	// Token is sent as Authorization: Bearer; empty disables it.
	Token string
	// MaxConcurrent is the maximum number of concurrent commands; 0 means 16. A further command
	// waits for a slot, for at most SlotTimeout, and is then retried later. A SlotTimeout of 0
	// means 250 ms.
	MaxConcurrent int
	SlotTimeout   time.Duration
	Now           func() time.Time
}

// readyTTL is the time for which a back end that has responded counts as ready.
const readyTTL = 2 * time.Second

// HTTP is a back end that is called over HTTP.
type HTTP struct {
	client httpout.Doer
	opts   HTTPOptions
	slots  chan struct{}
	// lastResponse is the time of the last valid response, in ns since 1970.
	lastResponse atomic.Int64
}

// NewHTTP returns an HTTP back end, or an error if the URL is invalid.
func NewHTTP(c httpout.Doer, o HTTPOptions) (*HTTP, error) {
	if u, err := httpout.ValidURL(o.URL); err != nil || u.RawQuery != "" {
		return nil, errors.New("operator: the URL must be http or https with a host")
	}
	o.URL = strings.TrimRight(o.URL, "/")
	o.MaxConcurrent, o.SlotTimeout = cmp.Or(o.MaxConcurrent, 16), cmp.Or(o.SlotTimeout, 250*time.Millisecond)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &HTTP{client: c, opts: o, slots: make(chan struct{}, o.MaxConcurrent)}, nil
}

// Ready checks whether the back end accepts commands, unless it responded within readyTTL.
func (h *HTTP) Ready(ctx context.Context, _ string) error {
	if h.opts.Now().Sub(time.Unix(0, h.lastResponse.Load())) < readyTTL {
		return nil
	}
	resp, err := h.client.Do(ctx, h.request(http.MethodGet, "/ready", "", nil))
	if err != nil {
		return relay.Errorf(relay.KindUnavailable, "operator: %w", err)
	}
	if !resp.OK() {
		return relay.Errorf(relay.KindUnavailable, "operator: not ready, status %d", resp.Status)
	}
	h.lastResponse.Store(h.opts.Now().UnixNano())
	return nil
}

func (h *HTTP) request(method, path, key string, body []byte) outbox.Request {
	req := httpout.JSONRequest(method, h.opts.URL+path, h.opts.Token, body)
	if key != "" {
		req.Headers["Idempotency-Key"] = key
	}
	return req
}

// Command sends a command. A response that does not follow the protocol is
// relay.KindUnavailable.
func (h *HTTP) Command(ctx context.Context, c provisioning.Command) (provisioning.Report, error) {
	body, err := json.Marshal(commandJSON{
		ID: c.ID, Action: string(c.Action), ICCID: c.ICCID, IMSI: c.IMSI, MSISDN: c.MSISDN,
		Services: c.Services, Subscriber: c.Subscriber, RequestedAt: c.At.UTC().Format(time.RFC3339),
	})
	if err != nil {
		return provisioning.Report{}, fmt.Errorf("operator: command %s: encode: %w", c.ID, err)
	}
	release, err := h.acquireSlot(ctx)
	if err != nil {
		return provisioning.Report{}, err
	}
	defer release()
	resp, err := h.client.Do(ctx, h.request(http.MethodPost, "/commands", c.ID, body))
	if err != nil {
		return provisioning.Report{}, relay.Errorf(relay.KindUnavailable, "operator: command %s: %w", c.ID, err)
	}
	retryAfter := delivery.ParseRetryAfter(resp.Header.Get("Retry-After"), h.opts.Now())
	parsed, err := responseOf(resp)
	if err != nil {
		cause := fmt.Errorf("operator: command %s: %w", c.ID, err)
		return provisioning.Report{}, &provisioning.UnavailableError{RetryAfter: retryAfter, Cause: cause}
	}
	h.lastResponse.Store(h.opts.Now().UnixNano())
	return parsed.report(retryAfter), nil
}

func (h *HTTP) acquireSlot(ctx context.Context) (release func(), err error) {
	timer := time.NewTimer(h.opts.SlotTimeout)
	defer timer.Stop()
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots }, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil, &provisioning.UnavailableError{RetryAfter: time.Second, Cause: errors.New("operator: too many commands are in progress")}
}

// Deliver delivers a message to a SIM.
func (h *HTTP) Deliver(ctx context.Context, id string, m outbox.SIM) (attempt.SIMResult, error) {
	body, err := json.Marshal(messageJSON{
		ID: id, ICCID: m.ICCID, From: m.From, To: m.To, Text: m.Text,
		Data: hex.EncodeToString(m.Data), UDH: hex.EncodeToString(m.UDH), Coding: m.Coding,
	})
	if err != nil {
		return attempt.SIMResult{}, delivery.Unsendable(fmt.Errorf("operator: message %s: encode: %w", id, err))
	}
	resp, err := h.client.Do(ctx, h.request(http.MethodPost, "/messages", id, body))
	if err != nil {
		// The error keeps only the text: a guard.Error would make the delivery dead, but here
		// the cause is a mistake in the operator's own settings.
		return attempt.SIMResult{}, delivery.OwnFault(errors.New("operator: " + err.Error()))
	}
	// A refusal ends the delivery. An overloaded back end uses up an attempt; wrong
	// credentials do not.
	parsed, err := responseOf(resp)
	switch {
	case err == nil && parsed.Status == refused:
		err = delivery.Unsendable(errors.New("the operator refuses the message: " + parsed.reason()))
	case resp.OK():
		err = nil
	case resp.Status >= 500 || resp.Status == http.StatusTooManyRequests || resp.Status == http.StatusRequestTimeout:
		err = fmt.Errorf("the operator answered with status %d", resp.Status)
	default:
		err = delivery.OwnFault(fmt.Errorf("operator: the back end answered with status %d", resp.Status))
	}
	return attempt.SIMResult{Response: resp.Excerpt()}, err
}
