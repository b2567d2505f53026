package app

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sip"
)

// holdings lists what an account holds that its removal would lose.
func (r *recordStores) holdings(ctx context.Context, acct relay.AccountID) ([]string, error) {
	kinds := []struct {
		name  string
		count func() (int64, error)
	}{
		{"credit", func() (int64, error) { return r.Credit.Balance(ctx, acct) }},
		{"a history of credit", func() (int64, error) {
			entries, err := r.Credit.Entries(ctx, acct, 0, 1000) // the newest: what was spent, not what operators set
			entries = slices.DeleteFunc(entries, func(e credit.Entry) bool {
				return slices.Contains([]credit.Reason{credit.Opened, credit.Reset, credit.Adjusted}, e.Reason)
			})
			return int64(len(entries)), err
		}},
		{"unread messages", func() (int64, error) { return r.unread(ctx, acct) }},
		{"alarms", func() (int64, error) {
			found, _, err := r.Rules.Alarms(ctx, acct, rule.AlarmFilter{Limit: 1})
			return int64(len(found)), err
		}},
		{"subscribers", func() (int64, error) {
			found, _, err := r.Subscribers.List(ctx, acct, sim.Query{Page: relay.Page{Number: 1, PerPage: 1}})
			return int64(len(found)), err
		}},
		{"messages", func() (int64, error) {
			found, _, err := r.Messages.List(ctx, message.Filter{Account: acct, Limit: 1})
			return int64(len(found)), err
		}},
		{"deliveries", func() (int64, error) {
			found, _, err := r.Deliveries.List(ctx, outbox.Filter{Account: acct, Limit: 1})
			return int64(len(found)), err
		}},
		{"devices", func() (int64, error) {
			found, err := r.Devices.Devices(ctx, acct)
			return int64(len(found)), err
		}},
		{"SIMs", func() (int64, error) {
			found, err := r.SIMs.Scan(ctx, acct, sim.Scope{}, "", 1)
			return int64(len(found)), err
		}},
		{"jobs", func() (int64, error) {
			found, err := r.Jobs.Find(ctx, job.Search{Account: acct, Limit: 1})
			return int64(len(found)), err
		}},
		{"call records", func() (int64, error) {
			found, err := r.Calls.Read(ctx, acct, time.Unix(0, 0), time.Now().AddDate(1, 0, 0), sip.Cursor{}, 1)
			return int64(len(found)), err
		}},
		{"ledgers with a history", func() (int64, error) { return r.ledgerEntries(ctx, acct) }},
		{"users", func() (int64, error) {
			var n int64
			users, err := r.Users.Users(ctx)
			for _, u := range users {
				if u.Account == acct {
					n++
				}
			}
			return n, err
		}},
	}
	var texts []string
	for _, kind := range kinds {
		n, err := kind.count()
		if err != nil {
			return nil, err
		}
		if n > 0 {
			texts = append(texts, kind.name)
		}
	}
	return texts, nil
}

// unread counts the messages in the inboxes of an account's virtual numbers.
func (r *recordStores) unread(ctx context.Context, acct relay.AccountID) (total int64, err error) {
	relays, err := r.Inbound.List(ctx, acct, inbound.VirtualNumber)
	for i := range relays {
		var n int
		if err == nil {
			_, n, err = r.Inbound.Read(ctx, acct, relays[i].ID, 0, 1)
		}
		total += int64(n)
	}
	return total, err
}

// ledgerEntries counts the entries of an account's ledgers.
func (r *recordStores) ledgerEntries(ctx context.Context, acct relay.AccountID) (int64, error) {
	ledgers, err := r.Ledgers.Ledgers(ctx, acct)
	if err != nil {
		return 0, err
	}
	var entries int64
	for _, l := range ledgers {
		log, err := r.Ledgers.Log(ctx, acct, l.ID)
		if err != nil && relay.KindOf(err) != relay.KindNotFound {
			return 0, err
		}
		entries += log.Entries
	}
	return entries, nil
}
