package gateway

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// Store stores the gateways of a database and what they share.
type Store struct{ db *db.DB }

// New returns the store of gateways.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// Heartbeat saves a gateway as it is now.
func (s *Store) Heartbeat(ctx context.Context, g Gateway) error {
	g.SeenAt = s.db.Now()
	return s.db.Run(ctx, "gateway "+g.Node, db.Upsert("gateway", "node", "url, version, started, seen, facts"), fields(&g)...)
}

// Gateways lists them by node.
func (s *Store) Gateways(ctx context.Context) ([]Gateway, error) {
	return db.List(ctx, s.db, "gateways", "SELECT node, url, version, started, seen, facts FROM gateway ORDER BY node", fields)
}

// fields are the columns of a gateway.
func fields(g *Gateway) []any {
	return []any{&g.Node, &g.URL, &g.Version, db.Time(&g.StartedAt), db.Time(&g.SeenAt), db.JSON(&g.Facts)}
}

// Forget removes a gateway; relay.KindNotFound if there is none.
func (s *Store) Forget(ctx context.Context, node string) error {
	return db.MustChange(ctx, s.db, "gateway "+node, "DELETE FROM gateway WHERE node = $1", node)
}

// Setting returns a value that the gateways share, making it if there is none.
func (s *Store) Setting(ctx context.Context, name string, generate func() string) (string, error) {
	noun := "setting " + name
	return db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) (string, error) {
		if err := tx.Run(ctx, noun, "INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", name, generate()); err != nil {
			return "", err
		}
		return db.Value[string](ctx, tx, noun, "SELECT value FROM setting WHERE name = $1", name)
	})
}

// Database returns the id of the database and how many heartbeats of a gateway it has
// acknowledged; "" and 0 if it has none.
func (s *Store) Database(ctx context.Context, node string) (id string, beats uint64, err error) {
	row, err := db.One(ctx, s.db, "database", databaseState, func(r *databaseRow) []any { return []any{&r.id, &r.beats} }, node)
	return row.id, row.beats, err
}

type databaseRow struct {
	id    string
	beats uint64
}

const databaseState = `
SELECT COALESCE((SELECT value FROM setting WHERE name = 'database'), ''), COALESCE((SELECT seq FROM checkpoint WHERE node = $1 AND kind = ''), 0)`

// OnConnect has check called for each new connection to PostgreSQL before it is used.
// read is Database on that connection; without tables the database has no id.
func (s *Store) OnConnect(node string, check func(ctx context.Context, read func(context.Context) (id string, beats uint64, err error)) error) {
	s.db.OnConnect(func(ctx context.Context, query db.QueryRow) error {
		return check(ctx, func(ctx context.Context) (id string, beats uint64, err error) {
			err = query(ctx, databaseState, []any{node}, &id, &beats)
			if db.Emptied(err) {
				return "", 0, nil
			}
			return id, beats, err
		})
	})
}

// haltSetting is the name of the setting that has the Halt.
const haltSetting = "halt"

// Halt returns the last halt; the zero Halt if there was none.
func (s *Store) Halt(ctx context.Context) (Halt, error) {
	return db.OrZero(db.One(ctx, s.db, "halt", "SELECT value FROM setting WHERE name = $1", db.Doc[Halt], haltSetting))
}

// SaveHalt saves a halt.
func (s *Store) SaveHalt(ctx context.Context, h Halt) error {
	return s.db.Run(ctx, "halt", db.Upsert("setting", "name", "value"), haltSetting, db.JSON(&h))
}

// LastWrite returns the time of the last heartbeat of any gateway.
func (s *Store) LastWrite(ctx context.Context) (time.Time, error) {
	ms, err := db.Value[int64](ctx, s.db, "gateways", "SELECT COALESCE(MAX(seen), 0) FROM gateway")
	if err != nil || ms == 0 {
		return time.Time{}, err
	}
	return db.Moment(ms), nil
}

// Turn reports whether periodic work is due and this gateway runs it: within a period
// it returns true to one of all gateways.
func (s *Store) Turn(ctx context.Context, name string, every time.Duration) (bool, error) {
	now := s.db.Now()
	n, err := s.db.Exec(ctx, "turn "+name, db.Upsert("turn", "name", "due")+" WHERE turn.due <= $3", name, now.Add(every), now)
	return n == 1, err
}

// HoldCarrier has a gateway hold the binds of a carrier for a time, unless another one
// holds them, and returns the holder.
func (s *Store) HoldCarrier(ctx context.Context, carrier, node string, period time.Duration) (holder string, err error) {
	label := "holder of carrier " + carrier
	now := s.db.Now()
	n, err := s.db.Exec(ctx, label, db.Upsert("carrier_holder", "carrier", "node, held_until")+`
WHERE carrier_holder.node = excluded.node OR carrier_holder.held_until <= $4`, carrier, node, now.Add(period), now)
	if err != nil || n == 1 {
		return node, err
	}
	return db.OrZero(db.Value[string](ctx, s.db, label, "SELECT node FROM carrier_holder WHERE carrier = $1", carrier))
}

// ReleaseCarrier lets another gateway hold the binds of a carrier at once, if node holds
// them.
func (s *Store) ReleaseCarrier(ctx context.Context, carrier, node string) error {
	_, err := s.db.Exec(ctx, "holder of carrier "+carrier, "UPDATE carrier_holder SET held_until = 0 WHERE carrier = $1 AND node = $2", carrier, node)
	return err
}

// SetCheckpoint notes how far a journal was processed.
func (s *Store) SetCheckpoint(ctx context.Context, node, kind string, seq uint64) error {
	return s.db.Run(ctx, "checkpoint "+node, db.Upsert("checkpoint", "node, kind", "seq"), node, kind, int64(seq))
}

// Checkpoint is how far a journal was processed as far as the database knows; 0
// if it has not seen the journal.
func (s *Store) Checkpoint(ctx context.Context, node, kind string) (uint64, error) {
	return db.OrZero(db.Value[uint64](ctx, s.db, "checkpoint "+node, `
SELECT seq FROM checkpoint WHERE node = $1 AND kind = $2`, node, kind))
}
