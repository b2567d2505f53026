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

func TestTheLongestPrefixSelectsTheCarrier(t *testing.T) {
	var queues []*carrierQueue
	for _, r := range []Route{
		{Name: "world"}, {Name: "britain", Prefixes: []string{"44", "3531"}}, {Name: "mobile", Prefixes: []string{"447"}}, {Name: "second", Prefixes: []string{"44"}},
	} {
		queues = append(queues, &carrierQueue{route: r})
	}
	submitter := &Submitter{queues: queues}
	for number, want := range map[string]string{
		"447700900123": "mobile", "442079460000": "britain", "353123": "britain", "3532": "world", "49170": "world",
	} {
		got := submitter.queueFor(number)
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
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n), ReceiptsByCarrierID: true}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		s.dispatch(sub, s.save(1, "447700900123", 1, time.Now().Add(time.Minute)))
		synctest.Wait()
		advance(10 * time.Millisecond)
		relaytest.Equal(t, "the submissions", n.submittedIDs(), "7-1-0")
		p := s.part(1, 0)
		relaytest.Equal(t, "the part", message.Part{State: p.State, CarrierID: p.CarrierID, Carrier: p.Carrier}, message.Part{State: message.Accepted, CarrierID: "M7-1-0", Carrier: "one"})
		relaytest.Equal(t, "the saved ids", savedIDs(s), []string{"m7-1-0"})
		relaytest.Equal(t, "the reports", s.count().reported, []string{"1 accepted"})
		stop(t, sub)
	})
}

// savedIDs returns the carrier ids that were saved.
func savedIDs(s *store) (ids []string) {
	for _, b := range s.count().carrierIDs {
		ids = append(ids, b.ID)
	}
	return ids
}

// New messages with Replace have one part; messages of older versions may have several.
func TestNoPartReplacesAnotherOfItsMessage(t *testing.T) {
	for parts, want := range map[int]bool{1: true, 2: false} {
		item := &item{msg: message.Message{Replace: true, Parts: make([]message.Part, parts)}}
		relaytest.Equal(t, fmt.Sprintf("Replace of the last of %d parts", parts), item.submission(parts-1).Replace, want)
	}
}

func TestARejectedMessageIsRefundedOnlyIfItWasNotSubmitted(t *testing.T) {
	for unsent, want := range map[bool]int{true: 1, false: 0} {
		n := &network{answer: func(carrier.Submission) carrier.Result {
			return carrier.Result{Verdict: carrier.Rejected, NotSubmitted: unsent, Reason: "no"}
		}}
		bubble(t, []Route{{Name: "one", Connections: connectionTo(n)}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
			sub.Start()
			s.dispatch(sub, s.save(1, "447700900123", 1, time.Now().Add(time.Minute)))
			advance(10 * time.Millisecond)
			relaytest.Equal(t, "the state", s.states(1), "rejected")
			relaytest.Equal(t, fmt.Sprintf("the refunds if unsent is %t", unsent), s.count().refunds, want)
			stop(t, sub)
		})
	}
}

func TestFitsSevenBitDependsOnTheCarrierOfTheNumber(t *testing.T) {
	ascii := func(text string) bool { return text == "a" }
	sub := relaytest.Must(New(Deps{Store: newStore(), Reporter: newStore(), Routes: []Route{
		{Name: "latin", Prefixes: []string{"44"}, Connections: connectionTo(&network{}), FitsSevenBit: ascii}, {Name: "all", Prefixes: []string{"49"}, Connections: connectionTo(&network{})},
	}}, Options{}))(t)
	for number, want := range map[string]bool{"447700900123": false, "49170": true, "1212": true} {
		relaytest.Equal(t, "a euro sign fits for "+number, sub.FitsSevenBit(number, "€"), want)
	}
	relaytest.Equal(t, "the letter a fits for the first carrier", sub.FitsSevenBit("447700900123", "a"), true)
}

func TestAcceptsOriginatorDependsOnTheCarrierOfTheNumber(t *testing.T) {
	sub := relaytest.Must(New(Deps{Store: newStore(), Reporter: newStore(), Routes: []Route{
		{Name: "numbers", Prefixes: []string{"44"}, Connections: connectionTo(&network{}), AcceptsOriginator: func(o string) bool { return o == "1" }}, {Name: "all", Connections: connectionTo(&network{})},
	}}, Options{}))(t)
	relaytest.Equal(t, "the first carrier accepts A&B", sub.AcceptsOriginator("447700900123", "A&B"), false)
	relaytest.Equal(t, "the first carrier accepts 1", sub.AcceptsOriginator("447700900123", "1"), true)
	relaytest.Equal(t, "the second carrier accepts A&B", sub.AcceptsOriginator("49170", "A&B"), true)
}

func TestSimulatedReportsNumbersOfTheSimulator(t *testing.T) {
	sub := relaytest.Must(New(Deps{Store: newStore(), Reporter: newStore(), Routes: []Route{
		{Name: "one", Prefixes: []string{"44"}, Connections: connectionTo(&network{})}, {Name: message.Simulator, Prefixes: []string{"49"}, Connections: connectionTo(&network{})},
	}}, Options{}))(t)
	for number, want := range map[string]bool{"447700900123": false, "491701234567": true, "33612345678": false} {
		relaytest.Equal(t, number+" is simulated", sub.Simulated(number), want)
	}
}

func TestWaitReasonReturnsTheReason(t *testing.T) {
	n := &network{notReady: true}
	bubble(t, []Route{{Name: "one", Prefixes: []string{"44"}, Connections: connectionTo(n)}, {Name: "two", Prefixes: []string{"49"}, Connections: connectionTo(&network{answer: func(carrier.Submission) carrier.Result {
		return carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "slow"}
	}})}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		expect := func(number, want string) {
			t.Helper()
			relaytest.Equal(t, "the reason why a message to "+number+" waits", sub.WaitReason(number), want)
		}
		expect("447700900123", `waiting: carrier "one" is not bound`)
		expect("1212", "")
		expect("49170", "")
		s.dispatch(sub, s.save(1, "49170", 1, time.Now().Add(time.Minute)))
		advance(10 * time.Millisecond)
		expect("49170", `waiting: carrier "two" throttles or cannot be reached`)
		n.change(func() { n.notReady = false })
		expect("447700900123", "")
		stop(t, sub)
	})
}

func TestMessagesAreLeasedWhenTheyAreDue(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n)}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		s.save(1, "447700900123", 1, time.Now())
		m := s.save(2, "447700900123", 1, time.Now().Add(time.Hour))
		s.messages[m.Ref()].Parts[0].ScheduledAt = time.Now().Add(time.Hour)
		sub.Start()
		advance(59 * time.Minute)
		relaytest.Equal(t, "the submissions before the second message is due", n.submittedIDs(), "7-1-0")
		advance(time.Minute + time.Second)
		relaytest.Equal(t, "the submissions", n.submittedIDs(), "7-1-0 7-2-0")
		relaytest.Equal(t, "the state of the second message", s.states(2), "accepted")
		stop(t, sub)
	})
}

func TestTheWindowBoundsPartsInFlightAndKeepsTheirOrder(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: n, Window: 4}}}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		s.dispatch(sub, s.save(1, "447700900123", 6, time.Now().Add(time.Minute)), s.save(11, "447700900124", 2, time.Now().Add(time.Minute)))
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
			relaytest.Equal(t, fmt.Sprintf("the submissions after %d outcomes", i), strings.Fields(n.submittedIDs()), want[:min(8, i+4)])
			if t.Failed() {
				t.FailNow() // complete would panic without the submission
			}
			n.complete(want[i], carrier.Result{Verdict: carrier.Accepted})
		}
		time.Sleep(10 * time.Millisecond)
		relaytest.Equal(t, "the largest number of parts in flight", n.peak(), 4)
		relaytest.Equal(t, "the states", s.states(1), strings.TrimSpace(strings.Repeat("accepted ", 6)))
		stop(t, sub)
	})
}

func TestOnASequentialRouteAPartWaitsForTheOutcomeOfThePreviousPart(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n), Sequential: true}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		s.dispatch(sub, s.save(1, "447700900123", 2, time.Now().Add(time.Minute)), s.save(11, "447700900124", 1, time.Now().Add(time.Minute)))
		synctest.Wait()
		relaytest.Equal(t, "the submissions", n.submittedIDs(), "7-1-0 7-11-0")
		n.complete("7-1-0", carrier.Result{Verdict: carrier.Accepted})
		synctest.Wait()
		relaytest.Equal(t, "the submissions after the first outcome", n.submittedIDs(), "7-1-0 7-11-0 7-1-1")
		n.complete("7-1-1", carrier.Result{Verdict: carrier.Accepted})
		n.complete("7-11-0", carrier.Result{Verdict: carrier.Accepted})
		stop(t, sub)
	})
}

func TestTheRateLimitIsKept(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: n, Window: 1000}}, PerSecond: 50}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		for i := range 200 {
			s.save(message.ID(i+1), "447700900123", 1, time.Now())
		}
		sub.Start()
		advance(2 * time.Second)
		if got := len(strings.Fields(n.submittedIDs())); got < 95 || got > 107 {
			t.Errorf("%d submissions in two seconds at 50 a second, want 95 to 107", got)
		}
		advance(4 * time.Second)
		relaytest.Equal(t, "the number of submissions", len(strings.Fields(n.submittedIDs())), 200)
		stop(t, sub)
	})
}

func TestThrottlingDelaysMessagesWithoutFailingThem(t *testing.T) {
	limit, count := 3, 0
	var periodStart time.Time
	n := &network{answer: func(carrier.Submission) carrier.Result {
		if now := time.Now(); now.Sub(periodStart) >= time.Second {
			periodStart, count = now, 0
		}
		if count++; count > limit {
			return carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "slow down"}
		}
		return carrier.Result{Verdict: carrier.Accepted}
	}}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: n, Window: 8}}}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		for i := range 60 {
			s.save(message.ID(i+1), "447700900123", 1, time.Now())
		}
		sub.Start()
		advance(3 * time.Minute)
		for i := range 60 {
			relaytest.Equal(t, fmt.Sprintf("the state of message %d", i+1), s.states(message.ID(i+1)), "accepted")
		}
		if got := len(strings.Fields(n.submittedIDs())); got > 300 {
			t.Errorf("%d submissions of 60 messages, want at most 300", got)
		}
		stop(t, sub)
	})
}

func TestTheDelayThatTheCarrierRequestsIsKept(t *testing.T) {
	isFirst := true
	n := &network{answer: func(carrier.Submission) carrier.Result {
		if isFirst {
			isFirst = false
			return carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, RetryAfter: 45 * time.Second}
		}
		return carrier.Result{Verdict: carrier.Accepted}
	}}
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n)}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		s.save(1, "447700900123", 1, time.Now())
		sub.Start()
		advance(2 * time.Minute)
		times := n.submittedAt()
		if len(times) != 2 {
			t.Fatalf("%d submissions, want 2", len(times))
		}
		if wait := times[1].Sub(times[0]); wait < 45*time.Second || wait > 47*time.Second {
			t.Errorf("the second submission came %v after the first, want 45s to 47s", wait)
		}
		stop(t, sub)
	})
}

func TestAFailingMessageIsRetriedForADayAndThenRefunded(t *testing.T) {
	n := &network{answer: func(carrier.Submission) carrier.Result {
		return carrier.Result{Verdict: carrier.RetryLater, Reason: "system error"}
	}}
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n)}}, Options{Poll: 10 * time.Second}, func(t *testing.T, sub *Submitter, s *store) {
		s.save(1, "447700900123", 1, time.Now())
		sub.Start()
		advance(23 * time.Hour)
		expectPart(t, "the part after 23 hours", s, message.Pending, "system error")
		if attempts := len(n.submittedAt()); attempts < 20 || attempts > 45 {
			t.Errorf("%d attempts in 23 hours, want 20 to 45", attempts)
		}
		advance(3 * time.Hour)
		expectPart(t, "the part after 26 hours", s, message.Rejected, "given up after 24h0m0s: system error")
		relaytest.Equal(t, "the refunds", s.count().refunds, 1)
		stop(t, sub)
	})
}

func TestRetriesOfAResentPartCountFromTheResend(t *testing.T) {
	n := &network{answer: func(carrier.Submission) carrier.Result { return carrier.Result{Verdict: carrier.Unknown} }}
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n)}}, Options{Poll: 10 * time.Second}, func(t *testing.T, sub *Submitter, s *store) {
		m := s.save(1, "447700900123", 1, time.Now())
		sub.Start()
		advance(48 * time.Hour)
		relaytest.Equal(t, "the state before the resend", s.states(1), "unknown")
		n.change(func() {
			n.answer = func(carrier.Submission) carrier.Result {
				return carrier.Result{Verdict: carrier.RetryLater, Reason: "system error"}
			}
		})
		now := time.Now()
		_, err := s.Settle(t.Context(), []message.Outcome{{PartRef: message.PartRef{Ref: m.Ref()}, State: message.Pending, RetryAt: now, Resent: true, At: now}})
		relaytest.NoError(t, err)
		advance(23 * time.Hour)
		expectPart(t, "the part 23 hours after the resend", s, message.Pending, "system error")
		if times := n.submittedAt(); len(times) < 3 || times[2].Sub(times[1]) > time.Minute {
			t.Errorf("submissions at %v, want a retry within a minute of the first failure", times)
		}
		advance(3 * time.Hour)
		expectPart(t, "the part 26 hours after the resend", s, message.Rejected, "given up after 24h0m0s: system error")
		stop(t, sub)
	})
}

// expectPart compares the first part of message 1.
func expectPart(t *testing.T, label string, s *store, state message.State, reason string) {
	t.Helper()
	p := s.part(1, 0)
	relaytest.Equal(t, label, message.Part{State: p.State, Reason: p.Reason}, message.Part{State: state, Reason: reason})
}

func TestANumberWithoutACarrierIsRefunded(t *testing.T) {
	bubble(t, []Route{{Name: "one", Connections: connectionTo(&network{}), Prefixes: []string{"44"}}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		s.save(1, "49170", 2, time.Now())
		sub.Start()
		advance(time.Second)
		relaytest.Equal(t, "the states", s.states(1), "rejected rejected")
		relaytest.Equal(t, "the reason", s.part(1, 0).Reason, "there is no carrier for the number")
		relaytest.Equal(t, "the refunds", s.count().refunds, 2)
		stop(t, sub)
	})
}

func TestAnUnknownOutcomeIsNotRetriedAndALateAnswerCorrectsIt(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n), ReceiptsByCarrierID: true}}, Options{Poll: 10 * time.Second}, func(t *testing.T, sub *Submitter, s *store) {
		s.save(1, "447700900123", 1, time.Now())
		sub.Start()
		time.Sleep(time.Second)
		n.complete("7-1-0", carrier.Result{Verdict: carrier.Unknown, Reason: "silence"})
		advance(24 * time.Hour)
		relaytest.Equal(t, "the submissions", n.submittedIDs(), "7-1-0")
		expectPart(t, "the part", s, message.Unknown, "silence")
		if ids := savedIDs(s); len(ids) != 1 || !strings.HasPrefix(ids[0], "ref ") {
			t.Errorf("saved ids = %q, want one that begins with \"ref \"", ids)
		}
		n.complete("7-1-0", carrier.Result{Verdict: carrier.Accepted, ID: "00A1"})
		advance(time.Second)
		relaytest.Equal(t, "the state after the late answer", s.states(1), "accepted")
		if ids := savedIDs(s); len(ids) != 2 || ids[1] != "a1" {
			t.Errorf("saved ids after the late answer = %q, want a1 as the second", ids)
		}
		stop(t, sub)
	})
}

func TestPartsInTheStateSendingAfterACrash(t *testing.T) {
	for name, tc := range map[string]struct {
		route     Route
		carrier   string // of the first part, which is in the state sending
		want      string
		submitted string
	}{
		"the outcome at a carrier that is not idempotent is unknown":           {Route{Name: "one"}, "one", "unknown accepted", "7-1-1"},
		"the part is submitted again to an idempotent carrier":                 {Route{Name: "one", Idempotent: true}, "one", "accepted accepted", "7-1-0 7-1-1"},
		"the outcome at a removed carrier is unknown":                          {Route{Name: "one", Idempotent: true}, "gone", "unknown accepted", "7-1-1"},
		"the outcome at a carrier that no longer serves the number is unknown": {Route{Name: "one", Prefixes: []string{"49"}}, "one", "unknown rejected", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := &network{answer: accept}
			tc.route.Connections = connectionTo(n)
			bubble(t, []Route{tc.route}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
				m := s.save(1, "447700900123", 2, time.Now())
				p := &s.messages[m.Ref()].Parts[0]
				p.State, p.Carrier = message.Sending, tc.carrier
				sub.Start()
				advance(time.Second)
				relaytest.Equal(t, "the states", s.states(1), tc.want)
				relaytest.Equal(t, "the submissions", n.submittedIDs(), tc.submitted)
				stop(t, sub)
			})
		})
	}
}

func TestWhileTheStoreIsDownNothingIsLostOrSentTwice(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n)}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		m1, m2 := s.save(1, "447700900123", 1, time.Now().Add(sub.Lease())), s.save(2, "447700900123", 1, time.Now().Add(sub.Lease()))
		s.dispatch(sub, m1)
		synctest.Wait()
		s.change(func() { s.down = true })
		n.complete("7-1-0", carrier.Result{Verdict: carrier.Accepted})
		s.dispatch(sub, m2)
		advance(30 * time.Second)
		relaytest.Equal(t, "the submissions while MarkSending fails", n.submittedIDs(), "7-1-0")
		s.change(func() { s.down, s.loseMarking = false, true })
		advance(5 * time.Second)
		n.complete("7-2-0", carrier.Result{Verdict: carrier.Accepted})
		advance(5 * time.Minute)
		relaytest.Equal(t, "the submissions", n.submittedIDs(), "7-1-0 7-2-0")
		relaytest.Equal(t, "the states of both", s.states(1)+", "+s.states(2), "accepted, accepted")
		stop(t, sub)
	})
}

// MarkSending fails while the store is down. Another gateway leases the message and submits it.
func TestAMessageLeasedByAnotherGatewayIsNotSubmitted(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n)}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		s.change(func() { s.down = true })
		s.dispatch(sub, s.save(1, "447700900123", 1, time.Now().Add(sub.Lease())))
		advance(20 * time.Second)
		ref := message.Ref{Account: 7, ID: 1}
		s.change(func() {
			s.messages[ref].Parts[0].State = message.Sending
			s.dueAt[ref] = time.Now().Add(time.Hour)
			s.down = false
		})
		advance(time.Minute)
		relaytest.Equal(t, "the submissions", n.submittedIDs(), "")
		if due := time.Until(s.due(1)); due < 58*time.Minute {
			t.Errorf("the other gateway's lease ends in %v, want it unchanged", due)
		}
		stop(t, sub)
	})
}

// Saving the order took longer than the lease, so another gateway may have leased the message.
func TestAMessageWithAnExpiredLeaseIsNotSubmitted(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n)}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		m, leaseEnd := s.save(1, "447700900123", 1, time.Now().Add(time.Hour)), time.Now().Add(sub.Lease())
		advance(sub.Lease() + time.Second)
		sub.Dispatch([]message.Message{m}, leaseEnd)
		advance(time.Minute)
		relaytest.Equal(t, "the submissions", n.submittedIDs(), "")
		stop(t, sub)
	})
}

func TestALeaseIsRenewedAfterALostResponse(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n)}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		s.loseRenewal = true
		s.dispatch(sub, s.save(1, "447700900123", 1, time.Now().Add(sub.Lease())))
		advance(5 * sub.Lease())
		s.change(func() { relaytest.Equal(t, "the messages leased again after their lease ended", s.leased, 0) })
		n.complete("7-1-0", carrier.Result{Verdict: carrier.Accepted})
		stop(t, sub)
	})
}

func TestAMessageLeasedAgainWhileItsOutcomeIsSavedIsRetriedSoon(t *testing.T) {
	n := &network{answer: func(carrier.Submission) carrier.Result {
		return carrier.Result{Verdict: carrier.RetryLater, Reason: "busy"}
	}}
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n)}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		m := s.save(1, "447700900123", 1, time.Now().Add(sub.Lease()))
		s.onReports = func() {
			n.change(func() { n.answer = accept })
			time.Sleep(minRetryWait)
			s.change(func() { s.dueAt[m.Ref()] = time.Now().Add(sub.Lease()) })
			if !sub.accept(&m, time.Now().Add(sub.Lease())) {
				t.Error("the message is no longer in flight")
			}
		}
		s.dispatch(sub, m)
		advance(sub.Lease() / 2)
		relaytest.Equal(t, "the state after half of the lease", s.states(1), "accepted")
		stop(t, sub)
	})
}

func TestWithoutACarrierAScheduledMessageIsRefunded(t *testing.T) {
	bubble(t, nil, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		s.save(1, "447700900123", 1, time.Now().Add(time.Minute))
		advance(2 * time.Minute)
		relaytest.Equal(t, "the state", s.states(1), "rejected")
		relaytest.Equal(t, "the refunds", s.count().refunds, 1)
		stop(t, sub)
	})
}

func TestAWaitingMessageKeepsItsLease(t *testing.T) {
	n := &network{notReady: true}
	bubble(t, []Route{{Name: "one", Connections: connectionTo(n)}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		s.dispatch(sub, s.save(1, "447700900123", 1, time.Now().Add(time.Minute)))
		advance(10 * time.Minute)
		if due := s.due(1); !due.After(time.Now()) {
			t.Errorf("the lease ended at %v, before now", due)
		}
		n.change(func() { n.notReady, n.answer = false, accept })
		sub.Resume("one")
		advance(100 * time.Millisecond)
		relaytest.Equal(t, "the state after the carrier is ready", s.states(1), "accepted")
		stop(t, sub)
	})
}

func TestMessagesBeyondTheBacklogAreReleasedAndLeasedLater(t *testing.T) {
	n, otherCarrier := &network{notReady: true}, &network{answer: accept}
	routes := []Route{{Name: "one", Connections: connectionTo(n), Prefixes: []string{"44"}}, {Name: "other", Connections: connectionTo(otherCarrier)}}
	bubble(t, routes, Options{Backlog: 3}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		var messages []message.Message
		for i := range 20 {
			messages = append(messages, s.save(message.ID(i+1), "447700900123", 1, time.Now().Add(time.Minute)))
		}
		s.dispatch(sub, messages...)
		s.save(50, "49170", 1, time.Now())
		advance(20 * time.Second)
		stats := sub.Stats()[0]
		relaytest.Equal(t, "waiting and in flight", [2]int{stats.Waiting, stats.InFlight}, [2]int{3, 0})
		relaytest.Equal(t, "the state of the other carrier's message", s.states(50), "accepted")
		n.change(func() { n.notReady, n.answer = false, accept })
		sub.Resume("one")
		advance(time.Minute)
		relaytest.Equal(t, "the number of submissions", len(strings.Fields(n.submittedIDs())), 20)
		stop(t, sub)
	})
}

func TestStopWaitsForOutcomesAndReleasesWaitingMessages(t *testing.T) {
	n := &network{}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: n, Window: 1}}}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		sub.Start()
		s.dispatch(sub, s.save(1, "447700900123", 1, time.Now().Add(sub.Lease())), s.save(2, "447700900123", 1, time.Now().Add(sub.Lease())))
		synctest.Wait()
		time.AfterFunc(3*time.Second, func() { n.complete("7-1-0", carrier.Result{Verdict: carrier.Accepted}) })
		stop(t, sub)
		relaytest.Equal(t, "the states of both", s.states(1)+", "+s.states(2), "accepted, pending")
		if due := s.due(2); due.After(time.Now()) {
			t.Errorf("the second message is due at %v, want it due now", due)
		}
		s.dispatch(sub, s.save(3, "447700900123", 1, time.Now().Add(time.Hour)))
		synctest.Wait()
		relaytest.Equal(t, "the submissions after Stop", n.submittedIDs(), "7-1-0")
	})
}

func TestPartsAreMarkedAndOutcomesAreSavedInBatches(t *testing.T) {
	n := &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: n, Window: 100}}}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		s.latency = time.Millisecond // without latency, the order of goroutines would determine the size of a batch
		for i := range 1000 {
			s.save(message.ID(i+1), "447700900123", 1, time.Now())
		}
		sub.Start()
		advance(time.Minute)
		relaytest.Equal(t, "the number of submissions", len(strings.Fields(n.submittedIDs())), 1000)
		if got := s.count(); got.markings > 12 || got.settles > 12 {
			t.Errorf("%d calls of MarkSending and %d of Settle, want at most 12 each", got.markings, got.settles)
		}
		stop(t, sub)
	})
}

func TestNothingIsSubmittedWhileTheGateIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s, gate := &network{answer: accept, notReady: true}, newStore(), gateway.NewGate()
		gate.Open()
		sub := relaytest.Must(New(Deps{Store: s, Reporter: s, Routes: []Route{{Name: "one", Connections: connectionTo(n)}}, Gate: gate, Logger: slog.New(slog.DiscardHandler)}, Options{}))(t)
		sub.Start()
		s.dispatch(sub, s.save(1, "447700900123", 1, time.Now().Add(sub.Lease()))) // waits until the carrier is ready
		gate.Close()
		n.change(func() { n.notReady = false })
		s.dispatch(sub, s.save(2, "447700900123", 1, time.Now().Add(sub.Lease())))
		s.save(3, "447700900123", 1, time.Now())
		advance(time.Hour)
		relaytest.Equal(t, "the submissions while the gate is closed", n.submittedIDs(), "")
		gate.Open()
		advance(time.Minute)
		relaytest.Equal(t, "the submissions after the gate is open", n.submittedIDs(), "7-1-0 7-2-0 7-3-0")
		stop(t, sub)
	})
}
