package sim

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
)

// AddRecipient adds a recipient of notifications about a SIM. A second one with the
// same e-mail address is refused.
func (s *Service) AddRecipient(ctx context.Context, acct relay.AccountID, iccid string, r Recipient) (SIM, error) {
	p := relay.Problems{}
	r.check(p, "", false)
	if err := p.Err(); err != nil {
		return SIM{}, err
	}
	r.ID = iccid + "-" + s.newID() // leads back to the SIM
	return s.change(ctx, acct, iccid, func(one *SIM) (err error) {
		one.Recipients, err = joined(one.Recipients, r)
		return err
	})
}

// RemoveRecipient removes a recipient of a SIM.
func (s *Service) RemoveRecipient(ctx context.Context, acct relay.AccountID, id string) error {
	iccid, _, _ := strings.Cut(id, "-")
	parsed, err := ParseICCID(iccid)
	if err != nil {
		return NoRecipient()
	}
	there := false
	_, err = s.SIMs.Change(ctx, acct, parsed, func(one *SIM) (err error) {
		one.Recipients, err = without(one.Recipients, id, &there)
		return err
	})
	return Missing(err, NoRecipient())
}

// AddPoolRecipient adds a recipient of notifications about a pool, with a number.
func (s *Service) AddPoolRecipient(ctx context.Context, acct relay.AccountID, pool string, r Recipient) (Pool, error) {
	p := relay.Problems{}
	r.check(p, "", true)
	if err := p.Err(); err != nil {
		return Pool{}, err
	}
	r.ID = s.newID()
	return s.changePool(ctx, acct, pool, func(one *Pool) (err error) {
		one.Recipients, err = joined(one.Recipients, r)
		return err
	})
}

// RemovePoolRecipient removes a recipient of a pool.
func (s *Service) RemovePoolRecipient(ctx context.Context, acct relay.AccountID, pool, id string) error {
	there := false
	_, err := s.changePool(ctx, acct, pool, func(one *Pool) (err error) {
		one.Recipients, err = without(one.Recipients, id, &there)
		return err
	})
	return err
}

// check normalises a recipient and adds its problems, under a prefix.
func (r *Recipient) check(p relay.Problems, at string, numbered bool) {
	r.Email, r.Number = strings.TrimSpace(r.Email), strings.TrimSpace(r.Number)
	switch {
	case r.Email == "":
		p.AddNamed(at+"email", "The %s field is required.")
	case !IsEmail(r.Email) || relay.CheckAddress(r.Email) != nil:
		p.AddNamed(at+"email", "The %s must be a valid email address.")
	}
	const most = 20
	switch {
	case r.Number == "" && numbered:
		p.AddNamed(at+"number", "The %s field is required.")
	case r.Number != "" && (!relay.Digits(r.Number) || len(r.Number) > most):
		p.AddNamed(at+"number", "The %s must be at most 20 digits.")
	}
}

// sameEmail compares addresses as mail systems do.
func (r Recipient) sameEmail(o Recipient) bool { return strings.EqualFold(r.Email, o.Email) }

// joined adds a recipient whose e-mail address is new. One with the same id was added
// by an earlier attempt whose response was lost.
func joined(list []Recipient, r Recipient) ([]Recipient, error) {
	if slices.ContainsFunc(list, func(o Recipient) bool { return o.ID == r.ID }) {
		return list, nil
	}
	if slices.ContainsFunc(list, r.sameEmail) {
		return nil, Refuse(relay.KindInvalid, "Recipient already exists.")
	}
	if len(list) >= MaxRecipients {
		return nil, Refuse(relay.KindInvalid, "There are 100 recipients already.")
	}
	return append(slices.Clone(list), r), nil
}

// without removes a recipient. there is set once the recipient was found: if it is
// missing at the next attempt, it was removed and the store's response was lost.
func without(list []Recipient, id string, there *bool) ([]Recipient, error) {
	at := slices.IndexFunc(list, func(r Recipient) bool { return r.ID == id })
	switch {
	case at < 0 && *there:
		return list, nil
	case at < 0:
		return nil, NoRecipient()
	}
	*there = true
	return slices.Delete(slices.Clone(list), at, at+1), nil
}
