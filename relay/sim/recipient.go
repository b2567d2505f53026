package sim

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
)

// AddRecipient adds a recipient of notifications about a SIM. It refuses a second recipient with
// the same e-mail address.
func (s *Service) AddRecipient(ctx context.Context, acct relay.AccountID, iccid string, r Recipient) (SIM, error) {
	p := relay.Problems{}
	r.check(p, "", false)
	if err := p.Err(); err != nil {
		return SIM{}, err
	}
	r.ID = iccid + "-" + s.newID() // RemoveRecipient finds the SIM by the prefix
	return s.change(ctx, acct, iccid, func(sim *SIM) (err error) {
		sim.Recipients, err = addRecipient(sim.Recipients, r)
		return err
	})
}

// RemoveRecipient removes a recipient of a SIM.
func (s *Service) RemoveRecipient(ctx context.Context, acct relay.AccountID, id string) error {
	iccid, _, _ := strings.Cut(id, "-")
	parsedICCID, err := ParseICCID(iccid)
	if err != nil {
		return RecipientNotFound()
	}
	removed := false
	_, err = s.SIMs.Change(ctx, acct, parsedICCID, func(sim *SIM) (err error) {
		sim.Recipients, err = removeRecipient(sim.Recipients, id, &removed)
		return err
	})
	return ReplaceNotFound(err, RecipientNotFound())
}

// AddPoolRecipient adds a recipient of notifications about a pool. The recipient must have a phone
// number.
func (s *Service) AddPoolRecipient(ctx context.Context, acct relay.AccountID, pool string, r Recipient) (Pool, error) {
	p := relay.Problems{}
	r.check(p, "", true)
	if err := p.Err(); err != nil {
		return Pool{}, err
	}
	r.ID = s.newID()
	return s.changePool(ctx, acct, pool, func(pool *Pool) (err error) {
		pool.Recipients, err = addRecipient(pool.Recipients, r)
		return err
	})
}

// RemovePoolRecipient removes a recipient of a pool.
func (s *Service) RemovePoolRecipient(ctx context.Context, acct relay.AccountID, pool, id string) error {
	removed := false
	_, err := s.changePool(ctx, acct, pool, func(pool *Pool) (err error) {
		pool.Recipients, err = removeRecipient(pool.Recipients, id, &removed)
		return err
	})
	return err
}

// maxRecipientNumber is the largest number of digits of a recipient's phone number.
const maxRecipientNumber = 20

// check trims the fields of a recipient and adds their problems under a path.
func (r *Recipient) check(p relay.Problems, path string, needsNumber bool) {
	r.Email, r.Number = strings.TrimSpace(r.Email), strings.TrimSpace(r.Number)
	switch {
	case r.Email == "":
		p.AddNamed(path+"email", "The %s field is required.")
	case !IsEmail(r.Email) || relay.CheckAddress(r.Email) != nil:
		p.AddNamed(path+"email", "The %s must be a valid email address.")
	}
	switch {
	case r.Number == "" && needsNumber:
		p.AddNamed(path+"number", "The %s field is required.")
	case r.Number != "" && (!relay.Digits(r.Number) || len(r.Number) > maxRecipientNumber):
		p.AddNamed(path+"number", "The %s must be at most 20 digits.")
	}
}

// sameEmail compares e-mail addresses without regard to case, as mail systems do.
func (r Recipient) sameEmail(other Recipient) bool { return strings.EqualFold(r.Email, other.Email) }

// addRecipient adds a recipient, and refuses one with an e-mail address of the list. If the id exists,
// an earlier attempt of the transaction has added the recipient, and the list stays unchanged.
func addRecipient(list []Recipient, r Recipient) ([]Recipient, error) {
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

// removeRecipient removes a recipient and sets *removed. If *removed is set and the recipient is
// missing, an earlier attempt of the transaction has removed the recipient.
func removeRecipient(list []Recipient, id string, removed *bool) ([]Recipient, error) {
	i := slices.IndexFunc(list, func(r Recipient) bool { return r.ID == id })
	switch {
	case i < 0 && *removed:
		return list, nil
	case i < 0:
		return nil, RecipientNotFound()
	}
	*removed = true
	return slices.Delete(slices.Clone(list), i, i+1), nil
}
