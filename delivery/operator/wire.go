package operator

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sim"
)

// commandJSON is a command on the wire.
type commandJSON struct {
	ID          string   `json:"id"`
	Action      string   `json:"action"`
	ICCID       string   `json:"iccid"`
	IMSI        string   `json:"imsi,omitempty"`
	MSISDN      string   `json:"msisdn,omitempty"`
	Services    []string `json:"services,omitempty"`
	Subscriber  string   `json:"subscriber_id,omitempty"`
	RequestedAt string   `json:"requested_at"`
}

func commandOf(c sim.Command) commandJSON {
	return commandJSON{
		ID: c.ID, Action: string(c.Action), ICCID: c.ICCID, IMSI: c.IMSI, MSISDN: c.MSISDN,
		Services: c.Services, Subscriber: c.Subscriber, RequestedAt: c.At.UTC().Format(time.RFC3339),
	}
}

// messageJSON is a message for a SIM on the wire.
type messageJSON struct {
	ID     string `json:"id"`
	ICCID  string `json:"iccid"`
	From   string `json:"from"`
	To     string `json:"to"`
	Text   string `json:"text,omitempty"`
	Data   string `json:"data,omitempty"` // hex
	UDH    string `json:"udh,omitempty"`  // hex
	Coding int    `json:"coding"`
}

func messageOf(id string, m outbox.SIM) messageJSON {
	return messageJSON{
		ID: id, ICCID: m.ICCID, From: m.From, To: m.To, Text: m.Text,
		Data: hex.EncodeToString(m.Data), UDH: hex.EncodeToString(m.UDH), Coding: m.Coding,
	}
}

// The words of an answer's status.
const (
	completed = "completed"
	pending   = "pending"
	refused   = "refused"
)

// answer is what the back end says.
type answer struct {
	Status     string  `json:"status"`
	State      string  `json:"state"`
	Reason     string  `json:"reason"`
	RetryAfter float64 `json:"retry_after"` // seconds
}

// answerOf reads an answer. A refusal may come with a 4xx, all else with a 2xx
// only: what a proxy says in the back end's place ends nothing.
func answerOf(resp httpout.Response) (answer, error) {
	if resp.Status < 200 || resp.Status > 499 || resp.BodyErr != nil || resp.Truncated {
		return answer{}, fmt.Errorf("the back end answered with status %d", resp.Status)
	}
	a, err := parseAnswer(resp.Body)
	if err != nil || resp.Status > 299 && a.Status != refused {
		return answer{}, errors.Join(fmt.Errorf("the back end answered with status %d", resp.Status), err)
	}
	return a, nil
}

// parseAnswer reads the body of an answer.
func parseAnswer(body []byte) (answer, error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return answer{}, fmt.Errorf("answer: %w", err)
	}
	switch a.Status {
	case completed, pending, refused:
	default:
		return answer{}, errors.New("answer: status: want completed, pending or refused")
	}
	if a.State != "" && !slices.Contains(sim.States(), sim.State(a.State)) {
		return answer{}, errors.New("answer: state: want pending, active, suspended or terminated")
	}
	return a, nil
}

// longest is how long a reason may be, in bytes.
const longest = 300

// reason is the back end's, fit to be shown.
func (a answer) reason() string {
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, a.Reason)
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	if text == "" {
		return "no reason was given"
	}
	return text
}

// most is how long a back end may have us wait at a time.
const most = time.Hour

func (a answer) report(after time.Duration) sim.Report {
	if s := a.RetryAfter; s > 0 {
		after = time.Duration(min(s, most.Seconds()) * float64(time.Second))
	}
	r := sim.Report{State: sim.State(a.State)}
	switch a.Status {
	case pending:
		r.Pending, r.After = true, min(after, most)
	case refused:
		r.Refused = "The operator refused: " + a.reason() + "."
	}
	return r
}
