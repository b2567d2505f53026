package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore/recordstest"
)

// senders is a worker whose account 3 sends messages, with records in SQLite.
type senders struct {
	*testing.T
	*Worker
	records *recordstest.Records
	now     time.Time
}

func newSenders(t *testing.T, credit int64) *senders {
	t.Helper()
	s := &senders{T: t, now: time.Date(2026, 7, 3, 9, 0, 0, 0, time.UTC)}
	s.records = recordstest.OpenAt(t, func() time.Time { return s.now })
	if err := s.records.Credit.Open(t.Context(), 3, credit, s.now); err != nil {
		t.Fatal(err)
	}
	service, err := message.New(message.Deps{Store: s.records.Messages, Credit: s.records.Credit}, message.Options{Now: func() time.Time { return s.now }})
	if err != nil {
		t.Fatal(err)
	}
	s.Worker = newWorker(t, Deps{Messages: service, Now: func() time.Time { return s.now }})
	return s
}

func (s *senders) sms(text string) outbox.Delivery {
	return outbox.Delivery{ID: "0a1b", Account: 3, Kind: outbox.KindRule, CreatedAt: s.now, SMS: &outbox.SMS{To: "447700900123", Originator: "Alarm", Text: text}}
}

// messages are those that the account has sent, oldest first.
func (s *senders) messages() []message.Message {
	s.Helper()
	all, _, err := s.records.Messages.List(s.Context(), message.Filter{Account: 3, Limit: 100})
	if err != nil {
		s.Fatal(err)
	}
	return all
}

// holds checks what the account has left, and how many messages it has sent.
func (s *senders) holds(credit int64, messages int) {
	s.Helper()
	balance, err := s.records.Credit.Balance(s.Context(), 3)
	if err != nil || balance != credit || len(s.messages()) != messages {
		s.Errorf("credit %d, want %d; %d messages, want %d; %v", balance, credit, len(s.messages()), messages, err)
	}
}

func TestAnSMSIsSentByTheAccount(t *testing.T) {
	s := newSenders(t, 5)
	r := s.Send(t.Context(), s.sms(strings.Repeat("Too warm. ", 17))) // 170 characters: two parts
	if r.Verdict.Class != delivery.Delivered || !strings.HasPrefix(r.Attempt.Response, "message ") || !strings.HasSuffix(r.Attempt.Response, ", 2 credits") || r.Attempt.Error != "" {
		t.Fatalf("%+v", r)
	}
	s.holds(3, 1)
	if m := s.messages()[0]; m.Originator != "Alarm" || m.Destination != "447700900123" || len(m.Parts) != 2 || m.Origin != "rule" {
		t.Errorf("%+v", m)
	}
}

func TestALongSMSIsCutOff(t *testing.T) {
	s := newSenders(t, 20)
	if r := s.Send(t.Context(), s.sms(strings.Repeat("Too warm. ", 1000))); r.Verdict.Class != delivery.Delivered {
		t.Errorf("%+v", r)
	}
	s.holds(10, 1)
}

func TestAnSMSOfASimulatorIsSimulated(t *testing.T) {
	s := newSenders(t, 5)
	s.deps.Simulated = func(number string) bool { return number == "447700900123" }
	if r := s.Send(t.Context(), s.sms("Too warm")); r.Verdict.Class != delivery.Delivered || !r.Simulated {
		t.Errorf("%+v", r)
	}
	d := s.sms("Too warm")
	d.ID, d.SMS.To = "2", "447700900124"
	if r := s.Send(t.Context(), d); r.Verdict.Class != delivery.Delivered || r.Simulated {
		t.Errorf("another carrier: %+v", r)
	}
}

func TestAnSMSIsSentOnceWhateverIsRepeated(t *testing.T) {
	s := newSenders(t, 1)
	d := s.sms("Too warm")
	sent := s.Send(t.Context(), d)
	for name, step := range map[string]struct {
		later    time.Duration
		attempts []outbox.Attempt
	}{
		"the answer was lost":                     {time.Second, nil},
		"the process was down for weeks":          {29 * 24 * time.Hour, nil},
		"one that died of other errors, replayed": {time.Hour, []outbox.Attempt{{Error: "sms: the database is down"}, {Error: noCredit}}},
	} {
		began := s.now
		s.now, d.Attempts = began.Add(step.later), step.attempts
		if r := s.Send(t.Context(), d); r.Verdict.Class != delivery.Delivered || r.Attempt.Response != sent.Attempt.Response {
			t.Errorf("%s: %+v", name, r)
		}
		s.now = began
	}
	s.holds(0, 1) // although there is no credit for another
}

func TestAReplayOfADeliveredSMSSendsAnother(t *testing.T) {
	s := newSenders(t, 5)
	d := s.sms("Too warm")
	for sent := range 3 {
		r := s.Send(t.Context(), d)
		s.holds(int64(4-sent), sent+1)
		if again := s.Send(t.Context(), d); again.Attempt.Response != r.Attempt.Response { // before the first was recorded
			t.Errorf("%+v, then %+v", r, again)
		}
		d.Attempts = append(d.Attempts, r.Attempt)
	}
}

func TestAnSMSWithoutCreditWaits(t *testing.T) {
	s := newSenders(t, 0)
	d := s.sms("Too warm")
	for _, step := range []struct{ waited, again time.Duration }{
		{0, 10 * time.Second}, {5 * time.Minute, 30 * time.Second}, {time.Hour, 6 * time.Minute}, {30 * 24 * time.Hour, 15 * time.Minute},
	} {
		s.now = d.CreatedAt.Add(step.waited)
		r := s.Send(t.Context(), d)
		if r.Verdict.Class != delivery.Fault || r.Verdict.RetryAfter != step.again || r.Verdict.Reason != noCredit || r.Attempt.Error != noCredit {
			t.Errorf("after %s: %+v", step.waited, r)
		}
	}
	s.holds(0, 0)
	if err := s.records.Credit.Set(t.Context(), 3, 1, s.now); err != nil {
		t.Fatal(err)
	}
	if r := s.Send(t.Context(), d); r.Verdict.Class != delivery.Delivered {
		t.Errorf("with credit: %+v", r)
	}
	s.holds(0, 1)
}

func TestAnSMSThatCannotBeSentIsDead(t *testing.T) {
	for name, tc := range map[string]struct {
		sms  outbox.SMS
		says string
	}{
		"an originator":  {outbox.SMS{To: "447700900123", Originator: "longer than phones show", Text: "x"}, "The originator must be"},
		"a number":       {outbox.SMS{To: "12", Text: "x"}, "is not a number of 7 to 15 digits"},
		"nothing to say": {outbox.SMS{To: "447700900123"}, "The message"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSenders(t, 5)
			d := s.sms("")
			d.SMS = &tc.sms
			if r := s.Send(t.Context(), d); r.Verdict.Class != delivery.Dead || !strings.Contains(r.Verdict.Reason, tc.says) || r.Attempt.Error == "" {
				t.Errorf("%+v", r)
			}
			s.holds(5, 0)
		})
	}
	d := outbox.Delivery{SMS: &outbox.SMS{To: "447700900123", Text: "x"}}
	if r := newWorker(t, Deps{}).Send(t.Context(), d); r.Verdict.Class != delivery.Dead {
		t.Errorf("nobody sends messages: %+v", r)
	}
}

// refusing is a service of messages that fails.
type refusing struct{ err error }

func (r refusing) Text(string, int) message.Body { return nil }

func (r refusing) Send(context.Context, message.Order) (message.Sent, error) {
	return message.Sent{}, r.err
}

func TestFaultsOfTheGatewayUseUpNoAttempt(t *testing.T) {
	d := outbox.Delivery{ID: "d", Account: account.ID(3), SMS: &outbox.SMS{To: "447700900123", Text: "x"}}
	for name, tc := range map[string]struct {
		err  error
		want delivery.Class
	}{
		"the database is down":           {relay.Errorf(relay.KindUnavailable, "down"), delivery.Fault},
		"an unexpected error":            {context.DeadlineExceeded, delivery.Fault},
		"sent before, in another coding": {relay.Invalid("Idempotency-Key", "The Idempotency-Key was used for another request."), delivery.Delivered},
		"an account that is not there":   {relay.Errorf(relay.KindNotFound, "account 3"), delivery.Fault},
		"a message that cannot be coded": {relay.Invalid("message", "no"), delivery.Dead},
	} {
		r := newWorker(t, Deps{Messages: refusing{tc.err}}).Send(t.Context(), d)
		if r.Verdict.Class != tc.want || (r.Attempt.Error == "") != (tc.want == delivery.Delivered) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
