package operator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/operator"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
)

var (
	_ operator.SIMs         = Simulator{}
	_ provisioning.Operator = Simulator{}
)

func TestTheICCIDSelectsTheResultOfAMessage(t *testing.T) {
	down := errors.New("down")
	for name, tc := range map[string]struct {
		iccid  string
		serves bool
		err    error
		class  delivery.Class
	}{
		"any SIM":                               {"8944000000000000001", true, nil, delivery.Delivered},
		"9001 is rejected":                      {"8944000000000009001", true, nil, delivery.Dead},
		"9004 fails downstream":                 {"8944000000000009004", true, nil, delivery.Retry},
		"a SIM that its relay no longer serves": {"8944000000000000001", false, nil, delivery.Dead},
		"relays cannot be loaded":               {"8944000000000000001", true, down, delivery.Fault},
	} {
		t.Run(name, func(t *testing.T) {
			o := operator.New(Simulator{}, func(context.Context, outbox.Delivery) (bool, error) { return tc.serves, tc.err })
			r, err := o.Deliver(t.Context(), outbox.Delivery{Relay: "g1", SIM: &outbox.SIM{ICCID: tc.iccid}})
			class := delivery.Delivered
			if err != nil {
				class = delivery.Classify(0, nil, err, time.Now()).Class
			}
			relaytest.Equal(t, "the class", class, tc.class)
			if class == delivery.Delivered {
				relaytest.Equal(t, "the result is simulated", r.Simulated, true)
			}
		})
	}
}

func TestTheICCIDSelectsTheReportOfACommand(t *testing.T) {
	requestedAt := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const service = "The simulated operator does not have this service."
	for name, tc := range map[string]struct {
		suffix string
		action provisioning.Action
		age    time.Duration
		want   provisioning.Report
		down   bool
	}{
		"any SIM":                                 {"0001", provisioning.Activate, 0, provisioning.Report{}, false},
		"9001 is refused":                         {"9001", provisioning.Suspend, 0, provisioning.Report{Refused: "The simulated operator refuses."}, false},
		"9002 is pending for a while":             {"9002", provisioning.Activate, 2 * time.Second, provisioning.Report{Pending: true, RetryAfter: 3 * time.Second}, false},
		"9002 completes":                          {"9002", provisioning.Activate, Slow, provisioning.Report{}, false},
		"9003 is never reported":                  {"9003", provisioning.Activate, time.Hour, provisioning.Report{Pending: true}, false},
		"9004 is down":                            {"9004", provisioning.Activate, time.Hour, provisioning.Report{}, true},
		"9005 is down at first":                   {"9005", provisioning.Activate, 0, provisioning.Report{}, true},
		"9005 is available again":                 {"9005", provisioning.Activate, Slow, provisioning.Report{}, false},
		"9006 is suspended after activation":      {"9006", provisioning.Activate, 0, provisioning.Report{State: sim.Suspended}, false},
		"9006 can be unsuspended":                 {"9006", provisioning.Unsuspend, 0, provisioning.Report{}, false},
		"9007 is terminated instead of activated": {"9007", provisioning.Activate, 0, provisioning.Report{State: sim.Terminated}, false},
		"9008 gets no further services":           {"9008", provisioning.AddService, 0, provisioning.Report{Refused: service}, false},
		"9008 is activated with its services":     {"9008", provisioning.Activate, 0, provisioning.Report{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := Simulator{Now: func() time.Time { return requestedAt.Add(tc.age) }}
			r, err := s.Command(t.Context(), provisioning.Command{ICCID: "894400000000000" + tc.suffix, Action: tc.action, At: requestedAt})
			tc.want.Simulated = true
			relaytest.Equal(t, "the report", r, tc.want)
			if tc.down {
				relaytest.Equal(t, "the kind of the error", relay.KindOf(err), relay.KindUnavailable)
			} else {
				relaytest.NoError(t, err)
			}
		})
	}
	relaytest.Equal(t, "the kind of Ready's error for 9004", relay.KindOf(Simulator{}.Ready(t.Context(), "8944000000000009004")), relay.KindUnavailable)
	relaytest.NoError(t, Simulator{}.Ready(t.Context(), "8944000000000009005"))
}
