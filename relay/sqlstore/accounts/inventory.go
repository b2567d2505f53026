package accounts

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Inventory returns the merged inventory as it was last saved, nil if none was.
func (s *Store) Inventory(ctx context.Context) ([]byte, error) {
	doc, err := sqlstore.Value[[]byte](ctx, s.db, "inventory", "SELECT doc FROM inventory WHERE id = 1")
	if sqlstore.IsNotFound(err) {
		return nil, nil
	}
	return doc, err
}

// Both accept a document that is saved already, so a change whose answer was
// lost can be repeated.
const (
	insertInventory = `
INSERT INTO inventory (id, doc) VALUES (1, $1)
ON CONFLICT (id) DO UPDATE SET doc = excluded.doc WHERE inventory.doc = excluded.doc`

	updateInventory = `
UPDATE inventory SET doc = $1 WHERE id = 1 AND (doc = $2 OR doc = $1)`
)

// PutInventory saves the merged inventory; was is the one it was merged into,
// empty for none. It returns relay.KindConflict if another one is saved.
func (s *Store) PutInventory(ctx context.Context, was, document []byte) (err error) {
	var n int64
	if len(was) == 0 {
		n, err = s.db.Exec(ctx, "inventory", insertInventory, document)
	} else {
		n, err = s.db.Exec(ctx, "inventory", updateInventory, document, was)
	}
	if err == nil && n == 0 {
		err = relay.Errorf(relay.KindConflict, "inventory: another gateway applied one meanwhile")
	}
	return err
}
