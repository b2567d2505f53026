package inventory

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/audit"
)

const (
	// maxAudited is the largest number of newest entries of an account in the audit log
	// that are searched for who changed a record.
	maxAudited = 1000
	// auditLead is the time for which before a change is saved its entry may have begun.
	auditLead = time.Minute
)

// Drift returns the fields that differ from what documents declare, and the records that
// the API has deleted and the next apply creates again, each named as document.Thing does.
// With an empty name it does so for all documents. It returns relay.KindNotFound if there is
// no document of the name.
func (s *Service) Drift(ctx context.Context, name string) (fields []document.Drift, missing []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.standing(ctx)
	if err != nil {
		return nil, nil, err
	}
	names := st.set.Names()
	if name != "" {
		if !slices.Contains(names, name) {
			return nil, nil, relay.Errorf(relay.KindNotFound, "inventory: no document %s", name)
		}
		names = []string{name}
	}
	if err := s.load(ctx, &st, SIMSelection{Documents: names}); err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		// A dry run of the same document keeps or adds the records that have changed since.
		a := apply{Service: s, notes: notes{mode: document.Mode{DryRun: true}}, oldStanding: st, set: st.set, fresh: st.set.Part(name)}
		if err := a.run(ctx); err != nil {
			return nil, nil, err
		}
		fields, missing = append(fields, a.done.Drift...), append(missing, a.done.Added...)
	}
	return fields, missing, nil
}

// resetAccounts returns the names of accounts that are named or numbered. It returns an
// Invalid error if the document does not declare one of them.
func (s *Service) resetAccounts(ctx context.Context, refs []string, fresh document.Document) (names []string, err error) {
	for _, ref := range refs {
		name := ref
		if id, err := strconv.ParseInt(ref, 10, 64); err == nil {
			a, err := s.Accounts.Account(ctx, relay.AccountID(id))
			if err := ignoreMissing(err); err != nil {
				return nil, err
			}
			name = a.Name
		}
		if !slices.ContainsFunc(fresh.Accounts, func(a document.Account) bool { return a.Name == name }) {
			return nil, relay.Invalid("account", "The document does not declare an account "+ref+".")
		}
		names = append(names, name)
	}
	return names, nil
}

// resets reports whether the apply takes what the document says of one kind of field.
func (a *accountApply) resets(word string) bool {
	if !slices.Contains(a.mode.Reset, word) {
		return false
	}
	names := a.mode.ResetAccounts
	return len(names) == 0 || slices.Contains(names, a.want.Name)
}

// keep notes a field that stays as it is although the document says otherwise, with who
// changed it: the newest entry of the audit log about the target whose operation has one of
// the words. A change by the account itself is not in the audit log.
func (a *accountApply) keep(ctx context.Context, d document.Drift, target string, operations ...string) error {
	if a.changes == nil && target != "" {
		entries, _, err := a.Audit.List(ctx, audit.Filter{Account: a.id, Outcome: audit.Done, Limit: maxAudited})
		if err != nil {
			return err
		}
		a.changes = append([]audit.Entry{}, entries...)
	}
	d.Document, d.Account = a.owner, a.want.Name
	change := find(a.changes, func(e audit.Entry) bool {
		return e.Target == target && slices.ContainsFunc(operations, func(word string) bool { return strings.Contains(e.Operation, word) })
	})
	switch {
	case change == nil:
	case d.ChangedAt.IsZero():
		d.ChangedAt, d.ChangedBy = change.At, change.Actor
	case !change.At.After(d.ChangedAt) && d.ChangedAt.Sub(change.At) < auditLead:
		d.ChangedBy = change.Actor
	}
	a.done.Drift, a.done.Kept = append(a.done.Drift, d), append(a.done.Kept, d.String())
	return nil
}
