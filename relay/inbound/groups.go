package inbound

import (
	"context"
	"maps"
	"slices"

	"github.com/penstock/penstock/relay/db"
)

// groupSet is groups by name.
type groupSet map[string]*group

func (s groupSet) batch() *db.Batch {
	return db.Column("grp", slices.Collect(maps.Keys(s)))
}

// The functions fields return pointers to the columns of a group, a part and a message that
// is ready.
func (g *group) fields() []any {
	return []any{&g.name, &g.due, &g.tail, &g.repeatsUntil, &g.expires}
}

func (p *part) fields() []any {
	return []any{&p.group, &p.id, &p.number, &p.digest, &p.message, &p.doc}
}

func (r *readyRow) fields() []any { return []any{&r.group, &r.id, &r.due} }

// lockGroups loads groups under their locks, in the order of their names, and adds missing
// ones.
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
	for len(heads) < rows.Len() { // a sweep may delete one before it is locked
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

// loadGroups loads the parts and messages of locked groups.
func loadGroups(ctx context.Context, tx *db.Tx, heads []group, times groupTimes) (groupSet, error) {
	const selectReady = `
		SELECT grp, id, due
		FROM part_ready
		WHERE grp IN (SELECT grp FROM batch)`
	groups := make(groupSet, len(heads))
	for i := range heads {
		g := &heads[i]
		g.loaded, g.ready = g.groupRow, make(map[string]bool)
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

// save writes the changes. It deletes forgotten parts first, because a part of the same id
// may have come since.
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
		if g.groupRow != g.loaded {
			heads.Add(g.fields()...)
		}
		for _, r := range g.made {
			ready.Add(r.fields()...)
		}
	}
	return tx.RunAll(ctx, partsLabel,
		db.Do(deleteParts, forgotten), db.Do(upsertParts, parts), db.Do(updateGroups, heads), db.Do(upsertReady, ready))
}
