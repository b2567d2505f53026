package inventory

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store stores the merged inventory, and its SIMs in separate rows. It is safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store of the inventory.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// SIMRow is a SIM that an account of a document declares.
type SIMRow struct {
	ICCID, IMSI, MSISDN string
	Document, Account   string // names
	Declared            string // the declaration as JSON
	Undecryptable       bool   // Declared cannot be decrypted and is empty
}

// SIMSelection selects the SIMs that have one of the values, or all SIMs.
type SIMSelection struct {
	ICCIDs, IMSIs, MSISDNs []string
	Documents, Accounts    []string
	All                    bool
}

// SIMChanges are changes of the SIMs of the inventory.
type SIMChanges struct {
	Put    []SIMRow
	Delete []SIMRow // by ICCID and account
}

// Merged returns the stored inventory without its SIMs; nil if there is none.
func (s *Store) Merged(ctx context.Context) ([]byte, error) {
	_, document, err := s.load(ctx)
	return document, err
}

// load returns the stored inventory twice: sealed, as it is stored, and opened.
func (s *Store) load(ctx context.Context) (stored, document []byte, err error) {
	const query = `
		SELECT doc, doc
		FROM inventory
		WHERE id = 1`
	type row struct{ stored, document []byte }
	r, err := db.OrZero(db.One(ctx, s.db, "inventory", query, func(r *row) []any {
		return []any{&r.stored, sealedInventory(&r.document)}
	}))
	return r.stored, r.document, err
}

// sealedInventory returns the sealed column of the inventory, which does not belong to an account.
func sealedInventory(document any) any { return db.Sealed(document, "inventory", 0) }

// Put saves the merged inventory and changes of its SIMs. base is the inventory from which document
// was derived; empty for none. Put returns a Conflict error if another gateway has replaced base.
// It does nothing if document is already stored, so that a caller can repeat it after a lost
// response.
func (s *Store) Put(ctx context.Context, base, document []byte, sims SIMChanges) error {
	const (
		insert = `
			INSERT INTO inventory (id, doc)
			VALUES (1, $1)
			ON CONFLICT (id) DO NOTHING`
		replace = `
			UPDATE inventory
			SET doc = $1
			WHERE id = 1
			  AND doc = $2`
		deleteSIMs = `
			DELETE FROM declared_sim
			WHERE (iccid, account) IN (SELECT iccid, account FROM batch)`
		putSIMs = `
			INSERT INTO declared_sim (iccid, imsi, msisdn, document, account, doc)
			SELECT iccid, imsi, msisdn, document, account, doc FROM batch WHERE true
			ON CONFLICT (iccid, account) DO UPDATE
			SET imsi = excluded.imsi,
			    msisdn = excluded.msisdn,
			    document = excluded.document,
			    doc = excluded.doc`
	)
	errReplaced := relay.Errorf(relay.KindConflict, "inventory: another gateway has replaced it since it was read")
	stored, current, err := s.load(ctx)
	if err != nil {
		return err
	}
	if stored != nil && bytes.Equal(current, document) {
		return nil
	}
	if !bytes.Equal(current, base) && !bytes.Equal(current, document) {
		return errReplaced
	}
	save := db.Do(insert, sealedInventory(document))
	if stored != nil {
		save = db.Do(replace, sealedInventory(document), stored)
	}
	deletions := db.BatchOf("iccid, account", sims.Delete, func(r *SIMRow) []any { return []any{r.ICCID, r.Account} })
	rows := db.BatchOf("iccid, imsi, msisdn, document, account, doc", sims.Put, simFields)
	return s.db.RunAll(ctx, "inventory", save.Or(errReplaced), db.Do(deleteSIMs, deletions), db.Do(putSIMs, rows))
}

const selectSIMs = `
	SELECT iccid, imsi, msisdn, document, account, doc
	FROM declared_sim `

// simFields returns pointers for the columns of selectSIMs.
func simFields(r *SIMRow) []any {
	return []any{&r.ICCID, &r.IMSI, &r.MSISDN, &r.Document, &r.Account, db.SealedOr(&r.Undecryptable, &r.Declared, "declared_sim", &r.Account)}
}

// SIMs returns the selected SIMs, sorted by ICCID and account.
func (s *Store) SIMs(ctx context.Context, selection SIMSelection) ([]SIMRow, error) {
	const label = "SIMs of the inventory"
	byKey := func(a, b SIMRow) int {
		return cmp.Or(cmp.Compare(a.ICCID, b.ICCID), cmp.Compare(a.Account, b.Account))
	}
	if selection.All {
		return db.List(ctx, s.db, label, selectSIMs+"ORDER BY iccid, account", simFields)
	}
	var rows []SIMRow
	for condition, values := range map[string][]string{
		"WHERE iccid IN (SELECT value FROM batch)": selection.ICCIDs,
		// The partial indexes of IMSI and MSISDN exclude empty values.
		"WHERE imsi IN (SELECT value FROM batch) AND imsi <> ''":     selection.IMSIs,
		"WHERE msisdn IN (SELECT value FROM batch) AND msisdn <> ''": selection.MSISDNs,
		"WHERE document IN (SELECT value FROM batch)":                selection.Documents,
		"WHERE account IN (SELECT value FROM batch)":                 selection.Accounts,
	} {
		selected, err := db.List(ctx, s.db, label, selectSIMs+condition, simFields, db.Column("value", values))
		if err != nil {
			return nil, err
		}
		rows = append(rows, selected...)
	}
	slices.SortFunc(rows, byKey)
	return slices.CompactFunc(rows, func(a, b SIMRow) bool { return byKey(a, b) == 0 }), nil
}
