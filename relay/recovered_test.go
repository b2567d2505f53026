package relay

import (
	"errors"
	"testing"
)

func TestRecoveredReturnsErrorsAndPanics(t *testing.T) {
	failed := errors.New("failed")
	if err := Recovered("a query", func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error = %v, want %v", err, failed)
	}
	err := Recovered("a query", func() error { panic("a fault") })
	if KindOf(err) != KindUnexpected || err.Error() != "a query: panic: a fault" {
		t.Errorf("error = %v of kind %v, want the panic", err, KindOf(err))
	}
}
