package admin

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
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
	// Hidden means that paths of URLs are omitted because the caller may not read them.
	Hidden bool `json:"hidden,omitempty"`
	// Undecryptable means that the record cannot be decrypted (see relay.ErrUndecryptable). Its encrypted
	// fields are omitted.
	Undecryptable bool `json:"unopened,omitempty"`
}

// relayDetailJSON is a relay with the actions that the account may set.
type relayDetailJSON struct {
	relayJSON
	Document string       `json:"document"` // the inventory document that declares the relay; empty for none
	Actions  []actionJSON `json:"actions"`
}

type actionJSON struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Takes       string `json:"takes"` // the kind of parameters: urls, addresses or labels; empty for none
}

// relayOf returns a relay for an answer, with masked URLs if the caller may not read texts of
// messages.
func relayOf(c *fiber.Ctx, r inbound.Relay, accountName string) relayJSON {
	view := relayJSON{
		Account: r.Account, AccountName: accountName, Kind: r.Kind, ID: r.ID, Number: r.Number, Action: r.Action.Name,
		Parameters: append([]string{}, r.Action.Parameters...), Filter: r.Filter, ICCID: r.ICCID, Pace: r.Pace, Undecryptable: r.Undecryptable, UpdatedAt: formatTimeOrNil(r.UpdatedAt),
	}
	if hidesTexts(c) {
		view.Hidden = true
		for i, p := range view.Parameters {
			view.Parameters[i] = outbox.MaskPath(p)
		}
	}
	return view
}

// contains reports whether a field of the relay contains a text, ignoring case.
func (r *relayJSON) contains(text string) bool {
	fields := append([]string{r.AccountName, r.ID, r.Number, r.Action, r.Filter, r.ICCID}, r.Parameters...)
	return slices.ContainsFunc(fields, func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(text)) })
}

// listRelays lists the relays of one or all accounts, by account, kind and id.
func (s *Surface) listRelays(c *fiber.Ctx, sel *selection) error {
	acct, kind, text, limit := sel.account(), oneOf(sel, "kind", inbound.Geographic, inbound.VirtualNumber), sel.text("q"), sel.limit()
	var lastRef inbound.Ref
	parseCursor(sel, &lastRef.ID, &lastRef.Account, &lastRef.Kind)
	if err := sel.Err(); err != nil {
		return err
	}
	names, err := s.accountNames(c.UserContext())
	if err != nil {
		return err
	}
	views := []relayJSON{}
	_, err = s.Relays.Find(c.UserContext(), acct, lastRef, limit+1, func(r inbound.Relay) bool {
		view := relayOf(c, r, names[r.Account])
		selected := (kind == "" || r.Kind == kind) && view.contains(text)
		if selected {
			views = append(views, view)
		}
		return selected
	})
	if err != nil {
		return err
	}
	views, nextCursor := trimPage(views, limit, func(r relayJSON) string { return formatCursor("%d %s %s", r.Account, r.Kind, r.ID) })
	return sendPage(c, views, nextCursor)
}

// getRelay answers with a relay of an account.
func (s *Surface) getRelay(c *fiber.Ctx, sel *selection) error {
	ctx, acct := c.UserContext(), sel.requiredAccount()
	if err := sel.Err(); err != nil {
		return err
	}
	r, err := s.Relays.Get(ctx, acct, inbound.Kind(params.Path(c, "kind")), params.Path(c, "relay_id"))
	if err != nil {
		return err
	}
	owner, err := s.Accounts.Account(ctx, r.Account)
	if err != nil {
		return err
	}
	document, err := s.Inventory.Owner(ctx, "account "+owner.Name+": "+r.String())
	if err != nil {
		return err
	}
	view := relayDetailJSON{relayJSON: relayOf(c, r, owner.Name), Document: document, Actions: []actionJSON{}}
	for _, a := range inbound.ActionsOf(r.Kind, owner.HasPermission) {
		view.Actions = append(view.Actions, actionJSON{a.Name, a.Description, string(a.ParameterKind)})
	}
	return c.JSON(fiber.Map{"data": view})
}

// explainedJSON is the predicted outcome of a message.
type explainedJSON struct {
	State      string                    `json:"state"`
	Reason     string                    `json:"reason"`
	Outcome    string                    `json:"outcome"`
	Message    routedJSON                `json:"message"`
	Joined     *joinedJSON               `json:"joined"`
	Matched    *matchedJSON              `json:"matched"`
	Considered []inbound.ConsideredRelay `json:"considered"`
	Requests   []outbox.Outgoing         `json:"requests"`
}

// routedJSON is the message that the relay receives.
type routedJSON struct {
	outbox.Content
	Stat int `json:"stat"`
}

// joinedJSON lists the missing parts of a concatenated message.
type joinedJSON struct {
	Part    int   `json:"part"`
	Total   int   `json:"total"`
	Missing []int `json:"missing"`
}

type matchedJSON struct {
	Kind       inbound.Kind    `json:"kind"`
	ID         string          `json:"id"`
	Account    relay.AccountID `json:"account"`
	Reason     string          `json:"why"`
	Action     string          `json:"action"`
	Parameters []string        `json:"parameters"`
	Filter     string          `json:"filter,omitempty"`
}

// explainRelay answers with the relay that would take a message, the reasons for and against each
// candidate, and the requests that would be sent. It stores and sends nothing.
func (s *Surface) explainRelay(c *fiber.Ctx, sel *selection) error {
	acct := sel.account()
	sel.bodyFields = slices.Collect(maps.Keys(sel.body)) // ReadMessage checks the other fields
	if err := sel.Err(); err != nil {
		return err
	}
	body, err := httpd.Body(c, maxBody)
	if err != nil {
		return err
	}
	m, err := s.ReadMessage(body)
	if err != nil {
		return err
	}
	m.Account, m.Carrier = acct, "json"
	e, err := s.Explain(c.UserContext(), m)
	if err != nil {
		return err
	}
	routed := &e.Message
	view := explainedJSON{
		State: string(e.State), Reason: e.Reason, Outcome: e.Outcome,
		Message: routedJSON{
			outbox.Content{
				From: routed.From, To: routed.To, Text: routed.Text, Data: hex.EncodeToString(routed.Data),
				UDH: hex.EncodeToString(routed.UDH), Coding: int(routed.Coding),
			},
			int(routed.Stat),
		},
		Considered: append([]inbound.ConsideredRelay{}, e.Considered...), Requests: append([]outbox.Outgoing{}, e.Outgoing...),
	}
	if e.Part != nil {
		view.Joined = &joinedJSON{Part: e.Part.Number, Total: e.Part.Total, Missing: e.MissingParts}
	}
	if r := e.Matched; r != nil {
		view.Matched = &matchedJSON{
			Kind: r.Kind, ID: r.ID, Account: r.Account, Reason: e.MatchReason, Action: r.Action.Name,
			Parameters: append([]string{}, r.Action.Parameters...), Filter: r.Filter,
		}
	}
	return c.JSON(view)
}
