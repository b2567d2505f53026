package queue

import (
	"context"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestADeliveryThatCannotBeDecryptedIsDeadUntilItIsReplayed(t *testing.T) {
	t.Parallel()
	records := recordstest.Open(t)
	records.DB.SetSealer(dbtest.Sealer{})
	b := newBackends(t, redistest.Shared(t).NewDatabase(t))
	b.records, b.store = records, records.Deliveries
	s := newSink(t, always(200))
	r := newRig(t, b, Options{}, nil)
	ds := r.deliveries(3, s.URL)
	r.create(ds, time.Hour) // leased, so that the record can be changed before the attempt
	restore := dbtest.Tamper(t, records.DB, "delivery", "doc", "id = '"+ds[1].ID+"'")
	relaytest.NoError(t, records.DB.Run(t.Context(), "test", "UPDATE delivery SET due = 1"))

	r.await(outbox.Delivered, 2)
	r.await(outbox.Dead, 1)
	relaytest.Equal(t, "the reason of the dead delivery", r.get(ds[1]).Reason, outbox.UndecryptableReason)

	restore()
	_, err := r.store.Replay(context.Background(), []outbox.Ref{{Account: ds[1].Account, ID: ds[1].ID}}, time.Now(), false)
	relaytest.NoError(t, err)
	r.await(outbox.Delivered, 3)
	s.expect(t, 3, 3)
}
