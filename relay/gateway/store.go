package gateway

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// Store stores the gateways of a database and their shared state.
type Store struct{ db *db.DB }

// NewStore returns the store of gateways.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// Heartbeat saves a gateway and the current time as its SeenAt.
func (s *Store) Heartbeat(ctx context.Context, g Gateway) error {
	g.SeenAt = s.db.Now()
	return s.db.Run(ctx, "gateway "+g.Node, db.Upsert("gateway", "node", "url, version, started, seen, facts"), gatewayFields(&g)...)
}

// Gateways lists the gateways by node, including those that are away.
func (s *Store) Gateways(ctx context.Context) ([]Gateway, error) {
	const query = `
		SELECT node, url, version, started, seen, facts
		FROM gateway
		ORDER BY node`
	return db.List(ctx, s.db, "gateways", query, gatewayFields)
}

// gatewayFields returns pointers for the columns node, url, version, started, seen and facts.
func gatewayFields(g *Gateway) []any {
	return []any{&g.Node, &g.URL, &g.Version, db.Time(&g.StartedAt), db.Time(&g.SeenAt), db.JSON(&g.Facts)}
}

// Forget deletes a gateway. It returns a NotFound error if there is none.
func (s *Store) Forget(ctx context.Context, node string) error {
	const statement = `
		DELETE FROM gateway
		WHERE node = $1`
	return db.MustChange(ctx, s.db, "gateway "+node, statement, node)
}

// Setting returns a shared value. It saves the result of generate if there is no value.
func (s *Store) Setting(ctx context.Context, name string, generate func() string) (string, error) {
	const (
		insert = `
			INSERT INTO setting (name, value)
			VALUES ($1, $2)
			ON CONFLICT (name) DO NOTHING`
		query = `
			SELECT value
			FROM setting
			WHERE name = $1`
	)
	label := "setting " + name
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (string, error) {
		if err := tx.Run(ctx, label, insert, name, generate()); err != nil {
			return "", err
		}
		return db.Value[string](ctx, tx, label, query, name)
	})
}

// databaseState selects the id of the database and the number of heartbeats of a gateway.
const databaseState = `
	SELECT COALESCE((SELECT value FROM setting WHERE name = 'database'), ''),
	       COALESCE((SELECT seq FROM checkpoint WHERE node = $1 AND kind = ''), 0)`

// Database returns the id of the database and the number of acknowledged heartbeats of a gateway; ""
// and 0 for a new database.
func (s *Store) Database(ctx context.Context, node string) (id string, beats uint64, err error) {
	type row struct {
		id    string
		beats uint64
	}
	r, err := db.One(ctx, s.db, "database", databaseState, func(r *row) []any { return []any{&r.id, &r.beats} }, node)
	return r.id, r.beats, err
}

// OnConnect registers check, which is called for each new connection to PostgreSQL before its first
// use. read does what Database does, on that connection, and returns "" for a database without tables.
func (s *Store) OnConnect(node string, check func(ctx context.Context, read func(context.Context) (id string, beats uint64, err error)) error) {
	s.db.OnConnect(func(ctx context.Context, query db.QueryRow) error {
		return check(ctx, func(ctx context.Context) (id string, beats uint64, err error) {
			err = query(ctx, databaseState, []any{node}, &id, &beats)
			if db.IsSchemaMissing(err) {
				return "", 0, nil
			}
			return id, beats, err
		})
	})
}

// haltSetting is the name of the setting with the Halt.
const haltSetting = "halt"

// Halt returns the last halt; the zero Halt if there was none.
func (s *Store) Halt(ctx context.Context) (Halt, error) {
	const query = `
		SELECT value
		FROM setting
		WHERE name = $1`
	return db.OrZero(db.One(ctx, s.db, "halt", query, db.Doc[Halt], haltSetting))
}

// SaveHalt saves a halt.
func (s *Store) SaveHalt(ctx context.Context, h Halt) error {
	return s.db.Run(ctx, "halt", db.Upsert("setting", "name", "value"), haltSetting, db.JSON(&h))
}

// LastHeartbeat returns the time of the last heartbeat of any gateway; zero if there was none.
func (s *Store) LastHeartbeat(ctx context.Context) (time.Time, error) {
	const query = `
		SELECT COALESCE(MAX(seen), 0)
		FROM gateway`
	ms, err := db.Value[int64](ctx, s.db, "gateways", query)
	return db.FromMillis(ms), err
}

// Turn reports whether this gateway has to run periodic work now. It returns true once per period,
// to one of the gateways.
func (s *Store) Turn(ctx context.Context, name string, period time.Duration) (bool, error) {
	const statement = `
		INSERT INTO turn (name, due)
		VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE
		SET due = excluded.due
		WHERE turn.due <= $3`
	now := s.db.Now()
	n, err := s.db.Exec(ctx, "turn "+name, statement, name, now.Add(period), now)
	return n == 1, err
}

// HoldCarrier makes a gateway the holder of the binds of a carrier for a period, unless another gateway
// holds them, and returns the holder.
func (s *Store) HoldCarrier(ctx context.Context, carrier, node string, period time.Duration) (holder string, err error) {
	const (
		hold = `
			INSERT INTO carrier_holder (carrier, node, held_until)
			VALUES ($1, $2, $3)
			ON CONFLICT (carrier) DO UPDATE
			SET node = excluded.node, held_until = excluded.held_until
			WHERE carrier_holder.node = excluded.node
			   OR carrier_holder.held_until <= $4`
		query = `
			SELECT node
			FROM carrier_holder
			WHERE carrier = $1`
	)
	label := "holder of carrier " + carrier
	now := s.db.Now()
	n, err := s.db.Exec(ctx, label, hold, carrier, node, now.Add(period), now)
	if err != nil || n == 1 {
		return node, err
	}
	return db.OrZero(db.Value[string](ctx, s.db, label, query, carrier))
}

// ReleaseCarrier ends the hold of a gateway on the binds of a carrier.
func (s *Store) ReleaseCarrier(ctx context.Context, carrier, node string) error {
	const statement = `
		UPDATE carrier_holder
		SET held_until = 0
		WHERE carrier = $1
		  AND node = $2`
	return s.db.Run(ctx, "holder of carrier "+carrier, statement, carrier, node)
}

// SetCheckpoint saves the sequence number up to which a journal was processed.
func (s *Store) SetCheckpoint(ctx context.Context, node, kind string, seq uint64) error {
	return s.db.Run(ctx, "checkpoint "+node, db.Upsert("checkpoint", "node, kind", "seq"), node, kind, int64(seq))
}

// Checkpoint returns the sequence number up to which a journal was processed; 0 if none is saved.
func (s *Store) Checkpoint(ctx context.Context, node, kind string) (uint64, error) {
	const query = `
		SELECT seq
		FROM checkpoint
		WHERE node = $1
		  AND kind = $2`
	return db.OrZero(db.Value[uint64](ctx, s.db, "checkpoint "+node, query, node, kind))
}
