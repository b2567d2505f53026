package inventory

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	document "github.com/penstock/penstock/config/inventory"
)

// standing has the declarations of earlier inventories, as they are stored. Its SIMs are kept
// one by one, for there may be a million of them: it holds those that an apply concerns.
type standing struct {
	data []byte // without SIMs, as JSON; nil: nothing was ever applied
	set  document.Set
	sims map[simKey]SIMRow // of the set, as they are kept
}

// simKey is a SIM of an account: one that moves to another may be declared in both.
type simKey struct{ iccid, account string }

func keyOf(declaredSIM document.DeclaredSIM) simKey {
	return simKey{declaredSIM.ICCID, declaredSIM.Account}
}

// standing returns what is declared, without SIMs.
func (s *Service) standing(ctx context.Context) (st standing, err error) {
	if st.data, err = s.Store.Merged(ctx); err != nil || st.data == nil {
		return standing{}, err
	}
	if err := json.Unmarshal(st.data, &st.set); err != nil {
		return standing{}, fmt.Errorf("inventory: stored document: %w", err)
	}
	return st, nil
}

// load adds SIMs to the set that st was made with, which has none yet.
func (s *Service) load(ctx context.Context, st *standing, which SIMSelection) error {
	rows, err := s.Store.SIMs(ctx, which)
	if err != nil {
		return err
	}
	// One that does not open stays as it is until it is declared again.
	rows = slices.DeleteFunc(rows, func(row SIMRow) bool { return row.Unopened })
	st.sims = make(map[simKey]SIMRow, len(rows))
	sims := make([]document.DeclaredSIM, len(rows))
	for i, row := range rows {
		st.sims[simKey{row.ICCID, row.Account}] = row
		sims[i].Document, sims[i].Account = row.Document, row.Account
		if err := json.Unmarshal([]byte(row.Declared), &sims[i].SIM); err != nil {
			return fmt.Errorf("inventory: stored SIM %s: %w", row.ICCID, err)
		}
	}
	st.set = st.set.JoinSIMs(sims)
	return nil
}

// concerning selects the SIMs that an apply of a document may compare or change: those
// that it names or whose numbers it claims; with a prune all that it declared before,
// and all of its accounts where it takes them over.
func concerning(fresh document.Document, m document.Mode) SIMSelection {
	keys := fresh.SIMKeys()
	which := SIMSelection{ICCIDs: keys.ICCIDs, IMSIs: keys.IMSIs, MSISDNs: keys.MSISDNs}
	if m.Prune {
		which.Documents = []string{fresh.Owner()}
	}
	if m.Adopt {
		for _, a := range fresh.Accounts {
			which.Accounts = append(which.Accounts, a.Name)
		}
	}
	return which
}

// keep saves a set in the place of what stands.
func (s *Service) keep(ctx context.Context, st standing, set document.Set) error {
	bare, sims := set.SplitSIMs()
	changes, err := st.changes(sims)
	if err != nil {
		return err
	}
	same, err := json.Marshal(bare)
	if err == nil && bytes.Equal(same, st.data) && len(changes.Put)+len(changes.Delete) == 0 {
		return s.Store.Put(ctx, st.data, same, changes) // no change that others have to see
	}
	bare.Revision = rand.Text()
	fresh, err2 := json.Marshal(bare)
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("inventory: encode: %w", err)
	}
	return s.Store.Put(ctx, st.data, fresh, changes)
}

// changes compares SIMs with those that are kept.
func (st standing) changes(sims []document.DeclaredSIM) (c SIMChanges, err error) {
	stays := make(map[simKey]bool, len(sims))
	for _, declaredSIM := range sims {
		declared, err := json.Marshal(declaredSIM.SIM)
		if err != nil {
			return c, fmt.Errorf("inventory: encode: %w", err)
		}
		row := SIMRow{
			ICCID: declaredSIM.ICCID, IMSI: declaredSIM.IMSI, MSISDN: declaredSIM.MSISDN, Document: declaredSIM.Document, Account: declaredSIM.Account, Declared: string(declared),
		}
		if st.sims[keyOf(declaredSIM)] != row && !stays[keyOf(declaredSIM)] {
			c.Put = append(c.Put, row)
		}
		stays[keyOf(declaredSIM)] = true
	}
	for key, simRow := range st.sims {
		if !stays[key] {
			c.Delete = append(c.Delete, simRow)
		}
	}
	return c, nil
}
