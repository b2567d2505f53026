package sim

import (
	"errors"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

// A store whose answer was lost makes a change again, on what the first one made.
func TestRecipientsChangedTwice(t *testing.T) {
	a, b := Recipient{ID: "1", Email: "a@example.com"}, Recipient{ID: "2", Email: "A@example.com"}
	list, err := addRecipient(nil, a)
	relaytest.NoError(t, err)
	again, err := addRecipient(list, a)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of recipients", len(again), 1)
	if _, err := addRecipient(list, b); relay.KindOf(err) != relay.KindInvalid {
		t.Errorf("another of the same address: %v", err)
	}
	there := false
	for range 2 {
		list, err = removeRecipient(list, "1", &there)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the number of recipients after the removal", len(list), 0)
	}
	var refusal *Refusal
	if _, err := removeRecipient(list, "1", new(bool)); !errors.As(err, &refusal) {
		t.Errorf("one that never was: %v", err)
	}
}
