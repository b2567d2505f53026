package relay

import (
	"errors"
	"testing"
)

func TestRecovered(t *testing.T) {
	failed := errors.New("failed")
	if err := Recovered("a query", func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v, want the error of the function", err)
	}
	err := Recovered("a query", func() error { panic("a fault") })
	if KindOf(err) != KindUnexpected || err.Error() != "a query: panic: a fault" {
		t.Errorf("got %v of kind %v, want the panic", err, KindOf(err))
	}
}
