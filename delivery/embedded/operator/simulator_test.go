package operator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/operator"
	"github.com/penstock/penstock/relay/outbox"
)

func TestDeliver(t *testing.T) {
	down := errors.New("down")
	for name, tc := range map[string]struct {
		iccid  string
		serves bool
		err    error
		class  delivery.Class
	}{
		"any SIM":                   {"8944000000000000001", true, nil, delivery.Delivered},
		"one that rejects":          {"8944000000000009001", true, nil, delivery.Dead},
		"one that fails":            {"8944000000000009004", true, nil, delivery.Retry},
		"one that is left":          {"8944000000000000001", false, nil, delivery.Dead},
		"while nobody can be asked": {"8944000000000000001", true, down, delivery.Fault},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := operator.New(Simulator{}, func(context.Context, outbox.Delivery) (bool, error) { return tc.serves, tc.err })
			if err != nil {
				t.Fatal(err)
			}
			r, err := o.Deliver(t.Context(), outbox.Delivery{Relay: "g1", SIM: &outbox.SIM{ICCID: tc.iccid}})
			class := delivery.Delivered
			if err != nil {
				class = delivery.Classify(0, nil, err, time.Now()).Class
			}
			if class != tc.class || class == delivery.Delivered && !r.Simulated {
				t.Errorf("%v %+v, %v", class, r, err)
			}
		})
	}
	if _, err := operator.New(nil, nil); err == nil {
		t.Error("an operator of nothing")
	}
}
