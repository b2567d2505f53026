package inbound

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay/db"
)

const partsNoun = "parts"

// Add adds parts in order, in one transaction.
func (s *Store) Add(ctx context.Context, arrivals []Arrival, t Times) ([]Added, error) {
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
	return db.Transact(ctx, s.db, partsNoun, func(ctx context.Context, tx *db.Tx) ([]Added, error) {
		parked, err := parkedAt(ctx, tx, arrivals)
		if err != nil {
			return nil, err
		}
		groups, err := lockGroups(ctx, tx, names, groupTimesOf(t))
		if err != nil {
			return nil, err
		}
		added := make([]Added, len(arrivals))
		for i := range arrivals {
			a := &arrivals[i]
			if p, ok := parked[eventKey{a.Group, a.Message.ID}]; ok {
				p.Event = ""
				added[i] = Added{State: Again, Holder: p.ID, Group: p}
			} else if added[i], err = groups[a.Group].arrive(a, docs[i], groupTimesOf(t)); err != nil {
				return nil, err
			}
		}
		return added, groups.save(ctx, tx)
	})
}

// arrive adds an arrival and returns what became of it, with the message that it
// completes or has completed.
func (g *group) arrive(a *Arrival, doc string, c groupTimes) (out Added, err error) {
	p := &part{id: a.Message.ID, number: a.Number, digest: a.Digest, doc: doc}
	if out, err = g.add(p, a.Total, c); err != nil {
		return out, err
	}
	if out.State == Completed || out.State == Again {
		out.Group, err = g.reassembled(out.Holder)
	}
	return out, err
}

// eventKey names the event of a message that no relay takes.
type eventKey struct{ group, event string }

// parkedAt is the messages that are parked for the events of arrivals.
func parkedAt(ctx context.Context, tx *db.Tx, arrivals []Arrival) (map[eventKey]ReassembledMessage, error) {
	b := db.BatchOf("grp, event", arrivals, func(a *Arrival) []any { return []any{a.Group, a.Message.ID} })
	found, err := db.List(ctx, tx, partsNoun, `
SELECT grp, event, id, doc FROM part_parked
WHERE (grp, event) IN (SELECT grp, event FROM batch) AND expires > $1`, parked, tx.Now(), b)
	return db.By(found, func(g ReassembledMessage) eventKey { return eventKey{g.Group, g.Event} }), err
}

// parked is the columns of a message that is parked.
func parked(g *ReassembledMessage) []any {
	return []any{&g.Group, &g.Event, &g.ID, db.JSON(&g.Parts)}
}

// Due hands out messages that must go on now: those whose lease has run out, then
// those that have waited long enough for the rest of their parts.
func (s *Store) Due(ctx context.Context, t Times, limit int) ([]ReassembledMessage, error) {
	return db.Transact(ctx, s.db, partsNoun, func(ctx context.Context, tx *db.Tx) ([]ReassembledMessage, error) {
		c := groupTimesOf(t)
		ready, err := db.List(ctx, tx, partsNoun, `
WITH found AS (SELECT grp AS g, id AS i FROM part_ready WHERE due <= $1 ORDER BY due LIMIT $2 {skip locked})
UPDATE part_ready SET due = $3 FROM found WHERE grp = g AND id = i RETURNING grp, id, due`, (*readyRow).fields, c.now, limit, c.leased)
		if err != nil {
			return nil, err
		}
		heads, err := db.List(ctx, tx, partsNoun, `
SELECT grp, due, message, repeats_until, expires FROM part_group
WHERE due > 0 AND due <= $1 ORDER BY due LIMIT $2 {skip locked}`, (*group).fields, c.now, limit-len(ready))
		if err != nil {
			return nil, err
		}
		out, err := readyMessages(ctx, tx, ready)
		if err != nil {
			return nil, err
		}
		late, err := closeGroups(ctx, tx, heads, c)
		return append(out, late...), err
	})
}

// readyMessages loads messages with their parts.
func readyMessages(ctx context.Context, tx *db.Tx, ready []readyRow) ([]ReassembledMessage, error) {
	groups := make(groupSet, len(ready))
	for _, r := range ready {
		groups[r.group] = &group{name: r.group}
	}
	if err := groups.loadParts(ctx, tx); err != nil {
		return nil, err
	}
	out := make([]ReassembledMessage, len(ready))
	for i, r := range ready {
		var err error
		if out[i], err = groups[r.group].reassembled(r.id); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// closeGroups makes messages of the parts that wait in locked groups, or drops those that
// repeat the message before.
func closeGroups(ctx context.Context, tx *db.Tx, heads []group, c groupTimes) (out []ReassembledMessage, err error) {
	groups, err := loadGroups(ctx, tx, heads, c)
	if err != nil {
		return nil, err
	}
	for i := range heads {
		g := &heads[i]
		if len(g.waiting()) == 0 {
			g.due = 0
			continue
		}
		message, err := g.dropRepetition(c)
		if err == nil && message.Repeats == "" {
			message, err = g.reassembled(g.close(c, c.leased))
		}
		if err != nil {
			return nil, err
		}
		out = append(out, message)
	}
	return out, groups.save(ctx, tx)
}

// End forgets groups that have gone on. The parts of the last message of a group
// stay known until it expires; those of others go with the next change.
func (s *Store) End(ctx context.Context, all []ReassembledMessage) error {
	b := db.BatchOf("grp, id", all, func(g *ReassembledMessage) []any { return []any{g.Group, g.ID} })
	return s.db.Run(ctx, partsNoun, `
DELETE FROM part_ready WHERE (grp, id) IN (SELECT grp, id FROM batch)`, b)
}

// Park keeps a group for the event that it is noted at.
func (s *Store) Park(ctx context.Context, g ReassembledMessage, keep time.Duration) error {
	return s.db.Run(ctx, "parts of "+g.ID, db.Upsert("part_parked", "grp, event", "id, doc, expires"), append(parked(&g), s.db.Now().Add(keep))...)
}

// Unpark forgets it.
func (s *Store) Unpark(ctx context.Context, g ReassembledMessage) error {
	return s.db.Run(ctx, "parts of "+g.ID, `
DELETE FROM part_parked WHERE grp = $1 AND event = $2`, g.Group, g.Event)
}

// MessageOf returns the id of the reassembled message that a part belongs to, ""
// while parts are missing or if the part is not stored any more.
func (s *Store) MessageOf(ctx context.Context, group, part string) (string, error) {
	return db.OrZero(db.Value[string](ctx, s.db, "part "+part, `
SELECT part.message FROM part JOIN part_group ON part_group.grp = part.grp
WHERE part.grp = $1 AND part.id = $2 AND part_group.expires > $3`, group, part, s.db.Now()))
}
