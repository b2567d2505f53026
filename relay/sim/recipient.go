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
	return s.change(ctx, acct, iccid, func(sim *SIM) (err error) {
		sim.Recipients, err = joined(sim.Recipients, r)
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
	found := false
	_, err = s.SIMs.Change(ctx, acct, parsed, func(sim *SIM) (err error) {
		sim.Recipients, err = without(sim.Recipients, id, &found)
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
	return s.changePool(ctx, acct, pool, func(pool *Pool) (err error) {
		pool.Recipients, err = joined(pool.Recipients, r)
		return err
	})
}

// RemovePoolRecipient removes a recipient of a pool.
func (s *Service) RemovePoolRecipient(ctx context.Context, acct relay.AccountID, pool, id string) error {
	found := false
	_, err := s.changePool(ctx, acct, pool, func(pool *Pool) (err error) {
		pool.Recipients, err = without(pool.Recipients, id, &found)
		return err
	})
	return err
}

// maxRecipientNumber is the largest number of digits of a recipient's phone number.
const maxRecipientNumber = 20

// check normalises a recipient and adds its problems, under a prefix.
func (r *Recipient) check(p relay.Problems, path string, numbered bool) {
	r.Email, r.Number = strings.TrimSpace(r.Email), strings.TrimSpace(r.Number)
	switch {
	case r.Email == "":
		p.AddNamed(path+"email", "The %s field is required.")
	case !IsEmail(r.Email) || relay.CheckAddress(r.Email) != nil:
		p.AddNamed(path+"email", "The %s must be a valid email address.")
	}
	switch {
	case r.Number == "" && numbered:
		p.AddNamed(path+"number", "The %s field is required.")
	case r.Number != "" && (!relay.Digits(r.Number) || len(r.Number) > maxRecipientNumber):
		p.AddNamed(path+"number", "The %s must be at most 20 digits.")
	}
}

// sameEmail compares addresses as mail systems do.
func (r Recipient) sameEmail(o Recipient) bool { return strings.EqualFold(r.Email, o.Email) }

// joined adds a recipient whose e-mail address is new. A recipient with the same id was added
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

// without removes a recipient and sets *ok. If *ok is set and the recipient is missing, an
// earlier attempt removed the recipient and its response was lost.
func without(list []Recipient, id string, ok *bool) ([]Recipient, error) {
	offset := slices.IndexFunc(list, func(r Recipient) bool { return r.ID == id })
	switch {
	case offset < 0 && *ok:
		return list, nil
	case offset < 0:
		return nil, NoRecipient()
	}
	*ok = true
	return slices.Delete(slices.Clone(list), offset, offset+1), nil
}
