package accounts

import (
	"cmp"
	"context"
	"slices"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sqlstore"
)

const (
	declaredSIMs = "SIMs of the inventory"
	simBatch     = "iccid text, imsi text, msisdn text, document text, account text, doc text"
	selectSIMs   = "SELECT iccid, imsi, msisdn, document, account, doc FROM declared_sim"
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
		some, err := sqlstore.List(ctx, s.db, declaredSIMs, selectSIMs+where, simFields, sqlstore.Column("value text", one.values))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
