package admin

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/outbox"
)

// relayJSON is a relay of a list.
type relayJSON struct {
	Account     relay.AccountID `json:"account"`
	AccountName string          `json:"account_name"`
	Kind        inbound.Kind    `json:"kind"`
	ID          string          `json:"id"`
	Number      string          `json:"number"` // the prefix of a geographic relay
	Action      string          `json:"action"`
	Parameters  []string        `json:"parameters"`
	Filter      string          `json:"filter"`
	ICCID       string          `json:"iccid"`
	Pace        outbox.Pace     `json:"pace"`
	UpdatedAt   *string         `json:"updated_at"`
	// Hidden reports that the paths of URLs are left out: the caller may not read them.
	Hidden bool `json:"hidden,omitempty"`
	// Unopened reports that the record does not open, see relay.ErrUnopened: what is sealed
	// of it is left out.
	Unopened bool `json:"unopened,omitempty"`
}

// relayView is a relay by itself.
type relayView struct {
	relayJSON
	// Document is the inventory document that declared it, empty if none has.
	Document string `json:"document"`
	// Actions are the actions that the account may set.
	Actions []actionJSON `json:"actions"`
}

type actionJSON struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Takes       string `json:"takes"` // urls, addresses or labels; empty: no parameters
}

// relayOf is a relay as the caller may see it.
func relayOf(c *fiber.Ctx, r inbound.Relay, accountName string) relayJSON {
	view := relayJSON{
		Account: r.Account, AccountName: accountName, Kind: r.Kind, ID: r.ID, Number: r.Number, Action: r.Action.Name,
		Parameters: append([]string{}, r.Action.Parameters...), Filter: r.Filter, ICCID: r.ICCID, Pace: r.Pace, Unopened: r.Unopened, UpdatedAt: formatTimeOrNil(r.UpdatedAt),
	}
	if hidesTexts(c) {
		view.Hidden = true
		for i, p := range view.Parameters {
			view.Parameters[i] = outbox.MaskPath(p)
		}
	}
	return view
}

// holds reports whether the relay, in its form for the caller, has a text, in any case.
func (r *relayJSON) holds(text string) bool {
	seen := append([]string{r.AccountName, r.ID, r.Number, r.Action, r.Filter, r.ICCID}, r.Parameters...)
	return slices.ContainsFunc(seen, func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(text)) })
}

// listRelays lists the relays of one or all accounts, by account, kind and id.
func (s *Surface) listRelays(c *fiber.Ctx, sel *selection) error {
	acct, kind, text, limit := sel.account(), oneOf(sel, "kind", inbound.Geographic, inbound.VirtualNumber), sel.text("q"), sel.limit()
	var after inbound.Ref
	place(sel, &after.ID, &after.Account, &after.Kind)
	if err := sel.Err(); err != nil {
		return err
	}
	names, err := s.accountNames(c.UserContext())
	if err != nil {
		return err
	}
	views := []relayJSON{}
	_, err = s.Relays.Find(c.UserContext(), acct, after, limit+1, func(r inbound.Relay) bool {
		view := relayOf(c, r, names[r.Account])
		keep := (kind == "" || r.Kind == kind) && view.holds(text)
		if keep {
			views = append(views, view)
		}
		return keep
	})
	if err != nil {
		return err
	}
	views, nextCursor := cut(views, limit, func(r relayJSON) string { return placeCursor("%d %s %s", r.Account, r.Kind, r.ID) })
	return sendPage(c, views, nextCursor)
}

// namedRelay finds the relay of a path; the account is named in the query or the body.
func (s *Surface) namedRelay(c *fiber.Ctx, sel *selection) (inbound.Relay, error) {
	acct := sel.requiredAccount()
	if err := sel.Err(); err != nil {
		return inbound.Relay{}, err
	}
	return s.Relays.Get(c.UserContext(), acct, inbound.Kind(params.Path(c, "kind")), params.Path(c, "relay_id"))
}

// getRelay returns a relay with its document and the actions that it may have.
func (s *Surface) getRelay(c *fiber.Ctx, sel *selection) error {
	r, err := s.namedRelay(c, sel)
	if err != nil {
		return err
	}
	return s.answerRelay(c, r)
}

func (s *Surface) answerRelay(c *fiber.Ctx, r inbound.Relay) error {
	owner, document, err := s.relayOwner(c, r)
	if err != nil {
		return err
	}
	out := relayView{relayJSON: relayOf(c, r, owner.Name), Document: document, Actions: []actionJSON{}}
	for _, a := range inbound.ActionsOf(r.Kind, owner.May) {
		out.Actions = append(out.Actions, actionJSON{a.Name, a.Description, string(a.Takes)})
	}
	return c.JSON(fiber.Map{"data": out})
}

// relayOwner returns the account of a relay and the name of the inventory document that
// declared it.
func (s *Surface) relayOwner(c *fiber.Ctx, r inbound.Relay) (owner account.Account, document string, err error) {
	if owner, err = s.Accounts.Account(c.UserContext(), r.Account); err != nil {
		return owner, "", err
	}
	document, err = s.Inventory.Owner(c.UserContext(), "account "+owner.Name+": "+r.String())
	return owner, document, err
}
