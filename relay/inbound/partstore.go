package inbound

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/db"
)

const partsLabel = "parts"

// eventKey identifies a parked message.
type eventKey struct{ group, event string }

func parkedFields(g *ReassembledMessage) []any {
	return []any{&g.Group, &g.Event, &g.ID, db.JSON(&g.Parts)}
}

// Add adds parts in order, in one transaction, and returns the result of each. All gateways
// share the parts.
func (s *Store) Add(ctx context.Context, arrivals []PartArrival, t Times) ([]AddResult, error) {
	const selectParked = `
		SELECT grp, event, id, doc
		FROM part_parked
		WHERE (grp, event) IN (SELECT grp, event FROM batch)
		  AND expires > $1`
	if len(arrivals) == 0 {
		return nil, nil
	}
	docs, names := make([]string, len(arrivals)), make([]string, len(arrivals))
	for i := range arrivals {
		doc, err := db.Encode(&arrivals[i].Message)
		if err != nil {
			return nil, fmt.Errorf("part %s: %w", arrivals[i].Message.ID, err)
		}
		docs[i], names[i] = doc, arrivals[i].Group
	}
	events := db.BatchOf("grp, event", arrivals, func(a *PartArrival) []any { return []any{a.Group, a.Message.ID} })
	times := groupTimesOf(t)
	return db.Transact(ctx, s.db, partsLabel, func(ctx context.Context, tx *db.Tx) ([]AddResult, error) {
		messages, err := db.List(ctx, tx, partsLabel, selectParked, parkedFields, tx.Now(), events)
		if err != nil {
			return nil, err
		}
		parked := db.IndexBy(messages, func(g ReassembledMessage) eventKey { return eventKey{g.Group, g.Event} })
		groups, err := lockGroups(ctx, tx, names, times)
		if err != nil {
			return nil, err
		}
		results := make([]AddResult, len(arrivals))
		for i := range arrivals {
			a, added := &arrivals[i], &results[i]
			if p, ok := parked[eventKey{a.Group, a.Message.ID}]; ok {
				p.Event = ""
				*added = AddResult{State: RouteAgain, MessageID: p.ID, Group: p}
				continue
			}
			g := groups[a.Group]
			p := &part{id: a.Message.ID, number: a.Number, digest: a.Digest, doc: docs[i]}
			if *added, err = g.add(p, a.Total, times); err != nil {
				return nil, err
			}
			if added.State == Completed || added.State == RouteAgain {
				if added.Group, err = g.reassembled(added.MessageID); err != nil {
					return nil, err
				}
			}
		}
		return results, groups.save(ctx, tx)
	})
}

// Due leases messages that are due: those whose lease expired before End, then those that have
// waited too long for missing parts. Due also returns, once, parts that were dropped because they
// repeat a message.
func (s *Store) Due(ctx context.Context, t Times, limit int) ([]ReassembledMessage, error) {
	const leaseReady = `
		WITH found AS (
		  SELECT grp AS g, id AS i
		  FROM part_ready
		  WHERE due <= $1
		  ORDER BY due
		  LIMIT $2 {skip locked})
		UPDATE part_ready
		SET due = $3
		FROM found
		WHERE grp = g AND id = i
		RETURNING grp, id, due`
	const selectLate = `
		SELECT grp, due, message, repeats_until, expires
		FROM part_group
		WHERE due > 0 AND due <= $1
		ORDER BY due
		LIMIT $2 {skip locked}`
	return db.Transact(ctx, s.db, partsLabel, func(ctx context.Context, tx *db.Tx) ([]ReassembledMessage, error) {
		times := groupTimesOf(t)
		ready, err := db.List(ctx, tx, partsLabel, leaseReady, (*readyRow).fields, times.now, limit, times.leaseEnd)
		if err != nil {
			return nil, err
		}
		lateGroups, err := db.List(ctx, tx, partsLabel, selectLate, (*group).fields, times.now, limit-len(ready))
		if err != nil {
			return nil, err
		}
		groups := make(groupSet, len(ready))
		for _, r := range ready {
			groups[r.group] = &group{name: r.group}
		}
		if err := groups.loadParts(ctx, tx); err != nil {
			return nil, err
		}
		messages := make([]ReassembledMessage, len(ready))
		for i, r := range ready {
			if messages[i], err = groups[r.group].reassembled(r.id); err != nil {
				return nil, err
			}
		}
		incomplete, err := closeGroups(ctx, tx, lateGroups, times)
		return append(messages, incomplete...), err
	})
}

// closeGroups makes messages of the waiting parts of locked groups, or drops parts that repeat the
// last message.
func closeGroups(ctx context.Context, tx *db.Tx, heads []group, times groupTimes) (messages []ReassembledMessage, err error) {
	groups, err := loadGroups(ctx, tx, heads, times)
	if err != nil {
		return nil, err
	}
	for i := range heads {
		g := &heads[i]
		if len(g.waiting()) == 0 {
			g.due = 0
			continue
		}
		message, err := g.dropRepetition(times)
		if err == nil && message.Repeats == "" {
			message, err = g.reassembled(g.close(times, times.leaseEnd))
		}
		if err != nil {
			return nil, err
		}
		messages = append(messages, message)
	}
	return messages, groups.save(ctx, tx)
}

// End removes messages that have been routed. The parts of the last message of a group are stored
// until the message expires. The parts of other messages are deleted with the next change of the
// group.
func (s *Store) End(ctx context.Context, routed []ReassembledMessage) error {
	const deleteReady = "DELETE FROM part_ready WHERE (grp, id) IN (SELECT grp, id FROM batch)"
	return s.db.Run(ctx, partsLabel, deleteReady,
		db.BatchOf("grp, id", routed, func(g *ReassembledMessage) []any { return []any{g.Group, g.ID} }))
}

// Park stores a message without a relay under g.Event, so that adding the part of that event again
// returns the whole message.
func (s *Store) Park(ctx context.Context, g ReassembledMessage, retention time.Duration) error {
	const upsert = `
		INSERT INTO part_parked (grp, event, id, doc, expires)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (grp, event) DO UPDATE SET id = excluded.id, doc = excluded.doc, expires = excluded.expires`
	return s.db.Run(ctx, "parts of "+g.ID, upsert, append(parkedFields(&g), s.db.Now().Add(retention))...)
}

// Unpark removes a parked message.
func (s *Store) Unpark(ctx context.Context, g ReassembledMessage) error {
	return s.db.Run(ctx, "parts of "+g.ID, "DELETE FROM part_parked WHERE grp = $1 AND event = $2", g.Group, g.Event)
}

// MessageOf returns the id of the reassembled message that a part belongs to; "" while parts are
// missing or if the part is not stored any more.
func (s *Store) MessageOf(ctx context.Context, group, part string) (string, error) {
	const query = `
		SELECT part.message
		FROM part
		JOIN part_group ON part_group.grp = part.grp
		WHERE part.grp = $1 AND part.id = $2
		  AND part_group.expires > $3`
	return db.OrZero(db.Value[string](ctx, s.db, "part "+part, query, group, part, s.db.Now()))
}

// groupSet has groups by name.
type groupSet map[string]*group

func (s groupSet) batch() *db.Batch {
	return db.Column("grp", slices.Collect(maps.Keys(s)))
}

// The methods fields return pointers to the fields of a row.
func (g *group) fields() []any {
	return []any{&g.name, &g.due, &g.lastMessage, &g.repeatsUntil, &g.expires}
}

func (p *part) fields() []any {
	return []any{&p.group, &p.id, &p.number, &p.digest, &p.message, &p.doc}
}

func (r *readyRow) fields() []any { return []any{&r.group, &r.id, &r.due} }

// lockGroups adds missing groups, locks all groups in the order of their names, and loads them.
func lockGroups(ctx context.Context, tx *db.Tx, names []string, times groupTimes) (groupSet, error) {
	const insert = `
		INSERT INTO part_group (grp, due, message, repeats_until, expires)
		SELECT grp, 0, '', 0, $1
		FROM batch
		WHERE true
		ON CONFLICT (grp) DO NOTHING`
	const lock = `
		SELECT grp, due, message, repeats_until, expires
		FROM part_group
		WHERE grp IN (SELECT grp FROM batch)
		ORDER BY grp {for update}`
	rows := db.Column("grp", slices.Compact(slices.Sorted(slices.Values(names))))
	var heads []group
	for len(heads) < rows.Len() { // a sweep may delete a group before it is locked
		if err := tx.Run(ctx, partsLabel, insert, times.expires(), rows); err != nil {
			return nil, err
		}
		var err error
		if heads, err = db.List(ctx, tx, partsLabel, lock, (*group).fields, rows); err != nil {
			return nil, err
		}
	}
	return loadGroups(ctx, tx, heads, times)
}

func loadGroups(ctx context.Context, tx *db.Tx, heads []group, times groupTimes) (groupSet, error) {
	const selectReady = `
		SELECT grp, id, due
		FROM part_ready
		WHERE grp IN (SELECT grp FROM batch)`
	groups := make(groupSet, len(heads))
	for i := range heads {
		g := &heads[i]
		g.loadedRow, g.ready = g.groupRow, make(map[string]bool)
		groups[g.name] = g
	}
	if err := groups.loadParts(ctx, tx); err != nil {
		return nil, err
	}
	ready, err := db.List(ctx, tx, partsLabel, selectReady, (*readyRow).fields, groups.batch())
	for _, r := range ready {
		groups[r.group].ready[r.id] = true
	}
	for _, g := range groups {
		g.expire(times)
	}
	return groups, err
}

func (s groupSet) loadParts(ctx context.Context, tx *db.Tx) error {
	const query = `
		SELECT grp, id, number, digest, message, doc
		FROM part
		WHERE grp IN (SELECT grp FROM batch)`
	parts, err := db.List(ctx, tx, partsLabel, query, (*part).fields, s.batch())
	for i := range parts {
		p := &parts[i]
		s[p.group].parts = append(s[p.group].parts, p)
	}
	return err
}

// save saves the changes. It deletes forgotten parts first, because a part with the same id may
// have arrived since.
func (s groupSet) save(ctx context.Context, tx *db.Tx) error {
	const deleteParts = "DELETE FROM part WHERE (grp, id) IN (SELECT grp, id FROM batch)"
	const upsertParts = `
		INSERT INTO part (grp, id, number, digest, message, doc)
		SELECT grp, id, number, digest, message, doc
		FROM batch
		WHERE true
		ON CONFLICT (grp, id) DO UPDATE SET number = excluded.number, digest = excluded.digest,
		  message = excluded.message, doc = excluded.doc`
	const updateGroups = `
		UPDATE part_group
		SET due = batch.due, message = batch.message, repeats_until = batch.repeats_until, expires = batch.expires
		FROM batch
		WHERE part_group.grp = batch.grp`
	const upsertReady = `
		INSERT INTO part_ready (grp, id, due)
		SELECT grp, id, due
		FROM batch
		WHERE true
		ON CONFLICT (grp, id) DO UPDATE SET due = excluded.due`
	forgotten := db.NewBatch("grp, id")
	parts := db.NewBatch("grp, id, number, digest, message, doc")
	heads := db.NewBatch("grp, due, message, repeats_until, expires")
	ready := db.NewBatch("grp, id, due")
	for _, g := range s {
		for _, id := range g.forgotten {
			forgotten.Add(g.name, id)
		}
		for _, p := range g.parts {
			if p.changed {
				p.group = g.name
				parts.Add(p.fields()...)
			}
		}
		if g.groupRow != g.loadedRow {
			heads.Add(g.fields()...)
		}
		for _, r := range g.newReady {
			ready.Add(r.fields()...)
		}
	}
	return tx.RunAll(ctx, partsLabel,
		db.Do(deleteParts, forgotten), db.Do(upsertParts, parts), db.Do(updateGroups, heads), db.Do(upsertReady, ready))
}
