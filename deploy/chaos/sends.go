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

// sendBlocks are the number blocks of what is sent: every message has a number of
// its own.
func sendBlocks() map[string]string {
	return map[string]string{ofSends: "44771", ofScheduled: "44773", ofDeleted: "44774"}
}

// shortly is the delay of messages that are scheduled for soon.
const shortly = 3 * time.Second

// sending is the n-th message of a kind and its number; every third has three
// parts.
func sending(kind string, n int) (text, number string) {
	text = fmt.Sprintf("%s %d", kind, n)
	if n%3 == 2 && kind != ofDeleted { // an entry to delete is one part
		text += strings.Repeat(", again and again", 20)
	}
	return text, fmt.Sprintf("%s%07d", sendBlocks()[kind], n)
}

// order sends a text over REST, once however often it is asked; sendAt is when, zero for now. A
// message of any kind but those that are deleted is acknowledged thereby.
func (s *site) order(ctx context.Context, kind string, n int, sendAt time.Time) (id string) {
	text, number := sending(kind, n)
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
	if !a.done() || json.Unmarshal([]byte(a.body), &list) != nil || len(list.Data) == 0 {
		return ""
	}
	id = list.Data[0].ID.String()
	if kind != ofDeleted {
		s.ledger.ack(kind, number, id)
	}
	return id
}

func (s *site) sendREST(ctx context.Context, n int) { s.order(ctx, ofSends, n, time.Time{}) }

// sendScheduled orders messages for shortly.
func (s *site) sendScheduled(ctx context.Context, n int) {
	s.order(ctx, ofScheduled, n, time.Now().Add(shortly))
}

// sendDeleted orders a message for tomorrow and deletes it.
func (s *site) sendDeleted(ctx context.Context, n int) {
	id := s.order(ctx, ofDeleted, n, time.Now().Add(24*time.Hour))
	if id == "" {
		return
	}
	a, repeated := s.repeat(ctx, ofDeleted, http.MethodDelete, "/v2/sms/"+id, "")
	if a.done() || repeated && a.gone() {
		_, number := sending(ofDeleted, n)
		s.ledger.ack(ofDeleted, number, id)
	}
}

// message is a sent message as the operator sees it.
type message struct {
	ID          json.Number
	Destination string
	Parts       []struct{ State string }
}

// states are those of the parts, each once.
func (m *message) states() string {
	states := map[string]bool{}
	for _, p := range m.Parts {
		states[p.State] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(states)), " ")
}

// messages lists what the account has sent, as far as a filter has it.
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

// findMessages looks at what was ordered, at the SMSC and at the reports, and
// compares the credit.
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
			f.see(kind, m.Destination+" (again as "+m.ID.String()+")", 1, "")
		}
		if _, repeats := s.smsc.submitted(m.Destination); repeats > 1 {
			f.see(kind, fmt.Sprintf("%s (submitted %d times)", m.Destination, repeats), 1, "")
		}
		for _, p := range m.Parts {
			if p.State != "removed" {
				paid++
			}
		}
	}
	return s.findCredit(ctx, f, paid)
}

// undone returns what is missing of a message.
func (s *site) undone(kind string, m *message) string {
	want := "delivered"
	if kind == ofDeleted {
		want = "removed"
	}
	if got := m.states(); got != want {
		return "it is " + got + ", want " + want
	}
	parts, _ := s.smsc.submitted(m.Destination)
	switch {
	case want != "delivered":
		if parts > 0 {
			return "it was submitted"
		}
	case parts != len(m.Parts):
		return fmt.Sprintf("the SMSC has %d of %d parts", parts, len(m.Parts))
	case s.sink.times("report "+m.ID.String()+" 1") == 0:
		return "its report has not come"
	}
	return ""
}

// ofCredit is the kind of the account's balance: one item.
const ofCredit = "credit"

// findCredit compares the balance with the parts that are paid for.
func (s *site) findCredit(ctx context.Context, f findings, paid int) error {
	var list struct{ Meta struct{ Balance int } }
	if err := s.admin(ctx, http.MethodGet, "/admin/credit?account=1&limit=1", "", &list); err != nil {
		return err
	}
	s.ledger.ack(ofCredit, "balance", "")
	undone := ""
	if want := opening - paid; list.Meta.Balance != want {
		undone = fmt.Sprintf("it is %d, want %d for %d parts", list.Meta.Balance, want, paid)
	}
	f.see(ofCredit, "balance", 1, undone)
	return nil
}

// resend does what an operator does about parts whose outcome is unknown: those that
// the SMSC never got are sent again.
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
		if parts, _ := s.smsc.submitted(m.Destination); unknown > 0 && unknown == len(m.Parts)-parts {
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
