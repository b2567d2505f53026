package inbound

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// RelayServiceDeps are the dependencies of RelayService. Store and Accounts are required.
type RelayServiceDeps struct {
	Store    *Store
	Accounts *account.Store
	// CheckURL returns an error if the gateway may not call a URL; nil allows all.
	CheckURL func(string) error
	// HasSIM reports whether an account has a SIM; nil means that no account has one.
	HasSIM func(ctx context.Context, acct relay.AccountID, iccid string) (bool, error)
	Now    func() time.Time // nil means time.Now
}

// RelayService lets accounts list and change their relays (specification 1, endpoints 8 to 15),
// create and delete relays, and read their inboxes.
type RelayService struct{ RelayServiceDeps }

// NewRelayService returns a RelayService.
func NewRelayService(d RelayServiceDeps) (*RelayService, error) {
	if d.Store == nil || d.Accounts == nil {
		return nil, errors.New("inbound: relays: a dependency is missing")
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return &RelayService{d}, nil
}

// List returns an account's relays of a kind whose number or prefix matches a pattern, sorted by
// number. In the pattern, * matches any digits, including none. An empty pattern matches all
// relays.
func (s *RelayService) List(ctx context.Context, acct relay.AccountID, k Kind, pattern string) ([]Relay, error) {
	relays, err := s.Store.List(ctx, acct, k)
	if err != nil {
		return nil, fmt.Errorf("inbound: list: %w", err)
	}
	return slices.DeleteFunc(relays, func(r Relay) bool { return pattern != "" && !matchesPattern(pattern, r.Number) }), nil
}

// Get returns a relay. It returns relay.KindNotFound if the account has none with the kind and id.
func (s *RelayService) Get(ctx context.Context, acct relay.AccountID, k Kind, id string) (Relay, error) {
	return s.Store.Get(ctx, acct, k, id)
}

// Change is an account's update of a relay.
type Change struct {
	Action Action
	// Filter replaces the condition on messages: "" removes it, nil keeps it.
	Filter *string
}

// Change sets a relay's action, which applies from the next message on. It drops the parameters of
// an action that has none.
//
// Change returns relay.KindNotFound as Get does, relay.KindForbidden for an action that requires
// a permission which the account does not have, and relay.KindInvalid with the field action,
// parameters or filter.
func (s *RelayService) Change(ctx context.Context, acct relay.AccountID, k Kind, id string, c Change) (Relay, error) {
	a := c.Action
	if _, err := s.Store.Get(ctx, acct, k, id); err != nil {
		return Relay{}, err
	}
	if err := s.checkPermission(ctx, acct, k, a.Name); err != nil {
		return Relay{}, err
	}
	if err := a.Validate(k, s.CheckURL); err != nil {
		return Relay{}, err
	}
	if c.Filter != nil {
		if err := validateFilter(*c.Filter); err != nil {
			return Relay{}, err
		}
	}
	if info, _ := actionOf(k, a.Name); info.ParameterKind == noParameters {
		a.Parameters = nil
	}
	return s.Store.Change(ctx, acct, k, id, func(r *Relay) error {
		r.Action, r.UpdatedAt = a, s.Now().UTC()
		r.ChangedAt = r.UpdatedAt
		if err := r.checkSIM(); err != nil {
			return err
		}
		if c.Filter != nil {
			r.Filter = *c.Filter
		}
		return nil
	})
}

// Create saves a new relay under a new id and returns it. It returns relay.KindForbidden as
// Change does, and relay.KindInvalid with the field prefix or number (also if it overlaps with
// another relay, see Store.Create), action, parameters, filter or iccid (also if the account
// does not have the SIM).
func (s *RelayService) Create(ctx context.Context, r Relay) (Relay, error) {
	r.UpdatedAt = s.Now().UTC()
	r.ID, r.ChangedAt = relay.NewID(r.UpdatedAt), r.UpdatedAt
	if err := s.checkPermission(ctx, r.Account, r.Kind, r.Action.Name); err != nil {
		return Relay{}, err
	}
	if err := r.Validate(s.CheckURL); err != nil {
		return Relay{}, err
	}
	if info, _ := actionOf(r.Kind, r.Action.Name); info.ParameterKind == noParameters {
		r.Action.Parameters = nil
	}
	if r.ICCID != "" {
		hasSIM := false
		if s.HasSIM != nil {
			var err error
			if hasSIM, err = s.HasSIM(ctx, r.Account, r.ICCID); err != nil {
				return Relay{}, err
			}
		}
		if !hasSIM {
			return Relay{}, relay.Invalid("iccid", "The account has no SIM "+r.ICCID+".")
		}
	}
	err := s.Store.Create(ctx, r)
	if relay.KindOf(err) == relay.KindConflict {
		field := NumberField(r.Kind)
		err = relay.Invalid(field, "The "+field+" "+r.Number+" belongs to another relay.")
	}
	return r, err
}

// Delete deletes a relay; messages that arrive for its number go to the next relay that
// matches. It returns relay.KindNotFound as Get does.
func (s *RelayService) Delete(ctx context.Context, acct relay.AccountID, k Kind, id string) error {
	return s.Store.Delete(ctx, acct, k, id)
}

func (s *RelayService) checkPermission(ctx context.Context, acct relay.AccountID, k Kind, action string) error {
	if !NeedsPermission(k, action) {
		return nil
	}
	holder, err := s.Accounts.Account(ctx, acct)
	if err != nil {
		return fmt.Errorf("inbound: permissions: %w", err)
	}
	if !holder.HasPermission(action) {
		return relay.Errorf(relay.KindForbidden, "account %s has no permission for %s", acct, action)
	}
	return nil
}

// matchesPattern reports whether a number matches a pattern of digits and asterisks.
func matchesPattern(pattern, number string) bool {
	ok, err := path.Match(pattern, number)
	return ok && err == nil && strings.Trim(pattern, "0123456789*") == ""
}

// Ref identifies a relay among those of all accounts.
type Ref struct {
	Account relay.AccountID
	Kind    Kind
	ID      string
}

// scanPage is the number of relays that Find reads at a time.
const scanPage = 500

// Find returns at most limit relays of an account, 0 for all accounts, for which selects returns
// true. They are sorted by account, kind and id, and begin after cursor.
func (s *RelayService) Find(ctx context.Context, acct relay.AccountID, cursor Ref, limit int, selects func(Relay) bool) (found []Relay, err error) {
	for {
		page, err := s.Store.Scan(ctx, acct, cursor, scanPage)
		if err != nil {
			return nil, fmt.Errorf("inbound: find: %w", err)
		}
		for _, r := range page {
			if selects(r) {
				found = append(found, r)
			}
			if len(found) == limit {
				return found, nil
			}
		}
		if len(page) < scanPage {
			return found, nil
		}
		cursor = page[len(page)-1].Ref()
	}
}

// Ref returns the Ref of the relay.
func (r Relay) Ref() Ref { return Ref{r.Account, r.Kind, r.ID} }

// acknowledgedRetention is the time for which acknowledged ids are stored, so that processing
// a journal record again does not restore its message. It exceeds the default retention of the
// journal.
const acknowledgedRetention = 8 * 24 * time.Hour

// ReadInbox returns a page of the messages in a virtual number's inbox, oldest first, and their
// total. It returns relay.KindNotFound if the account does not have the relay. Messages stay in
// the inbox until they are acknowledged, even if the action changes.
func (s *RelayService) ReadInbox(ctx context.Context, acct relay.AccountID, id string, offset, limit int) ([]InboxMessage, int, error) {
	if _, err := s.Store.Get(ctx, acct, VirtualNumber, id); err != nil {
		return nil, 0, err
	}
	return s.Store.Read(ctx, acct, id, offset, limit)
}

// Acknowledge removes a message from a virtual number's inbox. It returns relay.KindNotFound if
// the relay or the message does not exist.
func (s *RelayService) Acknowledge(ctx context.Context, acct relay.AccountID, id, message string) error {
	if _, err := s.Store.Get(ctx, acct, VirtualNumber, id); err != nil {
		return err
	}
	return s.Store.Acknowledge(ctx, acct, id, message, acknowledgedRetention)
}
