package admin

import (
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
)

// maxReason is the maximum length of the reason of an adjustment, in bytes.
const maxReason = 200

// adjustCredit adds an amount, which may be negative, to the credit of an account.
func (s *Surface) adjustCredit(c *fiber.Ctx) error {
	var form struct {
		Amount int64  `json:"amount"`
		Reason string `json:"reason"`
	}
	if err := readJSON(c, maxForm, &form); err != nil {
		return err
	}
	p := relay.Problems{}
	if form.Amount == 0 {
		p.Add("amount", "The amount must be a number of credits other than 0.")
	}
	p.Require("reason", form.Reason)
	p.Limit("reason", form.Reason, maxReason)
	if err := p.Err(); err != nil {
		return err
	}
	a, err := s.pathAccount(c)
	if err != nil {
		return err
	}
	now := s.Now()
	entry, err := s.Credit.Apply(c.UserContext(), credit.Change{
		ID: relay.NewID(now), Account: a.ID, Credits: form.Amount, Reason: credit.Adjusted, Reference: form.Reason, At: now,
	})
	if err != nil {
		return err
	}
	n := httpd.NoteOf(c)
	n.Target, n.Account = a.Name, a.ID
	return c.JSON(fiber.Map{"data": entry})
}

// listCredit lists the changes of an account's credit, newest first.
func (s *Surface) listCredit(c *fiber.Ctx, sel *selection) error {
	acct, limit, beforeSeq := sel.requiredAccount(), sel.limit(), sel.numericCursor()
	if err := sel.Err(); err != nil {
		return err
	}
	if _, err := s.Accounts.Account(c.UserContext(), acct); err != nil {
		return err
	}
	list, err := s.Credit.Entries(c.UserContext(), acct, beforeSeq, limit)
	if err != nil {
		return err
	}
	balance, err := s.Credit.Balance(c.UserContext(), acct)
	if err != nil {
		return err
	}
	nextCursor := ""
	if n := len(list); n == limit && list[n-1].Sequence > 1 {
		nextCursor = strconv.FormatUint(list[n-1].Sequence, 10)
	}
	return c.JSON(fiber.Map{"data": append([]credit.Entry{}, list...), "meta": fiber.Map{"balance": balance, "next": nextCursor}})
}

// balanceJSON is the credit of an account.
type balanceJSON struct {
	Account     relay.AccountID `json:"account"`
	AccountName string          `json:"account_name"`
	Balance     int64           `json:"balance"`
}

// listBalances lists the credit of accounts, by id. The cursor is the last account of the previous
// page.
func (s *Surface) listBalances(c *fiber.Ctx, sel *selection) error {
	acct, limit, afterID := sel.account(), sel.limit(), sel.numericCursor()
	if err := sel.Err(); err != nil {
		return err
	}
	accounts, err := s.Accounts.Accounts(c.UserContext())
	if err != nil {
		return err
	}
	views, ids, nextCursor := []balanceJSON{}, []relay.AccountID{}, ""
	for _, a := range accounts {
		if acct != 0 && a.ID != acct || uint64(a.ID) <= afterID { //nolint:gosec // ids are positive
			continue
		}
		if len(views) == limit {
			nextCursor = views[limit-1].Account.String()
			break
		}
		views, ids = append(views, balanceJSON{Account: a.ID, AccountName: a.Name}), append(ids, a.ID)
	}
	balances, err := s.Credit.Balances(c.UserContext(), ids)
	if err != nil {
		return err
	}
	for i := range views {
		views[i].Balance = balances[views[i].Account]
	}
	return sendPage(c, views, nextCursor)
}
