package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/lookup"
)

// In a back end's URL, the number replaces placeholder.
const placeholder = "%number"

// HTTP queries a back end over HTTP.
type HTTP struct {
	client     httpout.Doer
	url, token string
}

// NewHTTP returns an HTTP back end. A URL without %number gets the number as its last path
// segment. The token is sent as Authorization: Bearer, unless it is empty.
func NewHTTP(c httpout.Doer, url, token string) (*HTTP, error) {
	if _, err := httpout.ValidURL(strings.ReplaceAll(url, placeholder, "0")); err != nil {
		return nil, errors.New("lookup: the URL must be http or https with a host")
	}
	return &HTTP{client: c, url: url, token: token}, nil
}

// Find queries the back end. Any response except status 200 with a lookup result is
// relay.KindUnavailable.
func (h *HTTP) Find(ctx context.Context, number relay.MSISDN) (lookup.Result, error) {
	url := strings.ReplaceAll(h.url, placeholder, string(number))
	if !strings.Contains(h.url, placeholder) {
		url = strings.TrimRight(h.url, "/") + "/" + string(number)
	}
	resp, err := h.client.Do(ctx, httpout.JSONRequest(http.MethodGet, url, h.token, nil))
	if err != nil {
		return lookup.Result{}, relay.Errorf(relay.KindUnavailable, "lookup: %w", err)
	}
	if resp.Status != http.StatusOK || resp.BodyErr != nil || resp.Truncated {
		return lookup.Result{}, relay.Errorf(relay.KindUnavailable, "lookup: the back end answered with status %d", resp.Status)
	}
	r, err := parse(resp.Body)
	if err != nil {
		return r, relay.Errorf(relay.KindUnavailable, "lookup: response of the back end: %w", err)
	}
	r.Number = number
	return r, nil
}

type response struct {
	Data   *response `json:"data"`
	Status *struct {
		Code *lookup.Code `json:"code"`
	} `json:"status"`
	MCC     string `json:"mcc"`
	MNC     string `json:"mnc"`
	Network struct {
		Name    string `json:"name"`
		Country string `json:"country"`
		Contact string `json:"contact"`
	} `json:"network"`
	IMSI    string `json:"imsi"`
	Ported  bool   `json:"ported"`
	Roaming bool   `json:"roaming"`
}

func parse(body []byte) (lookup.Result, error) {
	var r response
	if err := json.Unmarshal(body, &r); err != nil {
		return lookup.Result{}, err
	}
	if r.Data != nil {
		r = *r.Data
	}
	if r.Status == nil || r.Status.Code == nil || !r.Status.Code.Known() {
		return lookup.Result{}, errors.New("status.code must be 0, 1, 2 or 3")
	}
	return lookup.Result{
		Code: *r.Status.Code, MCC: r.MCC, MNC: r.MNC, IMSI: r.IMSI, Ported: r.Ported, Roaming: r.Roaming,
		Network: r.Network.Name, Country: r.Network.Country, Contact: r.Network.Contact,
	}, nil
}
