package sim

import (
	"errors"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

// The database may repeat a change after a lost response.
func TestRepeatedRecipientChangesHaveNoEffect(t *testing.T) {
	a, b := Recipient{ID: "1", Email: "a@example.com"}, Recipient{ID: "2", Email: "A@example.com"}
	list, err := addRecipient(nil, a)
	relaytest.NoError(t, err)
	repeated, err := addRecipient(list, a)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of recipients", len(repeated), 1)
	if _, err := addRecipient(list, b); relay.KindOf(err) != relay.KindInvalid {
		t.Errorf("add a recipient with the same address: error %v, want kind invalid", err)
	}
	removed := false
	for range 2 {
		list, err = removeRecipient(list, "1", &removed)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the number of recipients after the removal", len(list), 0)
	}
	var refusal *Refusal
	if _, err := removeRecipient(list, "1", new(bool)); !errors.As(err, &refusal) {
		t.Errorf("remove an unknown recipient: error %v, want a *Refusal", err)
	}
}
