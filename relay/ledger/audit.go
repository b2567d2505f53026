package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/penstock/penstock/relay"
)

// audit computes the state of a ledger's tokens from its entries.
type audit struct {
	s *Service
	p Place
	r *Report

	next   int64 // the entry that is read next
	tokens map[string]*audited
}

// audited is the state of a token according to the entries.
type audited struct {
	generation Row // Sequence and Bytes alone; its bytes go once they were compared
	claims     int64
	seen       bool
}

// verifyTokens compares the stored tokens and records of a ledger with its entries. The log may grow meanwhile.
func (s *Service) verifyTokens(ctx context.Context, p Place, r *Report) error {
	a := &audit{s: s, p: p, r: r, tokens: make(map[string]*audited)}
	if err := a.read(ctx); err != nil {
		return err
	}
	for after := ""; ; {
		list, err := s.deps.Store.Tokens(ctx, p.Account, after, batch)
		if err != nil {
			return err
		}
		for _, t := range list {
			if t.Ledger != p.Ledger {
				continue
			}
			if err := a.token(ctx, t); err != nil {
				return err
			}
		}
		if len(list) < batch {
			break
		}
		after = list[len(list)-1].ID
	}
	return a.missing(ctx)
}

// read reads the entries that were added since.
func (a *audit) read(ctx context.Context) error {
	log, err := a.s.deps.Store.Log(ctx, a.p.Account, a.p.Ledger)
	if err != nil {
		return err
	}
	for a.next < log.Entries {
		to := min(a.next+batch, log.Entries)
		rows, err := a.s.deps.Store.Rows(ctx, a.p.Account, a.p.Ledger, a.next, to)
		if err != nil {
			return err
		}
		for _, row := range rows {
			a.row(row)
		}
		if int64(len(rows)) != to-a.next {
			a.r.fault(-1, fmt.Sprintf("entries from %d to %d are missing: there are %d", a.next, to-1, len(rows)))
		}
		a.next = to
	}
	return nil
}

// row checks an entry against its index fields and against the entries before it.
func (a *audit) row(row Row) {
	e, of, err := readEvent(row.Sequence, row.Bytes)
	if err != nil {
		a.r.fault(row.Sequence, "cannot be read: "+err.Error())
		return
	}
	want := Row{Sequence: row.Sequence, Token: of.Token, Job: of.Job, Bytes: row.Bytes}
	switch e.Type {
	case Generated:
		want.Job = ""
	case Annotated:
		metadata, err := canonical(of.Metadata)
		if err != nil {
			a.r.fault(row.Sequence, "cannot be read: "+err.Error())
			return
		}
		want.Metadata = string(metadata)
	}
	if row.Token != want.Token || row.Job != want.Job || row.Metadata != want.Metadata {
		a.r.fault(row.Sequence, "is kept as one of another token, job or metadata than it says")
	}
	t := a.tokens[of.Token]
	switch {
	case e.Type == Generated && t != nil:
		a.r.fault(row.Sequence, "generates a token that entry "+fmt.Sprint(t.generation.Sequence)+" has generated")
	case e.Type == Generated:
		a.tokens[of.Token] = &audited{generation: Row{Sequence: row.Sequence, Bytes: e.Data}}
	case t == nil:
		a.r.fault(row.Sequence, "is of a token that no entry before it generates")
	case e.Type == Claimed:
		if t.claims++; of.Claim != t.claims {
			a.r.fault(row.Sequence, fmt.Sprintf("is claim %d of its token, in the place of claim %d", of.Claim, t.claims))
		}
	}
}

// token compares a token.
func (a *audit) token(ctx context.Context, t TokenAt) error {
	about := "token " + t.ID + ": "
	if a.tokens[t.ID] == nil { // it may have been generated since
		if err := a.read(ctx); err != nil {
			return err
		}
	}
	of := a.tokens[t.ID]
	if of == nil {
		a.r.fault(-1, about+"no entry generates it")
		return nil
	}
	of.seen = true
	if names := differs(t.Token, of.generation.Bytes); names != "" {
		a.r.fault(-1, fmt.Sprintf("%sit was changed, entry %d says otherwise: %s", about, of.generation.Sequence, names))
	}
	of.generation.Bytes = nil
	if t.Home != a.p.Account {
		a.r.fault(-1, about+"its link leads to another account, or nowhere")
	}
	if t.Claimed == of.claims {
		return nil
	}
	return a.claims(ctx, t.Token, of, about)
}

// claims looks again at a token whose claims were counted at another time than its
// entries: before the entries were read it cannot have more than they, and
// afterwards not less.
func (a *audit) claims(ctx context.Context, before Token, of *audited, about string) error {
	if err := a.read(ctx); err != nil {
		return err
	}
	after, err := a.s.deps.Store.Token(ctx, a.p.Account, before.ID)
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return err
	}
	if before.Claimed > of.claims || after.Claimed < of.claims {
		a.r.fault(-1, fmt.Sprintf("%sit counts %d claims, the ledger has %d", about, after.Claimed, of.claims))
	}
	return nil
}

// missing names the tokens that were generated and are not there.
func (a *audit) missing(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(a.tokens)) {
		of := a.tokens[id]
		if of.seen {
			continue
		}
		t, err := a.s.deps.Store.Token(ctx, a.p.Account, id) // it may be younger than the list
		if err != nil && relay.KindOf(err) != relay.KindNotFound {
			return err
		}
		if err != nil || t.Ledger != a.p.Ledger {
			a.r.fault(-1, fmt.Sprintf("token %s: it is gone, entry %d generated it", id, of.generation.Sequence))
		}
	}
	return nil
}
