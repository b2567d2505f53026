package submit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay/message"
)

func TestTheLongestPrefixChoosesTheCarrier(t *testing.T) {
	var queues []*carrierQueue
	for _, r := range []Route{
		{Name: "world"}, {Name: "britain", Prefixes: []string{"44", "3531"}}, {Name: "mobile", Prefixes: []string{"447"}}, {Name: "second", Prefixes: []string{"44"}},
	} {
		queues = append(queues, &carrierQueue{route: r})
	}
	all := newRouter(queues)
	for number, want := range map[string]string{
		"447700900123": "mobile", "442079460000": "britain", "353123": "britain", "3532": "world", "49170": "world",
	} {
		if got := all.queueFor(number); got == nil || got.route.Name != want {
			t.Errorf("%s goes over %+v, want %s", number, got, want)
		}
	}
	if got := newRouter(queues[1:]).queueFor("49170"); got != nil {
		t.Errorf("a number that nobody is for goes over %s", got.route.Name)
	}
}

func TestWhatIsDispatchedIsSubmittedAtOnce(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Carrier: n, Reports: true}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		w.Start()
		w.Dispatch([]message.Message{s.save(1, "447700900123", 1, time.Now().Add(time.Minute))})
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if p := s.part(1, 0); n.all() != "7-1-0" || p.State != message.Accepted || p.Ref != "M7-1-0" || p.Carrier != "one" {
			t.Errorf("sent %q, part %+v", n.all(), p)
		}
		if len(s.count().bound) != 1 || s.count().bound[0].IDs[0] != "m7-1-0" || strings.Join(s.count().told, ",") != "1 accepted" {
			t.Errorf("bound %+v, told %q", s.count().bound, s.count().told)
		}
		stop(t, w)
	})
}

// A message that was taken before such orders were refused.
func TestNoPartReplacesAnotherOfItsMessage(t *testing.T) {
	for parts, want := range map[int]bool{1: true, 2: false} {
		item := &item{msg: message.Message{Replace: true, Parts: make([]message.Part, parts)}}
		if got := item.submission(parts - 1).Replace; got != want {
			t.Errorf("the last of %d parts replaces: %t", parts, got)
		}
	}
}

// What the gateway itself refuses has cost nothing; what the carrier refuses has.
func TestWhatNoCarrierHasHadIsRefunded(t *testing.T) {
	for unsent, want := range map[bool]int{true: 1, false: 0} {
		n := &network{answer: func(carrier.Submission) carrier.Outcome {
			return carrier.Outcome{Verdict: carrier.Rejected, Unsent: unsent, Reason: "no"}
		}}
		bubble(t, []Route{{Name: "one", Carrier: n}}, Options{}, func(t *testing.T, w *Worker, s *store) {
			w.Start()
			w.Dispatch([]message.Message{s.save(1, "447700900123", 1, time.Now().Add(time.Minute))})
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if s.states(1) != "rejected" || s.count().refunds != want {
				t.Errorf("unsent %t: %s, %d refunds", unsent, s.states(1), s.count().refunds)
			}
			stop(t, w)
		})
	}
}

func TestTheNumbersCarrierSaysWhatItWrites(t *testing.T) {
	ascii := func(text string) bool { return text == "a" }
	w, err := New(Deps{Work: newStore(), Receipts: newStore(), Routes: []Route{
		{Name: "latin", Prefixes: []string{"44"}, Carrier: &network{}, FitsSevenBit: ascii}, {Name: "all", Prefixes: []string{"49"}, Carrier: &network{}},
	}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range map[string]bool{"447700900123": false, "49170": true, "1212": true} {
		if got := w.FitsSevenBit(number, "€"); got != want {
			t.Errorf("%s: %t", number, got)
		}
	}
	if !w.FitsSevenBit("447700900123", "a") {
		t.Error("the first does not write a")
	}
}

func TestTheNumbersCarrierSaysWhatItShows(t *testing.T) {
	w, err := New(Deps{Work: newStore(), Receipts: newStore(), Routes: []Route{
		{Name: "numbers", Prefixes: []string{"44"}, Carrier: &network{}, AcceptsOriginator: func(o string) bool { return o == "1" }}, {Name: "all", Carrier: &network{}},
	}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w.AcceptsOriginator("447700900123", "A&B") || !w.AcceptsOriginator("447700900123", "1") || !w.AcceptsOriginator("49170", "A&B") {
		t.Error("another carrier was asked")
	}
}

func TestMessagesOfTheSimulatorAreKnown(t *testing.T) {
	w, err := New(Deps{Work: newStore(), Receipts: newStore(), Routes: []Route{
		{Name: "one", Prefixes: []string{"44"}, Carrier: &network{}}, {Name: message.Simulator, Prefixes: []string{"49"}, Carrier: &network{}},
	}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range map[string]bool{"447700900123": false, "491701234567": true, "33612345678": false} {
		if got := w.Simulated(number); got != want {
			t.Errorf("%s: %t", number, got)
		}
	}
}

// checked is a network that says why it is not there.
type checked struct{ network }

func (*checked) Check(context.Context) error { return errors.New("waiting: connection refused") }

func TestWhyAMessageWaits(t *testing.T) {
	n := &checked{network{notReady: true}}
	bubble(t, []Route{{Name: "one", Prefixes: []string{"44"}, Carrier: n}, {Name: "two", Prefixes: []string{"49"}, Carrier: &network{answer: func(carrier.Submission) carrier.Outcome {
		return carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: "slow"}
	}}}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		w.Start()
		says := func(number, want string) {
			t.Helper()
			if got := w.Waits(t.Context(), number); got != want {
				t.Errorf("%s: %q, want %q", number, got, want)
			}
		}
		says("447700900123", "waits: the carrier one is not bound: waiting: connection refused")
		says("1212", "")
		says("49170", "")
		w.Dispatch([]message.Message{s.save(1, "49170", 1, time.Now().Add(time.Minute))})
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		says("49170", "waits: the carrier two throttles or cannot be reached")
		n.set(func() { n.notReady = false })
		says("447700900123", "")
		stop(t, w)
	})
}

func TestWhatIsDueIsClaimedAndWhatIsNotIsNot(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Carrier: n}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		s.save(1, "447700900123", 1, time.Now())
		m := s.save(2, "447700900123", 1, time.Now().Add(time.Hour))
		s.all[m.Ref()].Parts[0].ScheduledAt = time.Now().Add(time.Hour)
		w.Start()
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if n.all() != "7-1-0" {
			t.Errorf("sent %q before its time", n.all())
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if n.all() != "7-1-0 7-2-0" || s.states(2) != "accepted" {
			t.Errorf("sent %q, then %s", n.all(), s.states(2))
		}
		stop(t, w)
	})
}

func TestTheWindowBoundsWhatIsUnderWayAndPartsKeepTheirOrder(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Carrier: n, Window: 4}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		w.Start()
		w.Dispatch([]message.Message{s.save(1, "447700900123", 6, time.Now().Add(time.Minute)), s.save(11, "447700900124", 2, time.Now().Add(time.Minute))})
		var want []string
		for i := range 8 {
			id := fmt.Sprintf("7-1-%d", i)
			if i >= 6 {
				id = fmt.Sprintf("7-11-%d", i-6)
			}
			want = append(want, id)
		}
		for i := range 8 {
			synctest.Wait()
			if got := strings.Fields(n.all()); !slices.Equal(got, want[:min(8, i+4)]) {
				t.Fatalf("after %d answers %q were sent", i, got)
			}
			n.say(want[i], carrier.Outcome{Verdict: carrier.Accepted})
		}
		time.Sleep(10 * time.Millisecond)
		if n.peak() != 4 || s.states(1) != strings.TrimSpace(strings.Repeat("accepted ", 6)) {
			t.Errorf("%d at once; %s", n.peak(), s.states(1))
		}
		stop(t, w)
	})
}

func TestInTurnPartsOfAMessageLeaveOneAfterTheOther(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Carrier: n, InTurn: true}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		w.Start()
		w.Dispatch([]message.Message{s.save(1, "447700900123", 2, time.Now().Add(time.Minute)), s.save(11, "447700900124", 1, time.Now().Add(time.Minute))})
		synctest.Wait()
		if n.all() != "7-1-0 7-11-0" {
			t.Errorf("sent %q", n.all())
		}
		n.say("7-1-0", carrier.Outcome{Verdict: carrier.Accepted})
		synctest.Wait()
		if n.all() != "7-1-0 7-11-0 7-1-1" {
			t.Errorf("then %q", n.all())
		}
		n.say("7-1-1", carrier.Outcome{Verdict: carrier.Accepted})
		n.say("7-11-0", carrier.Outcome{Verdict: carrier.Accepted})
		stop(t, w)
	})
}

func TestTheRateIsKept(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Carrier: n, Window: 1000, PerSecond: 50}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		for i := range 200 {
			s.save(message.ID(i+1), "447700900123", 1, time.Now())
		}
		w.Start()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := len(strings.Fields(n.all())); got < 95 || got > 107 {
			t.Errorf("%d left in two seconds at 50 a second", got)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got := len(strings.Fields(n.all())); got != 200 {
			t.Errorf("%d left in all", got)
		}
		stop(t, w)
	})
}

func TestThrottlingBacksOffAndFailsNothing(t *testing.T) {
	limit, taken := 3, 0
	var second time.Time
	n := &network{answer: func(carrier.Submission) carrier.Outcome {
		if now := time.Now(); now.Sub(second) >= time.Second {
			second, taken = now, 0
		}
		if taken++; taken > limit {
			return carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: "slow down"}
		}
		return carrier.Outcome{Verdict: carrier.Accepted}
	}}
	bubble(t, []Route{{Name: "one", Carrier: n, Window: 8}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		for i := range 60 {
			s.save(message.ID(i+1), "447700900123", 1, time.Now())
		}
		w.Start()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		for i := range 60 {
			if got := s.states(message.ID(i + 1)); got != "accepted" {
				t.Errorf("%d is %s", i+1, got)
			}
		}
		if got := len(strings.Fields(n.all())); got > 300 {
			t.Errorf("the carrier was asked %d times for 60 messages", got)
		}
		stop(t, w)
	})
}

func TestTheCarrierSaysHowLongToWait(t *testing.T) {
	first := true
	n := &network{answer: func(carrier.Submission) carrier.Outcome {
		if first {
			first = false
			return carrier.Outcome{Verdict: carrier.Later, Throttled: true, After: 45 * time.Second}
		}
		return carrier.Outcome{Verdict: carrier.Accepted}
	}}
	bubble(t, []Route{{Name: "one", Carrier: n}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		s.save(1, "447700900123", 1, time.Now())
		w.Start()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(n.tried()) != 2 || n.tried()[1].Sub(n.tried()[0]) < 45*time.Second || n.tried()[1].Sub(n.tried()[0]) > 47*time.Second {
			t.Errorf("asked at %v", n.tried())
		}
		stop(t, w)
	})
}

func TestWhatFailsIsTriedForADayAndThenRefunded(t *testing.T) {
	n := &network{answer: func(carrier.Submission) carrier.Outcome {
		return carrier.Outcome{Verdict: carrier.Later, Reason: "system error"}
	}}
	bubble(t, []Route{{Name: "one", Carrier: n}}, Options{Poll: 10 * time.Second}, func(t *testing.T, w *Worker, s *store) {
		s.save(1, "447700900123", 1, time.Now())
		w.Start()
		time.Sleep(23 * time.Hour)
		synctest.Wait()
		if p := s.part(1, 0); p.State != message.Pending || p.Reason != "system error" || len(n.tried()) < 20 || len(n.tried()) > 45 {
			t.Errorf("after 23 hours and %d attempts: %+v", len(n.tried()), p)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if p := s.part(1, 0); p.State != message.Rejected || s.count().refunds != 1 || p.Reason != "given up after 24h0m0s: system error" {
			t.Errorf("after 26 hours: %+v, %d refunds", p, s.count().refunds)
		}
		stop(t, w)
	})
}

func TestANumberWithoutACarrierIsRefunded(t *testing.T) {
	bubble(t, []Route{{Name: "one", Carrier: &network{}, Prefixes: []string{"44"}}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		s.save(1, "49170", 2, time.Now())
		w.Start()
		time.Sleep(time.Second)
		synctest.Wait()
		if s.states(1) != "rejected rejected" || s.count().refunds != 2 || s.part(1, 0).Reason != "there is no carrier for the number" {
			t.Errorf("%s, %d refunds", s.states(1), s.count().refunds)
		}
		stop(t, w)
	})
}

func TestAnUnknownOutcomeIsNotSentAgainAndALateAnswerMendsIt(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Carrier: n, Reports: true}}, Options{Poll: 10 * time.Second}, func(t *testing.T, w *Worker, s *store) {
		s.save(1, "447700900123", 1, time.Now())
		w.Start()
		time.Sleep(time.Second)
		n.say("7-1-0", carrier.Outcome{Verdict: carrier.Unknown, Reason: "silence"})
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n.all() != "7-1-0" || s.states(1) != "unknown" || s.part(1, 0).Reason != "silence" {
			t.Errorf("sent %q, %s", n.all(), s.states(1))
		}
		if len(s.count().bound) != 1 || !strings.HasPrefix(s.count().bound[0].IDs[0], "ref ") {
			t.Errorf("bound %+v", s.count().bound)
		}
		n.say("7-1-0", carrier.Outcome{Verdict: carrier.Accepted, ID: "00A1"})
		time.Sleep(time.Second)
		synctest.Wait()
		if s.states(1) != "accepted" || len(s.count().bound) != 2 || s.count().bound[1].IDs[0] != "a1" {
			t.Errorf("after the answer: %s, %+v", s.states(1), s.count().bound)
		}
		stop(t, w)
	})
}

func TestAfterACrash(t *testing.T) {
	for name, tc := range map[string]struct {
		route Route
		was   string // the carrier that it was handed to
		want  string
		sent  string
	}{
		"what a carrier may have is unknown":               {Route{Name: "one"}, "one", "unknown accepted", "7-1-1"},
		"a carrier that knows what it gets twice gets it":  {Route{Name: "one", Idempotent: true}, "one", "accepted accepted", "7-1-0 7-1-1"},
		"but not if another one may have it":               {Route{Name: "one", Idempotent: true}, "gone", "unknown accepted", "7-1-1"},
		"and not if there is no carrier for it any longer": {Route{Name: "one", Prefixes: []string{"49"}}, "one", "unknown rejected", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := &network{answer: accept}
			tc.route.Carrier = n
			bubble(t, []Route{tc.route}, Options{}, func(t *testing.T, w *Worker, s *store) {
				m := s.save(1, "447700900123", 2, time.Now())
				p := &s.all[m.Ref()].Parts[0]
				p.State, p.Carrier = message.Sending, tc.was
				w.Start()
				time.Sleep(time.Second)
				synctest.Wait()
				if s.states(1) != tc.want || n.all() != tc.sent {
					t.Errorf("%s, sent %q; want %s, %q", s.states(1), n.all(), tc.want, tc.sent)
				}
				stop(t, w)
			})
		})
	}
}

func TestWhileTheStoreIsAwayNothingIsLostOrSentTwice(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Carrier: n}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		w.Start()
		m, later := s.save(1, "447700900123", 1, time.Now().Add(w.Lease())), s.save(2, "447700900123", 1, time.Now().Add(w.Lease()))
		w.Dispatch([]message.Message{m})
		synctest.Wait()
		s.change(func() { s.down = true })
		n.say("7-1-0", carrier.Outcome{Verdict: carrier.Accepted})
		w.Dispatch([]message.Message{later})
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n.all() != "7-1-0" {
			t.Errorf("sent %q without having said so", n.all())
		}
		s.change(func() { s.down, s.lost = false, true })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		n.say("7-2-0", carrier.Outcome{Verdict: carrier.Accepted})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n.all() != "7-1-0 7-2-0" || s.states(1) != "accepted" || s.states(2) != "accepted" {
			t.Errorf("sent %q: %s, %s", n.all(), s.states(1), s.states(2))
		}
		stop(t, w)
	})
}

// The call that marks a part as being sent fails, and the store stays away for longer
// than the lease: another gateway claims the message and submits it.
func TestAMessageThatAnotherGatewayHasIsNotSubmitted(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Carrier: n}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		w.Start()
		s.change(func() { s.down = true })
		w.Dispatch([]message.Message{s.save(1, "447700900123", 1, time.Now().Add(w.Lease()))})
		time.Sleep(20 * time.Second)
		synctest.Wait()
		ref := message.Ref{Account: 7, ID: 1}
		s.change(func() {
			s.all[ref].Parts[0].State = message.Sending
			s.next[ref] = time.Now().Add(time.Hour)
			s.down = false
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if due := time.Until(s.due(1)); n.all() != "" || due < 58*time.Minute {
			t.Errorf("submitted %q; the other gateway's lease ends in %v", n.all(), due)
		}
		stop(t, w)
	})
}

func TestALeaseWhoseRenewalsAnswerWasLostIsRenewed(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Carrier: n}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		w.Start()
		s.lostRenewal = true
		w.Dispatch([]message.Message{s.save(1, "447700900123", 1, time.Now().Add(w.Lease()))})
		time.Sleep(5 * w.Lease())
		synctest.Wait()
		s.change(func() {
			if s.claimed > 0 {
				t.Error("the lease ran out, and any gateway could claim the message")
			}
		})
		n.say("7-1-0", carrier.Outcome{Verdict: carrier.Accepted})
		stop(t, w)
	})
}

func TestAMessageThatIsClaimedWhileItsOutcomeIsSavedIsTriedSoon(t *testing.T) {
	n := &network{answer: func(carrier.Submission) carrier.Outcome {
		return carrier.Outcome{Verdict: carrier.Later, Reason: "busy"}
	}}
	bubble(t, []Route{{Name: "one", Carrier: n}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		w.Start()
		m := s.save(1, "447700900123", 1, time.Now().Add(w.Lease()))
		s.onReports = func() {
			n.set(func() { n.answer = accept })
			time.Sleep(minRetryWait)
			s.change(func() { s.next[m.Ref()] = time.Now().Add(w.Lease()) })
			if !w.accept(&m) {
				t.Error("the message is not held any longer")
			}
		}
		w.Dispatch([]message.Message{m})
		time.Sleep(w.Lease() / 2)
		synctest.Wait()
		if s.states(1) != "accepted" {
			t.Errorf("after half of the lease it is %s", s.states(1))
		}
		stop(t, w)
	})
}

func TestWithoutACarrierAScheduledMessageIsRefunded(t *testing.T) {
	bubble(t, nil, Options{}, func(t *testing.T, w *Worker, s *store) {
		w.Start()
		s.save(1, "447700900123", 1, time.Now().Add(time.Minute))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s.states(1) != "rejected" || s.count().refunds != 1 {
			t.Errorf("it is %s, %d refunds", s.states(1), s.count().refunds)
		}
		stop(t, w)
	})
}

func TestWhatWaitsKeepsItsLease(t *testing.T) {
	n := &network{notReady: true}
	bubble(t, []Route{{Name: "one", Carrier: n}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		w.Start()
		w.Dispatch([]message.Message{s.save(1, "447700900123", 1, time.Now().Add(time.Minute))})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if due := s.due(1); !due.After(time.Now()) {
			t.Errorf("the lease ended at %v", due)
		}
		n.set(func() { n.notReady, n.answer = false, accept })
		w.Resume("one")
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if s.states(1) != "accepted" {
			t.Errorf("once the bind is there: %s", s.states(1))
		}
		stop(t, w)
	})
}

func TestWhatHasNoRoomIsGivenBackAndComesAgain(t *testing.T) {
	n, other := &network{notReady: true}, &network{answer: accept}
	routes := []Route{{Name: "one", Carrier: n, Prefixes: []string{"44"}}, {Name: "other", Carrier: other}}
	bubble(t, routes, Options{Backlog: 3}, func(t *testing.T, w *Worker, s *store) {
		w.Start()
		var all []message.Message
		for i := range 20 {
			all = append(all, s.save(message.ID(i+1), "447700900123", 1, time.Now().Add(time.Minute)))
		}
		w.Dispatch(all)
		s.save(50, "49170", 1, time.Now())
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if one := w.Stats()[0]; one.Waiting != 3 || one.UnderWay != 0 || s.states(50) != "accepted" {
			t.Errorf("%+v; the other carrier's is %s", one, s.states(50))
		}
		n.set(func() { n.notReady, n.answer = false, accept })
		w.Resume("one")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(strings.Fields(n.all())); got != 20 {
			t.Errorf("%d were sent, want each once", got)
		}
		stop(t, w)
	})
}

func TestTheEndWaitsForAnswersAndGivesBackTheRest(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Carrier: n, Window: 1}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		w.Start()
		w.Dispatch([]message.Message{s.save(1, "447700900123", 1, time.Now().Add(w.Lease())), s.save(2, "447700900123", 1, time.Now().Add(w.Lease()))})
		synctest.Wait()
		time.AfterFunc(3*time.Second, func() { n.say("7-1-0", carrier.Outcome{Verdict: carrier.Accepted}) })
		stop(t, w)
		if due := s.due(2); s.states(1) != "accepted" || s.states(2) != "pending" || due.After(time.Now()) {
			t.Errorf("%s; %s, due %v", s.states(1), s.states(2), due)
		}
		w.Dispatch([]message.Message{s.save(3, "447700900123", 1, time.Now().Add(time.Hour))})
		synctest.Wait()
		if n.all() != "7-1-0" {
			t.Errorf("sent %q after the end", n.all())
		}
	})
}

func TestManyAreBegunAndSettledAtOnce(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Carrier: n, Window: 100}}, Options{}, func(t *testing.T, w *Worker, s *store) {
		s.latency = time.Millisecond // without it, the order of goroutines decides how much a call finds
		for i := range 1000 {
			s.save(message.ID(i+1), "447700900123", 1, time.Now())
		}
		w.Start()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.count(); got.begins > 12 || got.settles > 12 || len(strings.Fields(n.all())) != 1000 {
			t.Errorf("%d begins and %d settles for %d parts", got.begins, got.settles, len(strings.Fields(n.all())))
		}
		stop(t, w)
	})
}
