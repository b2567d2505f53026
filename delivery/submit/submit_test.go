package submit

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestTheLongestPrefixChoosesTheCarrier(t *testing.T) {
	var queues []*carrierQueue
	for _, r := range []Route{
		{Name: "world"}, {Name: "britain", Prefixes: []string{"44", "3531"}}, {Name: "mobile", Prefixes: []string{"447"}}, {Name: "second", Prefixes: []string{"44"}},
	} {
		queues = append(queues, &carrierQueue{route: r})
	}
	all := &Submitter{queues: queues}
	for number, want := range map[string]string{
		"447700900123": "mobile", "442079460000": "britain", "353123": "britain", "3532": "world", "49170": "world",
	} {
		got := all.queueFor(number)
		if got == nil {
			t.Fatalf("no carrier for %s, want %s", number, want)
		}
		relaytest.Equal(t, "the carrier for "+number, got.route.Name, want)
	}
	if got := (&Submitter{queues: queues[1:]}).queueFor("49170"); got != nil {
		t.Errorf("got the carrier %s for a number without one", got.route.Name)
	}
}

func TestDispatchedMessagesAreSubmittedAtOnce(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: over(n), ReceiptsByCarrierID: true}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		s.dispatch(w, s.save(1, "447700900123", 1, time.Now().Add(time.Minute)))
		synctest.Wait()
		settle(10 * time.Millisecond)
		relaytest.Equal(t, "the submissions", n.all(), "7-1-0")
		p := s.part(1, 0)
		relaytest.Equal(t, "the part", message.Part{State: p.State, CarrierID: p.CarrierID, Carrier: p.Carrier}, message.Part{State: message.Accepted, CarrierID: "M7-1-0", Carrier: "one"})
		relaytest.Equal(t, "the bound ids", firstIDs(s), []string{"m7-1-0"})
		relaytest.Equal(t, "the reports", s.count().reported, []string{"1 accepted"})
		stop(t, w)
	})
}

// firstIDs returns the first id of each binding.
func firstIDs(s *store) (ids []string) {
	for _, b := range s.count().bound {
		ids = append(ids, b.ID)
	}
	return ids
}

// Such orders are refused now; older messages may have several parts.
func TestNoPartReplacesAnotherOfItsMessage(t *testing.T) {
	for parts, want := range map[int]bool{1: true, 2: false} {
		item := &item{msg: message.Message{Replace: true, Parts: make([]message.Part, parts)}}
		relaytest.Equal(t, fmt.Sprintf("Replace of the last of %d parts", parts), item.submission(parts-1).Replace, want)
	}
}

// A message that the gateway itself rejects is refunded; one that a carrier rejects is not.
func TestARejectedMessageIsRefundedIfNoCarrierHasHadIt(t *testing.T) {
	for unsent, want := range map[bool]int{true: 1, false: 0} {
		n := &network{answer: func(carrier.Submission) carrier.Outcome {
			return carrier.Outcome{Verdict: carrier.Rejected, Unsent: unsent, Reason: "no"}
		}}
		bubble(t, []Route{{Name: "one", Connections: over(n)}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
			w.Start()
			s.dispatch(w, s.save(1, "447700900123", 1, time.Now().Add(time.Minute)))
			settle(10 * time.Millisecond)
			relaytest.Equal(t, "the state", s.states(1), "rejected")
			relaytest.Equal(t, fmt.Sprintf("the refunds if unsent is %t", unsent), s.count().refunds, want)
			stop(t, w)
		})
	}
}

func TestFitsSevenBitDependsOnTheNumbersCarrier(t *testing.T) {
	ascii := func(text string) bool { return text == "a" }
	w := relaytest.Must(New(Deps{Store: newStore(), Reporter: newStore(), Routes: []Route{
		{Name: "latin", Prefixes: []string{"44"}, Connections: over(&network{}), FitsSevenBit: ascii}, {Name: "all", Prefixes: []string{"49"}, Connections: over(&network{})},
	}}, Options{}))(t)
	for number, want := range map[string]bool{"447700900123": false, "49170": true, "1212": true} {
		relaytest.Equal(t, "a euro sign fits for "+number, w.FitsSevenBit(number, "€"), want)
	}
	relaytest.Equal(t, "an a fits for the first carrier", w.FitsSevenBit("447700900123", "a"), true)
}

func TestAcceptsOriginatorDependsOnTheNumbersCarrier(t *testing.T) {
	w := relaytest.Must(New(Deps{Store: newStore(), Reporter: newStore(), Routes: []Route{
		{Name: "numbers", Prefixes: []string{"44"}, Connections: over(&network{}), AcceptsOriginator: func(o string) bool { return o == "1" }}, {Name: "all", Connections: over(&network{})},
	}}, Options{}))(t)
	relaytest.Equal(t, "the first carrier accepts A&B", w.AcceptsOriginator("447700900123", "A&B"), false)
	relaytest.Equal(t, "the first carrier accepts 1", w.AcceptsOriginator("447700900123", "1"), true)
	relaytest.Equal(t, "the second carrier accepts A&B", w.AcceptsOriginator("49170", "A&B"), true)
}

func TestSimulatedReportsNumbersOfTheSimulator(t *testing.T) {
	w := relaytest.Must(New(Deps{Store: newStore(), Reporter: newStore(), Routes: []Route{
		{Name: "one", Prefixes: []string{"44"}, Connections: over(&network{})}, {Name: message.Simulator, Prefixes: []string{"49"}, Connections: over(&network{})},
	}}, Options{}))(t)
	for number, want := range map[string]bool{"447700900123": false, "491701234567": true, "33612345678": false} {
		relaytest.Equal(t, number+" is simulated", w.Simulated(number), want)
	}
}

func TestWaitsGivesTheReason(t *testing.T) {
	n := &network{notReady: true}
	bubble(t, []Route{{Name: "one", Prefixes: []string{"44"}, Connections: over(n)}, {Name: "two", Prefixes: []string{"49"}, Connections: over(&network{answer: func(carrier.Submission) carrier.Outcome {
		return carrier.Outcome{Verdict: carrier.Later, PauseQueue: true, Reason: "slow"}
	}})}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		check := func(number, want string) {
			t.Helper()
			relaytest.Equal(t, "why a message to "+number+" waits", w.Waits(number), want)
		}
		check("447700900123", "waits: the carrier one is not bound")
		check("1212", "")
		check("49170", "")
		s.dispatch(w, s.save(1, "49170", 1, time.Now().Add(time.Minute)))
		settle(10 * time.Millisecond)
		check("49170", "waits: the carrier two throttles or cannot be reached")
		n.set(func() { n.notReady = false })
		check("447700900123", "")
		stop(t, w)
	})
}

func TestMessagesAreLeasedWhenTheyAreDue(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: over(n)}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		s.save(1, "447700900123", 1, time.Now())
		m := s.save(2, "447700900123", 1, time.Now().Add(time.Hour))
		s.all[m.Ref()].Parts[0].ScheduledAt = time.Now().Add(time.Hour)
		w.Start()
		settle(59 * time.Minute)
		relaytest.Equal(t, "the submissions before the second is due", n.all(), "7-1-0")
		settle(time.Minute + time.Second)
		relaytest.Equal(t, "the submissions", n.all(), "7-1-0 7-2-0")
		relaytest.Equal(t, "the state of the second", s.states(2), "accepted")
		stop(t, w)
	})
}

func TestTheWindowBoundsPartsInFlightAndKeepsTheirOrder(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: n, Window: 4}}}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		s.dispatch(w, s.save(1, "447700900123", 6, time.Now().Add(time.Minute)), s.save(11, "447700900124", 2, time.Now().Add(time.Minute)))
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
			relaytest.Equal(t, fmt.Sprintf("the submissions after %d outcomes", i), strings.Fields(n.all()), want[:min(8, i+4)])
			if t.Failed() {
				t.FailNow() // the next has no submission to complete
			}
			n.complete(want[i], carrier.Outcome{Verdict: carrier.Accepted})
		}
		time.Sleep(10 * time.Millisecond)
		relaytest.Equal(t, "the most in flight", n.peak(), 4)
		relaytest.Equal(t, "the states", s.states(1), strings.TrimSpace(strings.Repeat("accepted ", 6)))
		stop(t, w)
	})
}

func TestInTurnEachPartWaitsForTheOutcomeOfTheOneBefore(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Connections: over(n), InTurn: true}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		s.dispatch(w, s.save(1, "447700900123", 2, time.Now().Add(time.Minute)), s.save(11, "447700900124", 1, time.Now().Add(time.Minute)))
		synctest.Wait()
		relaytest.Equal(t, "the submissions", n.all(), "7-1-0 7-11-0")
		n.complete("7-1-0", carrier.Outcome{Verdict: carrier.Accepted})
		synctest.Wait()
		relaytest.Equal(t, "the submissions after the first outcome", n.all(), "7-1-0 7-11-0 7-1-1")
		n.complete("7-1-1", carrier.Outcome{Verdict: carrier.Accepted})
		n.complete("7-11-0", carrier.Outcome{Verdict: carrier.Accepted})
		stop(t, w)
	})
}

func TestTheRateIsKept(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: n, Window: 1000}}, PerSecond: 50}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		for i := range 200 {
			s.save(message.ID(i+1), "447700900123", 1, time.Now())
		}
		w.Start()
		settle(2 * time.Second)
		if got := len(strings.Fields(n.all())); got < 95 || got > 107 {
			t.Errorf("%d submissions in two seconds at 50 a second, want 95 to 107", got)
		}
		settle(4 * time.Second)
		relaytest.Equal(t, "the number of submissions", len(strings.Fields(n.all())), 200)
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
			return carrier.Outcome{Verdict: carrier.Later, PauseQueue: true, Reason: "slow down"}
		}
		return carrier.Outcome{Verdict: carrier.Accepted}
	}}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: n, Window: 8}}}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		for i := range 60 {
			s.save(message.ID(i+1), "447700900123", 1, time.Now())
		}
		w.Start()
		settle(3 * time.Minute)
		for i := range 60 {
			relaytest.Equal(t, fmt.Sprintf("the state of message %d", i+1), s.states(message.ID(i+1)), "accepted")
		}
		if got := len(strings.Fields(n.all())); got > 300 {
			t.Errorf("%d submissions of 60 messages, want at most 300", got)
		}
		stop(t, w)
	})
}

func TestTheDelayThatTheCarrierAsksForIsKept(t *testing.T) {
	first := true
	n := &network{answer: func(carrier.Submission) carrier.Outcome {
		if first {
			first = false
			return carrier.Outcome{Verdict: carrier.Later, PauseQueue: true, After: 45 * time.Second}
		}
		return carrier.Outcome{Verdict: carrier.Accepted}
	}}
	bubble(t, []Route{{Name: "one", Connections: over(n)}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		s.save(1, "447700900123", 1, time.Now())
		w.Start()
		settle(2 * time.Minute)
		at := n.tried()
		if len(at) != 2 {
			t.Fatalf("%d submissions, want 2", len(at))
		}
		if wait := at[1].Sub(at[0]); wait < 45*time.Second || wait > 47*time.Second {
			t.Errorf("the second submission came %v after the first, want 45s to 47s", wait)
		}
		stop(t, w)
	})
}

func TestAFailingMessageIsRetriedForADayAndThenRefunded(t *testing.T) {
	n := &network{answer: func(carrier.Submission) carrier.Outcome {
		return carrier.Outcome{Verdict: carrier.Later, Reason: "system error"}
	}}
	bubble(t, []Route{{Name: "one", Connections: over(n)}}, Options{Poll: 10 * time.Second}, func(t *testing.T, w *Submitter, s *store) {
		s.save(1, "447700900123", 1, time.Now())
		w.Start()
		settle(23 * time.Hour)
		checkPart(t, "the part after 23 hours", s, message.Pending, "system error")
		if attempts := len(n.tried()); attempts < 20 || attempts > 45 {
			t.Errorf("%d attempts in 23 hours, want 20 to 45", attempts)
		}
		settle(3 * time.Hour)
		checkPart(t, "the part after 26 hours", s, message.Rejected, "given up after 24h0m0s: system error")
		relaytest.Equal(t, "the refunds", s.count().refunds, 1)
		stop(t, w)
	})
}

func TestRetriesOfAResentPartCountFromTheResend(t *testing.T) {
	n := &network{answer: func(carrier.Submission) carrier.Outcome { return carrier.Outcome{Verdict: carrier.Unknown} }}
	bubble(t, []Route{{Name: "one", Connections: over(n)}}, Options{Poll: 10 * time.Second}, func(t *testing.T, w *Submitter, s *store) {
		m := s.save(1, "447700900123", 1, time.Now())
		w.Start()
		settle(48 * time.Hour)
		relaytest.Equal(t, "the state before the resend", s.states(1), "unknown")
		n.set(func() {
			n.answer = func(carrier.Submission) carrier.Outcome {
				return carrier.Outcome{Verdict: carrier.Later, Reason: "system error"}
			}
		})
		resent := time.Now()
		_, err := s.Settle(t.Context(), []message.Outcome{{PartRef: message.PartRef{Ref: m.Ref()}, State: message.Pending, RetryAt: resent, Resent: true, At: resent}})
		relaytest.NoError(t, err)
		settle(23 * time.Hour)
		checkPart(t, "the part 23 hours after the resend", s, message.Pending, "system error")
		if at := n.tried(); len(at) < 3 || at[2].Sub(at[1]) > time.Minute {
			t.Errorf("submissions at %v, want a retry within a minute of the first failure", at)
		}
		settle(3 * time.Hour)
		checkPart(t, "the part 26 hours after the resend", s, message.Rejected, "given up after 24h0m0s: system error")
		stop(t, w)
	})
}

// checkPart compares the first part of message 1.
func checkPart(t *testing.T, what string, s *store, state message.State, reason string) {
	t.Helper()
	p := s.part(1, 0)
	relaytest.Equal(t, what, message.Part{State: p.State, Reason: p.Reason}, message.Part{State: state, Reason: reason})
}

func TestANumberWithoutACarrierIsRefunded(t *testing.T) {
	bubble(t, []Route{{Name: "one", Connections: over(&network{}), Prefixes: []string{"44"}}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		s.save(1, "49170", 2, time.Now())
		w.Start()
		settle(time.Second)
		relaytest.Equal(t, "the states", s.states(1), "rejected rejected")
		relaytest.Equal(t, "the reason", s.part(1, 0).Reason, "there is no carrier for the number")
		relaytest.Equal(t, "the refunds", s.count().refunds, 2)
		stop(t, w)
	})
}

func TestAnUnknownOutcomeIsNotRetriedAndALateAnswerCorrectsIt(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Connections: over(n), ReceiptsByCarrierID: true}}, Options{Poll: 10 * time.Second}, func(t *testing.T, w *Submitter, s *store) {
		s.save(1, "447700900123", 1, time.Now())
		w.Start()
		time.Sleep(time.Second)
		n.complete("7-1-0", carrier.Outcome{Verdict: carrier.Unknown, Reason: "silence"})
		settle(24 * time.Hour)
		relaytest.Equal(t, "the submissions", n.all(), "7-1-0")
		checkPart(t, "the part", s, message.Unknown, "silence")
		if ids := firstIDs(s); len(ids) != 1 || !strings.HasPrefix(ids[0], "ref ") {
			t.Errorf("the bound ids are %q, want one report address", ids)
		}
		n.complete("7-1-0", carrier.Outcome{Verdict: carrier.Accepted, ID: "00A1"})
		settle(time.Second)
		relaytest.Equal(t, "the state after the late answer", s.states(1), "accepted")
		if ids := firstIDs(s); len(ids) != 2 || ids[1] != "a1" {
			t.Errorf("the bound ids after the late answer are %q, want a1 as the second", ids)
		}
		stop(t, w)
	})
}

func TestPartsBeingSentWhenTheProcessCrashed(t *testing.T) {
	for name, tc := range map[string]struct {
		route Route
		was   string // the carrier that the first part was being sent to
		want  string
		sent  string
	}{
		"a part that a carrier may have is unknown":              {Route{Name: "one"}, "one", "unknown accepted", "7-1-1"},
		"an idempotent carrier gets it again":                    {Route{Name: "one", Idempotent: true}, "one", "accepted accepted", "7-1-0 7-1-1"},
		"an idempotent carrier does not, if another may have it": {Route{Name: "one", Idempotent: true}, "gone", "unknown accepted", "7-1-1"},
		"nor does one that no longer serves the number":          {Route{Name: "one", Prefixes: []string{"49"}}, "one", "unknown rejected", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := &network{answer: accept}
			tc.route.Connections = over(n)
			bubble(t, []Route{tc.route}, Options{}, func(t *testing.T, w *Submitter, s *store) {
				m := s.save(1, "447700900123", 2, time.Now())
				p := &s.all[m.Ref()].Parts[0]
				p.State, p.Carrier = message.Sending, tc.was
				w.Start()
				settle(time.Second)
				relaytest.Equal(t, "the states", s.states(1), tc.want)
				relaytest.Equal(t, "the submissions", n.all(), tc.sent)
				stop(t, w)
			})
		})
	}
}

func TestWhileTheStoreIsDownNothingIsLostOrSentTwice(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Connections: over(n)}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		m, later := s.save(1, "447700900123", 1, time.Now().Add(w.Lease())), s.save(2, "447700900123", 1, time.Now().Add(w.Lease()))
		s.dispatch(w, m)
		synctest.Wait()
		s.change(func() { s.down = true })
		n.complete("7-1-0", carrier.Outcome{Verdict: carrier.Accepted})
		s.dispatch(w, later)
		settle(30 * time.Second)
		relaytest.Equal(t, "the submissions while no start can be saved", n.all(), "7-1-0")
		s.change(func() { s.down, s.lost = false, true })
		settle(5 * time.Second)
		n.complete("7-2-0", carrier.Outcome{Verdict: carrier.Accepted})
		settle(5 * time.Minute)
		relaytest.Equal(t, "the submissions", n.all(), "7-1-0 7-2-0")
		relaytest.Equal(t, "the states of both", s.states(1)+", "+s.states(2), "accepted, accepted")
		stop(t, w)
	})
}

// The call that marks a part as being sent fails, and the store stays away for longer
// than the lease: another gateway leases the message and submits it.
func TestAMessageThatAnotherGatewayHasIsNotSubmitted(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: over(n)}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		s.change(func() { s.down = true })
		s.dispatch(w, s.save(1, "447700900123", 1, time.Now().Add(w.Lease())))
		settle(20 * time.Second)
		ref := message.Ref{Account: 7, ID: 1}
		s.change(func() {
			s.all[ref].Parts[0].State = message.Sending
			s.next[ref] = time.Now().Add(time.Hour)
			s.down = false
		})
		settle(time.Minute)
		relaytest.Equal(t, "the submissions", n.all(), "")
		if due := time.Until(s.due(1)); due < 58*time.Minute {
			t.Errorf("the other gateway's lease ends in %v, want it unchanged", due)
		}
		stop(t, w)
	})
}

// The order was saved, and its answer took longer than the lease: another gateway may have
// the message.
func TestAMessageWhoseLeaseEndedWhileItWasSavedIsNotSubmitted(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: over(n)}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		m, ended := s.save(1, "447700900123", 1, time.Now().Add(time.Hour)), time.Now().Add(w.Lease())
		settle(w.Lease() + time.Second)
		w.Dispatch([]message.Message{m}, ended)
		settle(time.Minute)
		relaytest.Equal(t, "the submissions", n.all(), "")
		stop(t, w)
	})
}

func TestALeaseIsRenewedAfterALostAnswer(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Connections: over(n)}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		s.lostRenewal = true
		s.dispatch(w, s.save(1, "447700900123", 1, time.Now().Add(w.Lease())))
		settle(5 * w.Lease())
		s.change(func() { relaytest.Equal(t, "the messages leased again after their lease ended", s.leased, 0) })
		n.complete("7-1-0", carrier.Outcome{Verdict: carrier.Accepted})
		stop(t, w)
	})
}

func TestAMessageThatIsLeasedWhileItsOutcomeIsSavedIsRetriedSoon(t *testing.T) {
	n := &network{answer: func(carrier.Submission) carrier.Outcome {
		return carrier.Outcome{Verdict: carrier.Later, Reason: "busy"}
	}}
	bubble(t, []Route{{Name: "one", Connections: over(n)}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		m := s.save(1, "447700900123", 1, time.Now().Add(w.Lease()))
		s.onReports = func() {
			n.set(func() { n.answer = accept })
			time.Sleep(minRetryWait)
			s.change(func() { s.next[m.Ref()] = time.Now().Add(w.Lease()) })
			if !w.accept(&m, time.Now().Add(w.Lease())) {
				t.Error("the message is no longer in flight")
			}
		}
		s.dispatch(w, m)
		settle(w.Lease() / 2)
		relaytest.Equal(t, "the state after half of the lease", s.states(1), "accepted")
		stop(t, w)
	})
}

func TestWithoutACarrierAScheduledMessageIsRefunded(t *testing.T) {
	bubble(t, nil, Options{}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		s.save(1, "447700900123", 1, time.Now().Add(time.Minute))
		settle(2 * time.Minute)
		relaytest.Equal(t, "the state", s.states(1), "rejected")
		relaytest.Equal(t, "the refunds", s.count().refunds, 1)
		stop(t, w)
	})
}

func TestAWaitingMessageKeepsItsLease(t *testing.T) {
	n := &network{notReady: true}
	bubble(t, []Route{{Name: "one", Connections: over(n)}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		s.dispatch(w, s.save(1, "447700900123", 1, time.Now().Add(time.Minute)))
		settle(10 * time.Minute)
		if due := s.due(1); !due.After(time.Now()) {
			t.Errorf("the lease ended at %v, before now", due)
		}
		n.set(func() { n.notReady, n.answer = false, accept })
		w.Resume("one")
		settle(100 * time.Millisecond)
		relaytest.Equal(t, "the state once the carrier is ready", s.states(1), "accepted")
		stop(t, w)
	})
}

func TestMessagesBeyondTheBacklogAreReleasedAndLeasedLater(t *testing.T) {
	n, other := &network{notReady: true}, &network{answer: accept}
	routes := []Route{{Name: "one", Connections: over(n), Prefixes: []string{"44"}}, {Name: "other", Connections: over(other)}}
	bubble(t, routes, Options{Backlog: 3}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		var all []message.Message
		for i := range 20 {
			all = append(all, s.save(message.ID(i+1), "447700900123", 1, time.Now().Add(time.Minute)))
		}
		s.dispatch(w, all...)
		s.save(50, "49170", 1, time.Now())
		settle(20 * time.Second)
		one := w.Stats()[0]
		relaytest.Equal(t, "waiting and under way", [2]int{one.Waiting, one.UnderWay}, [2]int{3, 0})
		relaytest.Equal(t, "the state of the other carrier's message", s.states(50), "accepted")
		n.set(func() { n.notReady, n.answer = false, accept })
		w.Resume("one")
		settle(time.Minute)
		relaytest.Equal(t, "the number of submissions", len(strings.Fields(n.all())), 20)
		stop(t, w)
	})
}

func TestStopWaitsForOutcomesAndReleasesTheRest(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: n, Window: 1}}}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		w.Start()
		s.dispatch(w, s.save(1, "447700900123", 1, time.Now().Add(w.Lease())), s.save(2, "447700900123", 1, time.Now().Add(w.Lease())))
		synctest.Wait()
		time.AfterFunc(3*time.Second, func() { n.complete("7-1-0", carrier.Outcome{Verdict: carrier.Accepted}) })
		stop(t, w)
		relaytest.Equal(t, "the states of both", s.states(1)+", "+s.states(2), "accepted, pending")
		if due := s.due(2); due.After(time.Now()) {
			t.Errorf("the second is due at %v, want it due now", due)
		}
		s.dispatch(w, s.save(3, "447700900123", 1, time.Now().Add(time.Hour)))
		synctest.Wait()
		relaytest.Equal(t, "the submissions after the end", n.all(), "7-1-0")
	})
}

func TestStartsAndOutcomesAreSavedInBatches(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: n, Window: 100}}}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		s.latency = time.Millisecond // without it, the order of goroutines decides the size of a batch
		for i := range 1000 {
			s.save(message.ID(i+1), "447700900123", 1, time.Now())
		}
		w.Start()
		settle(time.Minute)
		relaytest.Equal(t, "the number of submissions", len(strings.Fields(n.all())), 1000)
		if got := s.count(); got.begins > 12 || got.settles > 12 {
			t.Errorf("%d calls of Begin and %d of Settle, want at most 12 each", got.begins, got.settles)
		}
		stop(t, w)
	})
}

func TestNothingIsSubmittedWhileTheGateIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s, gate := &network{answer: accept, notReady: true}, newStore(), gateway.NewGate()
		gate.Open()
		w := relaytest.Must(New(Deps{Store: s, Reporter: s, Routes: []Route{{Name: "one", Connections: over(n)}}, Gate: gate, Logger: slog.New(slog.DiscardHandler)}, Options{}))(t)
		w.Start()
		s.dispatch(w, s.save(1, "447700900123", 1, time.Now().Add(w.Lease()))) // waits for the carrier
		gate.Close()
		n.set(func() { n.notReady = false })
		s.dispatch(w, s.save(2, "447700900123", 1, time.Now().Add(w.Lease())))
		s.save(3, "447700900123", 1, time.Now())
		settle(time.Hour)
		relaytest.Equal(t, "the submissions while the gate is closed", n.all(), "")
		gate.Open()
		settle(time.Minute)
		relaytest.Equal(t, "the submissions after that", n.all(), "7-1-0 7-2-0 7-3-0")
		stop(t, w)
	})
}
