package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// deferredBatch is the number of deferred entries that are processed in one turn.
const deferredBatch = 16

// noAccount is lower than every account ID.
const noAccount = relay.AccountID(-1)

// processDeferred processes deferred entries in turns, including entries deferred before a
// restart. Each turn begins with the account after the last account of the previous turn.
func (i *Intake) processDeferred(ctx context.Context) {
	backoff, lastAccount := minBackoff, noAccount
	for ctx.Err() == nil {
		deferred := i.deferred.Load()
		turnAccount, err := i.processTurn(ctx, lastAccount)
		if err != nil {
			if ctx.Err() == nil {
				i.recordOutage(err)
			}
			relay.Sleep(ctx, backoff)
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		if backoff != minBackoff {
			i.outage.Store(nil)
			backoff = minBackoff
		}
		if turnAccount == noAccount && lastAccount == noAccount { // there are no deferred entries
			i.deferredWhenDrained.Store(&deferred)
			relay.Wait(ctx, i.deferredReady)
		}
		lastAccount = turnAccount
	}
}

// processTurn processes deferred entries of accounts above lastAccount. It returns the last
// account of the turn, or noAccount if there are no deferred entries of these accounts.
func (i *Intake) processTurn(ctx context.Context, lastAccount relay.AccountID) (relay.AccountID, error) {
	statuses, err := i.statuses.Deferred(ctx, i.kind, lastAccount, deferredBatch)
	if err != nil || len(statuses) == 0 {
		return noAccount, err
	}
	var items []Item
	var unprocessable []event.Status // of entries that can no longer be processed
	sum, account := 0, lastAccount
	for _, status := range statuses {
		r, err := i.log.Read(status.Seq)
		w := weight(r.Payload)
		if len(items) > 0 && sum+w > maxBatchWeight {
			break
		}
		account, sum = status.Account, sum+w
		if errors.Is(err, journal.ErrNotFound) {
			i.logger.Error("deferred event lost: record damaged or deleted", "event", status.ID)
			status.State = event.Done
			unprocessable = append(unprocessable, status)
			continue
		}
		if err != nil {
			return noAccount, fmt.Errorf("event %s: %w", status.ID, err)
		}
		item, err := i.item(r)
		if err != nil {
			unprocessable = append(unprocessable, quarantinedStatus(item, err))
			continue
		}
		item.ProcessNow = true
		items = append(items, item)
	}
	if err := i.statuses.Set(ctx, i.kind, unprocessable); err != nil {
		return noAccount, err
	}
	return account, i.reprocess(ctx, items)
}

// needTimeout limits the status queries of Need.
const needTimeout = 2 * time.Second

// Need returns the Need option of a journal. The option reports whether a range of records
// before the checkpoint contains deferred events, which are not processed yet, or quarantined
// events, which can be replayed.
func Need(kind event.Kind, statuses *event.Statuses) func(firstSeq, lastSeq uint64) (journal.Need, error) {
	return func(firstSeq, lastSeq uint64) (journal.Need, error) {
		ctx, cancel := context.WithTimeout(context.Background(), needTimeout)
		defer cancel()
		for _, check := range []struct {
			state event.State
			need  journal.Need
		}{{event.Pending, journal.ToProcess}, {event.Quarantined, journal.ForReplay}} {
			newest, err := statuses.List(ctx, kind, check.state, lastSeq+1, 1)
			if err != nil || len(newest) > 0 && newest[0].Seq >= firstSeq {
				return check.need, err
			}
		}
		return journal.NotNeeded, nil
	}
}
