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

// lockGroups loads groups under their locks, in the order of their names; one
// that is not there is made.
func lockGroups(ctx context.Context, tx *db.Tx, names []string, c groupTimes) (groupSet, error) {
	b := db.Column("grp", slices.Compact(slices.Sorted(slices.Values(names))))
	var heads []group
	for len(heads) < b.Len() { // a sweep may delete one before it is locked
		if err := tx.Run(ctx, partsNoun, `
INSERT INTO part_group (grp, due, message, repeats_until, expires)
SELECT grp, 0, '', 0, $1 FROM batch WHERE true
ON CONFLICT (grp) DO NOTHING`, c.expires(), b); err != nil {
			return nil, err
		}
		var err error
		if heads, err = db.List(ctx, tx, partsNoun, `
SELECT grp, due, message, repeats_until, expires FROM part_group
WHERE grp IN (SELECT grp FROM batch) ORDER BY grp {for update}`, (*group).fields, b); err != nil {
			return nil, err
		}
	}
	return loadGroups(ctx, tx, heads, c)
}

// loadGroups loads the parts and messages of locked groups.
func loadGroups(ctx context.Context, tx *db.Tx, heads []group, c groupTimes) (groupSet, error) {
	groups := make(groupSet, len(heads))
	for i := range heads {
		g := &heads[i]
		g.loaded, g.ready = g.groupRow, make(map[string]bool)
		groups[g.name] = g
	}
	if err := groups.loadParts(ctx, tx); err != nil {
		return nil, err
	}
	ready, err := db.List(ctx, tx, partsNoun, `
SELECT grp, id, due FROM part_ready WHERE grp IN (SELECT grp FROM batch)`, (*readyRow).fields, groups.batch())
	for _, r := range ready {
		groups[r.group].ready[r.id] = true
	}
	for _, g := range groups {
		g.expire(c)
	}
	return groups, err
}

func (s groupSet) loadParts(ctx context.Context, tx *db.Tx) error {
	all, err := db.List(ctx, tx, partsNoun, `
SELECT grp, id, number, digest, message, doc FROM part WHERE grp IN (SELECT grp FROM batch)`, (*part).fields, s.batch())
	for i := range all {
		p := &all[i]
		s[p.group].parts = append(s[p.group].parts, p)
	}
	return err
}

// save writes what has changed. Parts are forgotten first: one of that id may
// have come anew.
func (s groupSet) save(ctx context.Context, tx *db.Tx) error {
	forgotten := db.NewBatch("grp, id")
	parts := db.NewBatch("grp, id, number, digest, message, doc")
	rows := db.NewBatch("grp, due, message, repeats_until, expires")
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
			rows.Add(g.fields()...)
		}
		for _, r := range g.made {
			ready.Add(r.fields()...)
		}
	}
	return tx.RunAll(ctx, partsNoun,
		db.Do("DELETE FROM part WHERE (grp, id) IN (SELECT grp, id FROM batch)", forgotten),
		db.Do(db.UpsertAll("part", "grp, id", "number, digest, message, doc"), parts),
		db.Do(`
UPDATE part_group SET due = batch.due, message = batch.message, repeats_until = batch.repeats_until, expires = batch.expires
FROM batch WHERE part_group.grp = batch.grp`, rows),
		db.Do(db.UpsertAll("part_ready", "grp, id", "due"), ready))
}

// The columns of the rows of groups, of parts and of messages that are ready.
func (g *group) fields() []any {
	return []any{&g.name, &g.due, &g.last, &g.repeatsUntil, &g.expires}
}

func (p *part) fields() []any {
	return []any{&p.group, &p.id, &p.number, &p.digest, &p.message, &p.doc}
}

func (r *readyRow) fields() []any { return []any{&r.group, &r.id, &r.due} }
