package accounts

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sqlstore"
)

// aboutInventory is the encryption context of the inventory.
const aboutInventory = "inventory"

// Inventory returns the merged inventory as it was last saved, without its SIMs; nil if
// none was.
func (s *Store) Inventory(ctx context.Context) ([]byte, error) {
	_, document, err := s.inventory(ctx)
	return document, err
}

// inventory returns the inventory as it is kept, and opened.
func (s *Store) inventory(ctx context.Context) (kept, document []byte, err error) {
	kept, err = sqlstore.Value[[]byte](ctx, s.db, "inventory", "SELECT doc FROM inventory WHERE id = 1")
	if sqlstore.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	text, err := s.open(ctx, string(kept), aboutInventory)
	return kept, []byte(text), err
}

// PutInventory saves the merged inventory and changes of its SIMs; was is the one it
// was merged into, empty for none. It returns relay.KindConflict if another one is
// saved. A document that is saved already is accepted, so a change whose answer was
// lost can be repeated.
func (s *Store) PutInventory(ctx context.Context, was, document []byte, sims account.SIMChanges) error {
	kept, now, err := s.inventory(ctx)
	if err != nil {
		return err
	}
	if kept != nil && bytes.Equal(now, document) && (s.Sealer == nil || bytes.HasPrefix(kept, []byte(sealedPrefix))) {
		return nil
	}
	if !bytes.Equal(now, was) && !bytes.Equal(now, document) {
		return errOtherInventory()
	}
	sealed, err := s.seal(ctx, string(document), aboutInventory)
	if err != nil {
		return err
	}
	put := slices.Clone(sims.Put)
	for i := range put {
		if put[i].Declared, err = s.seal(ctx, put[i].Declared, aboutSIM(put[i].ICCID)); err != nil {
			return err
		}
	}
	save := sqlstore.Do("INSERT INTO inventory (id, doc) VALUES (1, $1) ON CONFLICT (id) DO NOTHING", []byte(sealed))
	if kept != nil {
		save = sqlstore.Do("UPDATE inventory SET doc = $1 WHERE id = 1 AND doc = $2", []byte(sealed), kept)
	}
	gone := sqlstore.BatchOf("iccid, account", sims.Delete, func(d *account.DeclaredSIM) []any { return []any{d.ICCID, d.Account} })
	return s.db.RunAll(ctx, "inventory", save.Or(errOtherInventory()),
		sqlstore.Do("DELETE FROM declared_sim WHERE (iccid, account) IN (SELECT iccid, account FROM batch)", gone),
		sqlstore.Do(sqlstore.UpsertAll("declared_sim", "iccid, account", "imsi, msisdn, document, doc"), sqlstore.BatchOf(simColumns, put, simFields)))
}

func errOtherInventory() error {
	return relay.Errorf(relay.KindConflict, "inventory: another gateway applied one meanwhile")
}

const (
	declaredSIMs = "SIMs of the inventory"
	simColumns   = "iccid, imsi, msisdn, document, account, doc"
	selectSIMs   = "SELECT " + simColumns + " FROM declared_sim"
)

func simFields(d *account.DeclaredSIM) []any {
	return []any{&d.ICCID, &d.IMSI, &d.MSISDN, &d.Document, &d.Account, &d.Declared}
}

// aboutSIM is the encryption context of a SIM of the inventory.
func aboutSIM(iccid string) string { return "declaration of the SIM " + iccid }

// bySIM orders by ICCID and account.
func bySIM(a, b account.DeclaredSIM) int {
	return cmp.Or(cmp.Compare(a.ICCID, b.ICCID), cmp.Compare(a.Account, b.Account))
}

// DeclaredSIMs returns SIMs of the inventory by ICCID and account.
func (s *Store) DeclaredSIMs(ctx context.Context, which account.WhichSIMs) ([]account.DeclaredSIM, error) {
	all, err := s.declared(ctx, which)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, bySIM)
	all = slices.CompactFunc(all, func(a, b account.DeclaredSIM) bool { return bySIM(a, b) == 0 })
	for i := range all {
		if all[i].Declared, err = s.open(ctx, all[i].Declared, aboutSIM(all[i].ICCID)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// declared reads what meets each condition; some more than once.
func (s *Store) declared(ctx context.Context, which account.WhichSIMs) ([]account.DeclaredSIM, error) {
	if which.All {
		return sqlstore.List(ctx, s.db, declaredSIMs, selectSIMs, simFields)
	}
	var all []account.DeclaredSIM
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
		some, err := sqlstore.List(ctx, s.db, declaredSIMs, selectSIMs+where, simFields, sqlstore.Column("value", one.values))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
