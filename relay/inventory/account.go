package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/sim"
)

const (
	// maxConcurrent is the number of accounts whose records are applied concurrently, because
	// each account needs several commits.
	maxConcurrent = 8
	// chunkSize is the number of accounts that are read and then saved together. It is small, so
	// that little time passes between the two.
	chunkSize = 100
)

// applyAccounts applies the accounts with their records, and then their tokens, so that no client uses an
// incomplete account. Relays and SIMs, which may move from one account to another, are applied
// in the order of the document. In a dry run, a new account has the id 0, which has no records.
func (a *apply) applyAccounts(ctx context.Context) error {
	accountApplies, err := a.saveAccounts(ctx)
	if err != nil {
		return err
	}
	g, groupCtx := errgroup.WithContext(ctx)
	g.SetLimit(maxConcurrent)
	for i := range accountApplies {
		g.Go(func() error {
			return accountApplies[i].wrapError(relay.Recovered("records of an account", func() error { return accountApplies[i].applyOwnRecords(groupCtx) }))
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var tokens []account.Token
	for _, apply := range accountApplies {
		if err := apply.wrapError(apply.applySharedRecords(ctx)); err != nil {
			return errors.Join(err, a.putTokens(ctx, tokens))
		}
		a.report.Added, a.report.Changed = append(a.report.Added, apply.report.Added...), append(a.report.Changed, apply.report.Changed...)
		a.report.Kept, a.report.Drift = append(a.report.Kept, apply.report.Kept...), append(a.report.Drift, apply.report.Drift...)
		a.report.Accounts = append(a.report.Accounts, apply.report.Accounts...)
		tokens = append(tokens, apply.tokens...)
	}
	return a.putTokens(ctx, tokens)
}

func (a *apply) putTokens(ctx context.Context, tokens []account.Token) error {
	return a.write(func() error { return a.Accounts.PutTokens(ctx, tokens) })
}

// accountApply applies an account.
type accountApply struct {
	*Service
	result
	want, oldAccount document.Account // as the document and as earlier inventories declare it
	id               relay.AccountID
	exists           bool            // whether the account existed before the apply
	path             string          // prefix of the names of its records: "account acme: "
	tokens           []account.Token // the tokens to save
	changes          []audit.Entry   // changes over the API, newest first; nil until noteDrift loads them
	owner            string          // the name of the document
}

// saveAccounts saves the accounts without their records.
func (a *apply) saveAccounts(ctx context.Context) ([]*accountApply, error) {
	accountApplies := make([]*accountApply, 0, len(a.fresh.Accounts))
	for chunk := range slices.Chunk(a.fresh.Accounts, chunkSize) {
		saved, err := a.saveChunk(ctx, chunk)
		if err != nil {
			return nil, fmt.Errorf("inventory: %w", err)
		}
		accountApplies = append(accountApplies, saved...)
	}
	return accountApplies, nil
}

// saveChunk saves accounts and sets their ids.
func (a *apply) saveChunk(ctx context.Context, accounts []document.Account) ([]*accountApply, error) {
	accountApplies, saved := make([]*accountApply, len(accounts)), make([]*accountApply, 0, len(accounts))
	newAccounts, oldAccounts := make([]account.Account, 0, len(accounts)), make([]account.Account, 0, len(accounts))
	for i, want := range accounts {
		oldAccount, err := a.Accounts.AccountByName(ctx, want.Name)
		a.didRead("account " + want.Name)
		exists := relay.KindOf(err) != relay.KindNotFound
		apply := &accountApply{
			Service: a.Service, result: result{mode: a.mode}, want: want, oldAccount: a.declaredAccount(want), id: oldAccount.ID, exists: exists,
			path: "account " + want.Name + ": ", owner: a.fresh.Owner(),
		}
		accountApplies[i] = apply
		if err = ignoreMissing(err); err != nil {
			if err := apply.noteUndecryptable("account "+want.Name, err); err != nil {
				return nil, err
			}
			continue
		}
		newAccount := mergeAccount(oldAccount, want, apply.oldAccount)
		newAccounts, oldAccounts, saved = append(newAccounts, newAccount), append(oldAccounts, oldAccount), append(saved, apply)
		apply.noteChange("account "+want.Name, exists, reflect.DeepEqual(newAccount, oldAccount))
		if want.CallbackURL != "" && newAccount.CallbackURL != want.CallbackURL {
			d := document.Drift{Path: "callback_url", Declared: want.CallbackURL, Present: newAccount.CallbackURL, OverAPI: true}
			if err := apply.noteDrift(ctx, d, want.Name, "changeAccount"); err != nil {
				return nil, err
			}
		}
	}
	if !a.mode.DryRun {
		ids, err := a.Accounts.PutAccounts(ctx, newAccounts, oldAccounts)
		if err != nil {
			return nil, err
		}
		for i, id := range ids {
			saved[i].id = id
		}
	}
	for i, apply := range accountApplies {
		accounts[i].ID = int64(apply.id)
		if apply.id != 0 {
			apply.report.Accounts = []document.AppliedAccount{{ID: int64(apply.id), Name: apply.want.Name}}
		}
	}
	return accountApplies, nil
}

// wrapError adds the account to an error.
func (a *accountApply) wrapError(err error) error {
	if err != nil {
		err = fmt.Errorf("inventory: account %s: %w", a.want.Name, err)
	}
	return err
}

// applyOwnRecords saves the records that cannot move from another account.
func (a *accountApply) applyOwnRecords(ctx context.Context) error {
	if err := a.applyCredit(ctx); err != nil {
		return err
	}
	stored, err := a.Devices.Locations(ctx, a.id) // a declared location may exist already
	if err != nil {
		return err
	}
	err = putAll(&a.result, a.path+"location ", locationsOf(a.want), stored,
		func(l iot.Location) string { return l.ID },
		func(l iot.Location) error { return a.Devices.PutLocation(ctx, a.id, l) })
	if err != nil {
		return err
	}
	for _, d := range a.want.Decoders {
		if err := a.applyDecoder(ctx, d); err != nil {
			return err
		}
	}
	for _, r := range a.want.Rules {
		if err := a.applyRule(ctx, r); err != nil {
			return err
		}
	}
	return putAll(&a.result, a.path+"ledger ", a.want.Ledgers, a.oldAccount.Ledgers,
		func(l document.Ledger) string { return l.ID },
		func(l document.Ledger) error {
			return a.Ledgers.Put(ctx, a.id, ledger.Ledger{
				ID: l.ID, Name: l.Name, Description: l.Description, Hash: ledger.NewHash(), Claims: l.Claims, // a stored ledger keeps its hash
				Expiry: time.Duration(l.Expiry), PrivateKeyRequired: l.PrivateKeyRequired, Metadata: l.Metadata, Certificates: l.Certificates,
			})
		})
}

// applySharedRecords saves the records that may move from another account, and collects the tokens.
func (a *accountApply) applySharedRecords(ctx context.Context) error {
	for _, r := range relaysOf(a.want) {
		r.Account = a.id
		if err := a.applyRelay(ctx, r); err != nil {
			return err
		}
	}
	if err := a.applySIMs(ctx, simsOf(a.want)); err != nil {
		return err
	}
	return a.noteTokens(ctx)
}

// applyCredit sets the initial balance of a new account. An existing account keeps its balance unless
// credit is reset.
func (a *accountApply) applyCredit(ctx context.Context) error {
	var credits int64
	if a.want.Credit != nil {
		credits = *a.want.Credit
	}
	if !a.mode.DryRun {
		if err := a.Credit.Open(ctx, a.id, credits, a.Now()); err != nil {
			return err
		}
	}
	if a.want.Credit == nil || !a.exists {
		return nil
	}
	balance, err := a.Credit.Balance(ctx, a.id)
	if err != nil {
		return err
	}
	if !a.resets("credit") {
		granted, err := a.Credit.Granted(ctx, a.id) // charges and refunds are no drift
		if err != nil || granted == credits || balance == credits {
			return err
		}
		return a.noteDrift(ctx, document.Drift{Path: "credit", Declared: credits, Present: balance, Reset: "credit"}, a.want.Name, "adjustCredit")
	}
	return a.put(a.path+"credit", true, balance == credits, func() error { return a.Credit.Set(ctx, a.id, credits, a.Now()) })
}

// simBatch is the largest number of SIMs that are compared together.
const simBatch = 2000

// maxKeptSIMs is the largest number of SIM fields of an account that are listed as kept, because
// thousands of SIMs that were declared pending may be active now.
const maxKeptSIMs = 100

func (a *accountApply) applySIMs(ctx context.Context, sims []sim.SIM) error {
	reset, keptFields := a.resets("sims"), 0
	for chunk := range slices.Chunk(sims, simBatch) {
		iccids := make([]sim.ICCID, len(chunk))
		for i, s := range chunk {
			iccids[i] = s.ICCID
		}
		have, err := a.SIMs.GetMany(ctx, a.id, iccids)
		if err != nil {
			return err
		}
		for _, want := range chunk {
			oldSim, exists := have[want.ICCID]
			if exists && !reset {
				for _, field := range differing("sims."+string(want.ICCID), changingFields(oldSim), changingFields(want)) {
					if keptFields++; keptFields > maxKeptSIMs {
						continue
					}
					field.Reset = "sims"
					if err := a.noteDrift(ctx, field, string(want.ICCID), ""); err != nil {
						return err
					}
				}
			}
			if exists && reflect.DeepEqual(oldSim, sim.ApplyDeclaration(oldSim, want, reset)) {
				continue
			}
			a.noteChange(a.path+"SIM "+string(want.ICCID), exists, false)
		}
	}
	if unlisted := keptFields - maxKeptSIMs; unlisted > 0 {
		a.report.Kept = append(a.report.Kept, fmt.Sprintf("%ssims: %d more fields: kept as they are; --reset sims takes the document's", a.path, unlisted))
	}
	return a.write(func() error { return a.SIMs.Declare(ctx, a.id, sims, reset) })
}

// changingFields returns the declared form of the fields of a SIM that the REST API and jobs change.
func changingFields(s sim.SIM) document.SIM {
	return document.SIM{CurrentState: string(s.State), Service4G: s.Service4G, Service5G: s.Service5G}
}

// noteTokens collects the tokens, which are saved at the end of the apply. The admin API may have
// created a declared token before.
func (a *accountApply) noteTokens(ctx context.Context) error {
	declared := tokensOf(a.id, a.oldAccount)
	a.tokens = tokensOf(a.id, a.want)
	for i := range a.tokens {
		t := &a.tokens[i]
		have := find(declared, func(d account.Token) bool { return d.Hash == t.Hash })
		if have != nil {
			t.Secret = cmp.Or(t.Secret, have.Secret)
		}
		if have == nil {
			stored, err := a.Accounts.Token(ctx, t.Hash)
			if err := ignoreMissing(err); err != nil && !errors.Is(err, relay.ErrUndecryptable) {
				return err
			}
			if err == nil && stored.Account == a.id {
				have, t.CreatedAt = &stored, stored.CreatedAt
			}
		}
		a.noteChange(a.path+"token "+a.want.Tokens[i].Label(), have != nil, have != nil && reflect.DeepEqual(*have, *t))
	}
	return nil
}

// applyTrunks saves the trunks of the document's accounts, including trunks that other documents or
// earlier inventories declared.
func (a *apply) applyTrunks(ctx context.Context, merged document.Document) error {
	index := document.IndexOf(merged.Accounts)
	for _, want := range a.fresh.Accounts {
		oldTrunks := a.declaredAccount(want).SIP.Trunks
		for _, t := range want.SIP.Trunks {
			exists := slices.ContainsFunc(oldTrunks, func(b document.Trunk) bool { return b.Label() == t.Label() })
			a.noteChange("account "+want.Name+": trunk "+t.Label(), exists, true)
		}
		trunks := trunksOf(merged.Accounts[index.Find(want)])
		if err := a.write(func() error { return a.Trunks.PutTrunks(ctx, relay.AccountID(want.ID), trunks) }); err != nil {
			return err
		}
	}
	return nil
}

// declaredAccount returns an account as earlier inventories declared it.
func (a *apply) declaredAccount(want document.Account) document.Account {
	if i := a.oldIndex.Find(want); i >= 0 {
		return a.old.Accounts[i]
	}
	return document.Account{}
}

// mergeAccount returns the account to save. Declared settings replace the stored settings. The REST API
// can change the callback URL, so it is replaced only if it still has the value of the last inventory.
func mergeAccount(rec account.Account, want, oldAccount document.Account) account.Account {
	if rec.CallbackURL == oldAccount.CallbackURL {
		rec.CallbackURL = cmp.Or(want.CallbackURL, rec.CallbackURL)
	}
	rec.ID, rec.Name = cmp.Or(relay.AccountID(want.ID), rec.ID), want.Name
	if len(want.Permissions) > 0 {
		rec.Permissions = want.Permissions
	}
	if len(want.WebhookSecrets) > 0 {
		rec.WebhookSecrets = want.WebhookSecrets
	}
	return rec
}
