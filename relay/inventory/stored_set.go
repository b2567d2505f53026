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

// storedSet has the stored records of earlier inventories. SIMs are stored in separate rows,
// because there may be a million of them; the set has only the SIMs that an apply concerns.
type storedSet struct {
	data []byte // JSON without SIMs; nil if no inventory was ever applied
	set  document.Set
	sims map[simKey]SIMRow // stored rows of the SIMs of set
}

// simKey identifies a declared SIM. A SIM that moves to another account may be declared in both.
type simKey struct{ iccid, account string }

func keyOf(declaredSIM document.DeclaredSIM) simKey {
	return simKey{declaredSIM.ICCID, declaredSIM.Account}
}

// loadSet returns the stored set without SIMs.
func (s *Service) loadSet(ctx context.Context) (stored storedSet, err error) {
	if stored.data, err = s.Store.Merged(ctx); err != nil || stored.data == nil {
		return storedSet{}, err
	}
	if err := json.Unmarshal(stored.data, &stored.set); err != nil {
		return storedSet{}, fmt.Errorf("inventory: stored document: %w", err)
	}
	return stored, nil
}

// loadSIMs adds SIMs to a set that loadSet returned.
func (s *Service) loadSIMs(ctx context.Context, stored *storedSet, selection SIMSelection) error {
	rows, err := s.Store.SIMs(ctx, selection)
	if err != nil {
		return err
	}
	// A SIM that cannot be decrypted is kept until it is declared again.
	rows = slices.DeleteFunc(rows, func(row SIMRow) bool { return row.Undecryptable })
	stored.sims = make(map[simKey]SIMRow, len(rows))
	sims := make([]document.DeclaredSIM, len(rows))
	for i, row := range rows {
		stored.sims[simKey{row.ICCID, row.Account}] = row
		sims[i].Document, sims[i].Account = row.Document, row.Account
		if err := json.Unmarshal([]byte(row.Declared), &sims[i].SIM); err != nil {
			return fmt.Errorf("inventory: stored SIM %s: %w", row.ICCID, err)
		}
	}
	stored.set = stored.set.JoinSIMs(sims)
	return nil
}

// concernedSIMs selects the SIMs that an apply of a document may compare or change: the SIMs with
// an ICCID or number of the document, with Prune all SIMs that the document declared before, and
// with Adopt all SIMs of its accounts.
func concernedSIMs(fresh document.Document, m document.Mode) SIMSelection {
	keys := fresh.SIMKeys()
	selection := SIMSelection{ICCIDs: keys.ICCIDs, IMSIs: keys.IMSIs, MSISDNs: keys.MSISDNs}
	if m.Prune {
		selection.Documents = []string{fresh.Owner()}
	}
	if m.Adopt {
		for _, a := range fresh.Accounts {
			selection.Accounts = append(selection.Accounts, a.Name)
		}
	}
	return selection
}

// saveSet replaces the stored set.
func (s *Service) saveSet(ctx context.Context, stored storedSet, set document.Set) error {
	bare, sims := set.SplitSIMs()
	changes, err := stored.changes(sims)
	if err != nil {
		return err
	}
	unchanged, err := json.Marshal(bare)
	if err == nil && bytes.Equal(unchanged, stored.data) && len(changes.Put)+len(changes.Delete) == 0 {
		return s.Store.Put(ctx, stored.data, unchanged, changes) // keep the revision
	}
	bare.Revision = rand.Text()
	fresh, err2 := json.Marshal(bare)
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("inventory: encode: %w", err)
	}
	return s.Store.Put(ctx, stored.data, fresh, changes)
}

// changes returns the changes that make the stored SIMs equal to sims.
func (s storedSet) changes(sims []document.DeclaredSIM) (c SIMChanges, err error) {
	declaredKeys := make(map[simKey]bool, len(sims))
	for _, declaredSIM := range sims {
		declared, err := json.Marshal(declaredSIM.SIM)
		if err != nil {
			return c, fmt.Errorf("inventory: encode: %w", err)
		}
		row := SIMRow{
			ICCID: declaredSIM.ICCID, IMSI: declaredSIM.IMSI, MSISDN: declaredSIM.MSISDN, Document: declaredSIM.Document, Account: declaredSIM.Account, Declared: string(declared),
		}
		if s.sims[keyOf(declaredSIM)] != row && !declaredKeys[keyOf(declaredSIM)] {
			c.Put = append(c.Put, row)
		}
		declaredKeys[keyOf(declaredSIM)] = true
	}
	for key, simRow := range s.sims {
		if !declaredKeys[key] {
			c.Delete = append(c.Delete, simRow)
		}
	}
	return c, nil
}
