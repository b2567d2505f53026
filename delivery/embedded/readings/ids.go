package readings

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/penstock/penstock/relay/account"
)

// maxIDs is the maximum number of cached names; beyond it the cache is cleared.
const maxIDs = 200_000

type (
	deviceName struct {
		account account.ID
		name    string
	}
	sensorName struct {
		device int64
		name   string
	}
	labelName struct{ kind, identifier, key string }
)

// ids caches the numbers of names, and the time of each sensor's newest reading. Those of a transaction that was rolled
// back are wrong, so forget must follow.
type ids struct {
	devices map[deviceName]int64
	sensors map[sensorName]int64
	labels  map[labelName]int64
	newest  map[int64]int64 // sensor → at most the time in the table
}

func newIDs() *ids {
	i := &ids{}
	i.forget()
	return i
}

func (i *ids) forget() {
	i.devices = map[deviceName]int64{}
	i.sensors = map[sensorName]int64{}
	i.labels = map[labelName]int64{}
	i.newest = map[int64]int64{}
}

func (i *ids) shrink() {
	if len(i.devices)+len(i.sensors)+len(i.labels) > maxIDs {
		i.forget()
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
