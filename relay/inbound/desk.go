package inbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// Records keeps relays for their account holders.
type Records interface {
	// Get loads a relay; relay.KindNotFound if the account has none of that kind
	// and id.
	Get(ctx context.Context, acct account.ID, k Kind, id string) (Relay, error)
	// List returns an account's relays of a kind by number or prefix.
	List(ctx context.Context, acct account.ID, k Kind) ([]Relay, error)
	// Change saves what change makes of a relay, and calls it again when
	// somebody else was faster. An error of its own is returned as it is.
	Change(ctx context.Context, acct account.ID, k Kind, id string, change func(*Relay) error) (Relay, error)
}

// Accounts knows what an account may do.
type Accounts interface {
	Account(ctx context.Context, id account.ID) (account.Account, error)
}

// DeskDeps is what Desk works with; Records, Accounts and Inbox are required.
type DeskDeps struct {
	Records  Records
	Accounts Accounts
	Inbox    Inbox
	// CheckURL says whether the gateway may call a URL; nil allows all.
	CheckURL func(string) error
	Now      func() time.Time // nil means time.Now
}

// Desk is where account holders look after their relays (specification 1,
// endpoints 8 to 15).
type Desk struct{ DeskDeps }

// NewDesk makes a Desk.
func NewDesk(d DeskDeps) (*Desk, error) {
	if d.Records == nil || d.Accounts == nil || d.Inbox == nil {
		return nil, errors.New("inbound: desk: a dependency is missing")
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return &Desk{d}, nil
}

// List returns an account's relays of a kind whose number or prefix fits a
// pattern, by number. In the pattern * stands for any digits, also none; an
// empty pattern fits all.
func (d *Desk) List(ctx context.Context, acct account.ID, k Kind, pattern string) ([]Relay, error) {
	all, err := d.Records.List(ctx, acct, k)
	if err != nil {
		return nil, fmt.Errorf("inbound: list: %w", err)
	}
	return slices.DeleteFunc(all, func(r Relay) bool { return pattern != "" && !fits(pattern, r.Number) }), nil
}

// Get returns a relay; relay.KindNotFound if the account has none of that kind
// and id.
func (d *Desk) Get(ctx context.Context, acct account.ID, k Kind, id string) (Relay, error) {
	return d.Records.Get(ctx, acct, k, id)
}

// Change is what an account holder makes of a relay.
type Change struct {
	Action Action
	// Filter replaces the condition on messages, "" removes it; nil leaves it.
	Filter *string
}

// Change gives a relay another action, which the next message takes. An action
// without parameters forgets those given.
//
// It returns relay.KindNotFound as Get does, relay.KindForbidden for an action
// that the account has no permission for, and relay.KindInvalid with the field
// action, parameters or filter.
func (d *Desk) Change(ctx context.Context, acct account.ID, k Kind, id string, c Change) (Relay, error) {
	a := c.Action
	if _, err := d.Records.Get(ctx, acct, k, id); err != nil {
		return Relay{}, err
	}
	if err := d.permitted(ctx, acct, k, a.Name); err != nil {
		return Relay{}, err
	}
	if err := a.Validate(k, d.CheckURL); err != nil {
		return Relay{}, err
	}
	if c.Filter != nil {
		if err := validateFilter(*c.Filter); err != nil {
			return Relay{}, err
		}
	}
	if info, _ := actionOf(k, a.Name); info.takes == nothing {
		a.Parameters = nil
	}
	return d.Records.Change(ctx, acct, k, id, func(r *Relay) error {
		r.Action, r.UpdatedAt = a, d.Now().UTC()
		if err := r.servesSIM(); err != nil {
			return err
		}
		if c.Filter != nil {
			r.Filter = *c.Filter
		}
		return nil
	})
}

func (d *Desk) permitted(ctx context.Context, acct account.ID, k Kind, action string) error {
	if !NeedsPermission(k, action) {
		return nil
	}
	who, err := d.Accounts.Account(ctx, acct)
	if err != nil {
		return fmt.Errorf("inbound: permissions: %w", err)
	}
	if !who.May(action) {
		return relay.Errorf(relay.KindForbidden, "account %s has no permission for %s", acct, action)
	}
	return nil
}

// fits reports whether a pattern with asterisks is a number.
func fits(pattern, number string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return pattern == number
	}
	rest, ok := strings.CutPrefix(number, first)
	if !ok {
		return false
	}
	for _, middle := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, middle)
		if at < 0 {
			return false
		}
		rest = rest[at+len(middle):]
	}
	return strings.HasSuffix(rest, last)
}
