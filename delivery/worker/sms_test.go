package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// smsWorker is a Worker that sends messages of account 3, with records in SQLite.
type smsWorker struct {
	*testing.T
	*Worker
	records *recordstest.Records
	now     time.Time
}

func newSMSWorker(t *testing.T, credit int64) *smsWorker {
	t.Helper()
	s := &smsWorker{T: t, now: time.Date(2026, 7, 3, 9, 0, 0, 0, time.UTC)}
	s.records = recordstest.OpenAt(t, func() time.Time { return s.now })
	relaytest.NoError(t, s.records.Credit.Open(t.Context(), 3, credit, s.now))
	service := relaytest.Must(message.New(message.Deps{Store: s.records.Messages, Credit: s.records.Credit, Now: func() time.Time { return s.now }}))(t)
	s.Worker = newWorker(t, Deps{Messages: service, Now: func() time.Time { return s.now }})
	return s
}

func (s *smsWorker) sms(text string) outbox.Delivery {
	return outbox.Delivery{ID: "0a1b", Account: 3, Kind: outbox.KindRule, CreatedAt: s.now, SMS: &outbox.SMS{To: "447700900123", Originator: "Alarm", Text: text}}
}

// messages returns the messages that the account has sent, oldest first.
func (s *smsWorker) messages() []message.Message {
	s.Helper()
	messages, _, err := s.records.Messages.List(s.Context(), message.Filter{Account: 3, Limit: 100})
	relaytest.NoError(s, err)
	return messages
}

// expect compares the account's credit and the number of messages that it has sent.
func (s *smsWorker) expect(credit int64, messages int) {
	s.Helper()
	relaytest.Equal(s, "the credit", relaytest.Must(s.records.Credit.Balance(s.Context(), 3))(s), credit)
	relaytest.Equal(s, "the number of messages", len(s.messages()), messages)
}

func TestAnSMSIsSentAndChargedAsAMessageOfTheAccount(t *testing.T) {
	s := newSMSWorker(t, 5)
	r := s.Send(t.Context(), s.sms(strings.Repeat("Too warm. ", 17))) // 170 characters: two parts
	relaytest.Equal(t, "the class", r.Verdict.Class, delivery.Delivered)
	relaytest.Equal(t, "the error", r.Attempt.Error, "")
	if a := r.Attempt.Response; !strings.HasPrefix(a, "message ") || !strings.HasSuffix(a, ", 2 credits") {
		t.Errorf("the response is %q, want the message and 2 credits", a)
	}
	s.expect(3, 1)
	for _, m := range s.messages() {
		got := message.Message{Originator: m.Originator, Destination: m.Destination, Origin: m.Origin}
		relaytest.Equal(t, "the message", got, message.Message{Originator: "Alarm", Destination: "447700900123", Origin: "rule"})
		relaytest.Equal(t, "the number of parts", len(m.Parts), 2)
	}
}

func TestALongSMSIsTruncated(t *testing.T) {
	s := newSMSWorker(t, 20)
	r := s.Send(t.Context(), s.sms(strings.Repeat("Too warm. ", 1000)))
	relaytest.Equal(t, "the verdict", r.Verdict, delivery.Verdict{Class: delivery.Delivered})
	s.expect(10, 1)
}

func TestAnSMSOfASimulatorIsSimulated(t *testing.T) {
	s := newSMSWorker(t, 5)
	s.deps.Simulated = func(number string) bool { return number == "447700900123" }
	r := s.Send(t.Context(), s.sms("Too warm"))
	relaytest.Equal(t, "the result of the simulator", summaryOf(r), summary{Class: delivery.Delivered, Simulated: true})
	d := s.sms("Too warm")
	d.ID, d.SMS.To = "2", "447700900124"
	relaytest.Equal(t, "the result of another carrier", summaryOf(s.Send(t.Context(), d)), summary{Class: delivery.Delivered})
}

func TestARepeatedAttemptSendsAnSMSOnce(t *testing.T) {
	s := newSMSWorker(t, 1)
	d := s.sms("Too warm")
	sent := s.Send(t.Context(), d)
	for name, step := range map[string]struct {
		elapsed  time.Duration
		attempts []outbox.Attempt
	}{
		"the response was lost":          {time.Second, nil},
		"the process was down for weeks": {29 * 24 * time.Hour, nil},
		"a dead delivery was replayed":   {time.Hour, []outbox.Attempt{{Error: "sms: the database is down"}, {Error: noCredit}}},
	} {
		began := s.now
		s.now, d.Attempts = began.Add(step.elapsed), step.attempts
		r := s.Send(t.Context(), d)
		relaytest.Equal(t, name+": the verdict", r.Verdict, delivery.Verdict{Class: delivery.Delivered})
		relaytest.Equal(t, name+": the response", r.Attempt.Response, sent.Attempt.Response)
		s.now = began
	}
	s.expect(0, 1) // the account has no credit for another message
}

func TestAReplayOfADeliveredSMSSendsAnotherMessage(t *testing.T) {
	s := newSMSWorker(t, 5)
	d := s.sms("Too warm")
	for replays := range 3 {
		r := s.Send(t.Context(), d)
		s.expect(int64(4-replays), replays+1)
		repeated := s.Send(t.Context(), d) // before the first attempt is recorded
		relaytest.Equal(t, "the response of a repeated attempt", repeated.Attempt.Response, r.Attempt.Response)
		d.Attempts = append(d.Attempts, r.Attempt)
	}
}

func TestAnSMSWithoutCreditWaits(t *testing.T) {
	s := newSMSWorker(t, 0)
	d := s.sms("Too warm")
	for _, step := range []struct{ age, retryAfter time.Duration }{
		{0, 10 * time.Second}, {5 * time.Minute, 30 * time.Second}, {time.Hour, 6 * time.Minute}, {30 * 24 * time.Hour, 15 * time.Minute},
	} {
		s.now = d.CreatedAt.Add(step.age)
		r := s.Send(t.Context(), d)
		want := delivery.Verdict{Class: delivery.Fault, Reason: noCredit, RetryAfter: step.retryAfter}
		relaytest.Equal(t, fmt.Sprintf("the verdict after %s", step.age), r.Verdict, want)
		relaytest.Equal(t, "the error of the attempt", r.Attempt.Error, noCredit)
	}
	s.expect(0, 0)
	relaytest.NoError(t, s.records.Credit.Set(t.Context(), 3, 1, s.now))
	relaytest.Equal(t, "the verdict with credit", s.Send(t.Context(), d).Verdict, delivery.Verdict{Class: delivery.Delivered})
	s.expect(0, 1)
}

func TestAnSMSThatCannotBeSentIsDead(t *testing.T) {
	for name, tc := range map[string]struct {
		sms    outbox.SMS
		reason string
	}{
		"a long originator": {outbox.SMS{To: "447700900123", Originator: "longer than phones show", Text: "x"}, "The originator must be"},
		"a short number":    {outbox.SMS{To: "12", Text: "x"}, "is not a number of 7 to 15 digits"},
		"no text":           {outbox.SMS{To: "447700900123"}, "The message"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSMSWorker(t, 5)
			d := s.sms("")
			d.SMS = &tc.sms
			r := s.Send(t.Context(), d)
			relaytest.Equal(t, "the class", r.Verdict.Class, delivery.Dead)
			if !strings.Contains(r.Verdict.Reason, tc.reason) || r.Attempt.Error == "" {
				t.Errorf("reason = %q, error of the attempt = %q, want %q in the reason", r.Verdict.Reason, r.Attempt.Error, tc.reason)
			}
			s.expect(5, 0)
		})
	}
	d := outbox.Delivery{SMS: &outbox.SMS{To: "447700900123", Text: "x"}}
	r := newWorker(t, Deps{}).Send(t.Context(), d)
	relaytest.Equal(t, "the class without a message service", r.Verdict.Class, delivery.Dead)
}

// failingService is a message service that returns an error.
type failingService struct{ err error }

func (f failingService) Text(string, int) message.Body { return nil }

func (f failingService) Send(context.Context, message.Order) (message.OrderResult, error) {
	return message.OrderResult{}, f.err
}

func TestFaultsOfTheGatewayUseUpNoAttempt(t *testing.T) {
	d := outbox.Delivery{ID: "d", Account: relay.AccountID(3), SMS: &outbox.SMS{To: "447700900123", Text: "x"}}
	for name, tc := range map[string]struct {
		err  error
		want delivery.Class
	}{
		"the database is down":        {relay.Errorf(relay.KindUnavailable, "down"), delivery.Fault},
		"an unexpected error":         {context.DeadlineExceeded, delivery.Fault},
		"a message split differently": {relay.Invalid("Idempotency-Key", "The Idempotency-Key was used for another request."), delivery.Delivered},
		"an unknown account":          {relay.Errorf(relay.KindNotFound, "account 3"), delivery.Fault},
		"an invalid message":          {relay.Invalid("message", "no"), delivery.Dead},
	} {
		r := newWorker(t, Deps{Messages: failingService{tc.err}}).Send(t.Context(), d)
		relaytest.Equal(t, name+": the class", r.Verdict.Class, tc.want)
		relaytest.Equal(t, name+": the attempt has an error", r.Attempt.Error != "", tc.want != delivery.Delivered)
	}
}
