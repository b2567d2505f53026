package account

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// DeclaredSIM is a SIM as the inventory keeps it, once for an account.
type DeclaredSIM struct {
	ICCID, IMSI, MSISDN string
	Document, Account   string // that declare it, by name
	Declared            string // how, as JSON
	Unopened            bool   // Declared does not open, and is left out
}

// WhichSIMs selects SIMs of the inventory: those with one of the values, all of some
// documents or accounts, or all.
type WhichSIMs struct {
	ICCIDs, IMSIs, MSISDNs []string
	Documents, Accounts    []string
	All                    bool
}

// SIMChanges are changes of the SIMs of the inventory.
type SIMChanges struct {
	Put    []DeclaredSIM
	Delete []DeclaredSIM // by ICCID and account
}

// Inventory returns the merged inventory as it was last saved, without its SIMs; nil if
// none was.
func (s *Store) Inventory(ctx context.Context) ([]byte, error) {
	_, document, err := s.inventory(ctx)
	return document, err
}

// inventory returns the inventory as it is kept, and opened.
func (s *Store) inventory(ctx context.Context) (kept, document []byte, err error) {
	type row struct{ kept, document []byte }
	r, err := db.OrZero(db.One(ctx, s.db, "inventory", "SELECT doc, doc FROM inventory WHERE id = 1", func(r *row) []any {
		return []any{&r.kept, sealedInventory(&r.document)}
	}))
	return r.kept, r.document, err
}

// sealedInventory returns the sealed column of the inventory, which belongs to no account.
func sealedInventory(document any) any { return db.Sealed(document, "inventory", 0) }

// PutInventory saves the merged inventory and changes of its SIMs; was is the one it
// was merged into, empty for none. It returns relay.KindConflict if another one is
// saved. A document that is saved already is accepted, so a change whose answer was
// lost can be repeated.
func (s *Store) PutInventory(ctx context.Context, was, document []byte, sims SIMChanges) error {
	kept, now, err := s.inventory(ctx)
	if err != nil {
		return err
	}
	if kept != nil && bytes.Equal(now, document) {
		return nil
	}
	if !bytes.Equal(now, was) && !bytes.Equal(now, document) {
		return errOtherInventory()
	}
	save := db.Do("INSERT INTO inventory (id, doc) VALUES (1, $1) ON CONFLICT (id) DO NOTHING", sealedInventory(document))
	if kept != nil {
		save = db.Do("UPDATE inventory SET doc = $1 WHERE id = 1 AND doc = $2", sealedInventory(document), kept)
	}
	gone := db.BatchOf("iccid, account", sims.Delete, func(d *DeclaredSIM) []any { return []any{d.ICCID, d.Account} })
	return s.db.RunAll(ctx, "inventory", save.Or(errOtherInventory()),
		db.Do("DELETE FROM declared_sim WHERE (iccid, account) IN (SELECT iccid, account FROM batch)", gone),
		db.Do(db.UpsertAll("declared_sim", "iccid, account", "imsi, msisdn, document, doc"), db.BatchOf(simColumns, sims.Put, simFields)))
}

func errOtherInventory() error {
	return relay.Errorf(relay.KindConflict, "inventory: another gateway applied one meanwhile")
}

const (
	declaredSIMs = "SIMs of the inventory"
	simColumns   = "iccid, imsi, msisdn, document, account, doc"
	selectSIMs   = "SELECT " + simColumns + " FROM declared_sim"
)

func simFields(d *DeclaredSIM) []any {
	return []any{&d.ICCID, &d.IMSI, &d.MSISDN, &d.Document, &d.Account, db.SealedOr(&d.Unopened, &d.Declared, "declared_sim", &d.Account)}
}

// bySIM orders by ICCID and account.
func bySIM(a, b DeclaredSIM) int {
	return cmp.Or(cmp.Compare(a.ICCID, b.ICCID), cmp.Compare(a.Account, b.Account))
}

// DeclaredSIMs returns SIMs of the inventory by ICCID and account.
func (s *Store) DeclaredSIMs(ctx context.Context, which WhichSIMs) ([]DeclaredSIM, error) {
	all, err := s.declared(ctx, which)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, bySIM)
	all = slices.CompactFunc(all, func(a, b DeclaredSIM) bool { return bySIM(a, b) == 0 })
	return all, nil
}

// declared reads what meets each condition; some more than once.
func (s *Store) declared(ctx context.Context, which WhichSIMs) ([]DeclaredSIM, error) {
	if which.All {
		return db.List(ctx, s.db, declaredSIMs, selectSIMs, simFields)
	}
	var all []DeclaredSIM
	for _, one := range []struct {
		column string
		values []string
	}{
		{"iccid", which.ICCIDs}, {"imsi", which.IMSIs}, {"msisdn", which.MSISDNs}, {"document", which.Documents}, {"account", which.Accounts},
	} {
		where := " WHERE " + one.column + " IN (SELECT value FROM batch)"
		if one.column == "imsi" || one.column == "msisdn" {
			where += " AND " + one.column + " <> ''" // the condition of its index
		}
		some, err := db.List(ctx, s.db, declaredSIMs, selectSIMs+where, simFields, db.Column("value", one.values))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
