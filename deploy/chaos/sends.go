package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// sendBlocks returns the prefixes of the destinations by kind. Every message has a destination of
// its own.
func sendBlocks() map[string]string {
	return map[string]string{sendKind: "44771", scheduledKind: "44773", deletedSendKind: "44774"}
}

// scheduleDelay is the delay of scheduled messages.
const scheduleDelay = 3 * time.Second

// messageOf returns the text and destination of the n-th message of a kind. Every third message
// has three parts, except messages to delete.
func messageOf(kind string, n int) (text, number string) {
	text = fmt.Sprintf("%s %d", kind, n)
	if n%3 == 2 && kind != deletedSendKind { // a deletion has the id of one part
		text += strings.Repeat(", again and again", 20)
	}
	return text, fmt.Sprintf("%s%07d", sendBlocks()[kind], n)
}

// submit submits the n-th message of a kind over REST, with an idempotency key. A zero sendAt means
// now. The 2xx answer is the acknowledgement, except for messages to delete. submit returns the
// message id, or "" without a 2xx answer.
func (s *site) submit(ctx context.Context, kind string, n int, sendAt time.Time) (id string) {
	text, number := messageOf(kind, n)
	order := map[string]any{"destinations": []string{number}, "message": text, "dlr_url": "http://" + s.sink.addr + "/dlr?id=%msgid&code=%code"}
	if !sendAt.IsZero() {
		order["send_time"] = sendAt.UTC().Format(time.RFC3339)
	}
	body, err := json.Marshal(order)
	if err != nil {
		return ""
	}
	s.ledger.offer(kind, number)
	a, _ := s.repeat(ctx, kind, http.MethodPost, "/v2/sms/send", string(body), "Idempotency-Key", number)
	var list struct {
		Data []struct{ ID json.Number }
	}
	if !a.ok() || json.Unmarshal([]byte(a.body), &list) != nil || len(list.Data) == 0 {
		return ""
	}
	id = list.Data[0].ID.String()
	if kind != deletedSendKind {
		s.ledger.ack(kind, number, id)
	}
	return id
}

func (s *site) sendREST(ctx context.Context, n int) { s.submit(ctx, sendKind, n, time.Time{}) }

// sendScheduled orders a message that is sent after scheduleDelay.
func (s *site) sendScheduled(ctx context.Context, n int) {
	s.submit(ctx, scheduledKind, n, time.Now().Add(scheduleDelay))
}

// sendDeleted orders a message for tomorrow and deletes it.
func (s *site) sendDeleted(ctx context.Context, n int) {
	id := s.submit(ctx, deletedSendKind, n, time.Now().Add(24*time.Hour))
	if id == "" {
		return
	}
	a, repeated := s.repeat(ctx, deletedSendKind, http.MethodDelete, "/v2/sms/"+id, "")
	if a.ok() || repeated && a.notFound() {
		_, number := messageOf(deletedSendKind, n)
		s.ledger.ack(deletedSendKind, number, id)
	}
}

// message is an outbound message in the admin API.
type message struct {
	ID          json.Number
	Destination string
	Parts       []struct{ State string }
}

// states returns the different states of the parts, sorted and separated by spaces.
func (m *message) states() string {
	states := map[string]bool{}
	for _, p := range m.Parts {
		states[p.State] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(states)), " ")
}

// messages returns the account's outbound messages that match filter, a part of a query string.
func (s *site) messages(ctx context.Context, filter string) (messages []message, err error) {
	for cursor := ""; ; {
		var page struct {
			Data []message
			Meta struct{ Next string }
		}
		if err := s.admin(ctx, http.MethodGet, "/admin/messages?account=1&limit=1000"+filter+cursor, "", &page); err != nil {
			return nil, err
		}
		messages = append(messages, page.Data...)
		if page.Meta.Next == "" {
			return messages, nil
		}
		cursor = "&cursor=" + page.Meta.Next
	}
}

// findMessages records the ordered messages, with their parts at the SMSC and their reports, and
// the account's balance.
func (s *site) findMessages(ctx context.Context, f findings) error {
	messages, err := s.messages(ctx, "")
	if err != nil {
		return err
	}
	paid := 0
	for i := range messages {
		m := &messages[i]
		kind := ""
		for k, block := range sendBlocks() {
			if strings.HasPrefix(m.Destination, block) {
				kind = k
			}
		}
		undone := s.undone(kind, m)
		f.see(kind, m.Destination, 1, undone)
		if f[kind][m.Destination].times > 1 {
			f.see(kind, m.Destination+" (second message "+m.ID.String()+")", 1, "")
		}
		if _, submissions := s.smsc.partsTo(m.Destination); submissions > 1 {
			f.see(kind, fmt.Sprintf("%s (submitted %d times)", m.Destination, submissions), 1, "")
		}
		for _, p := range m.Parts {
			if p.State != "removed" {
				paid++
			}
		}
	}
	return s.findCredit(ctx, f, paid)
}

// undone returns the reason why a message is not done, or "".
func (s *site) undone(kind string, m *message) string {
	want := "delivered"
	if kind == deletedSendKind {
		want = "removed"
	}
	if got := m.states(); got != want {
		return "it is " + got + ", want " + want
	}
	parts, _ := s.smsc.partsTo(m.Destination)
	switch {
	case want != "delivered":
		if parts > 0 {
			return "it was deleted but submitted"
		}
	case parts != len(m.Parts):
		return fmt.Sprintf("the SMSC has %d of %d parts", parts, len(m.Parts))
	case s.sink.times("report "+m.ID.String()+" 1") == 0:
		return "its report has not arrived"
	}
	return ""
}

// creditKind is the name of a kind with one item, the account's balance.
const creditKind = "credit"

// findCredit compares the balance with the number of paid parts.
func (s *site) findCredit(ctx context.Context, f findings, paid int) error {
	var list struct{ Meta struct{ Balance int } }
	if err := s.admin(ctx, http.MethodGet, "/admin/credit?account=1&limit=1", "", &list); err != nil {
		return err
	}
	s.ledger.ack(creditKind, "balance", "")
	undone := ""
	if want := openingCredit - paid; list.Meta.Balance != want {
		undone = fmt.Sprintf("it is %d, want %d for %d parts", list.Meta.Balance, want, paid)
	}
	f.see(creditKind, "balance", 1, undone)
	return nil
}

// resend resends messages with parts in the state unknown, as an operator does, if the SMSC has
// received all other parts and none of these.
func (s *site) resend(ctx context.Context) error {
	messages, err := s.messages(ctx, "&state=unknown")
	if err != nil {
		return err
	}
	var ids []string
	for i := range messages {
		m, unknown := &messages[i], 0
		for _, p := range m.Parts {
			if p.State == "unknown" {
				unknown++
			}
		}
		if parts, _ := s.smsc.partsTo(m.Destination); unknown > 0 && unknown == len(m.Parts)-parts {
			ids = append(ids, m.ID.String())
		}
	}
	if len(ids) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"account": 1, "ids": ids})
	if err != nil {
		return err
	}
	s.resent += len(ids)
	return s.admin(ctx, http.MethodPost, "/admin/messages/resend", string(body), nil)
}
