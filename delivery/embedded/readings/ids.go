package readings

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/penstock/penstock/relay"
)

// maxIDs is the maximum number of cached names; beyond it the cache is cleared.
const maxIDs = 200_000

type (
	deviceName struct {
		account relay.AccountID
		name    string
	}
	sensorName struct {
		device int64
		name   string
	}
	labelName struct{ kind, identifier, key string }
)

// ids caches the numbers of names, and the time of each sensor's newest reading. After a
// transaction was rolled back, its entries are wrong and must be cleared.
type ids struct {
	devices map[deviceName]int64
	sensors map[sensorName]int64
	labels  map[labelName]int64
	newest  map[int64]int64 // sensor → at most the time in the table
}

func (i *ids) clear() {
	*i = ids{map[deviceName]int64{}, map[sensorName]int64{}, map[labelName]int64{}, map[int64]int64{}}
}

// shrink clears a cache that is full.
func (i *ids) shrink() {
	if len(i.devices)+len(i.sensors)+len(i.labels) > maxIDs {
		i.clear()
	}
}

// lookup returns the number of a name, from the cache or the table; a new name is inserted.
func lookup[K comparable](ctx context.Context, known map[K]int64, name K, find, insert *sql.Stmt, args ...any) (int64, error) {
	if id, ok := known[name]; ok {
		return id, nil
	}
	var id int64
	err := find.QueryRowContext(ctx, args...).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = insert.QueryRowContext(ctx, args...).Scan(&id)
	}
	if err != nil {
		return 0, fmt.Errorf("number of a name: %w", err)
	}
	known[name] = id
	return id, nil
}
