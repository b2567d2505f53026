package admin

import (
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay/credit"
)

// creditJSON is a change of an account's credit as the operator sees it.
type creditJSON struct {
	Sequence  uint64        `json:"sequence"`
	ID        string        `json:"id"`
	At        string        `json:"at"`
	Credits   int64         `json:"credits"` // negative: charged
	Balance   int64         `json:"balance"` // after it
	Reason    credit.Reason `json:"reason"`
	Reference string        `json:"reference"`
}

// listCredit lists the changes of an account's credit, newest first.
func (s *Surface) listCredit(c *fiber.Ctx) error {
	sel, err := s.selectionOf(c)
	if err != nil {
		return err
	}
	acct, limit, before := sel.requiredAccount(), sel.limit(), sel.before()
	if err := sel.Err(); err != nil {
		return err
	}
	if _, err := s.Accounts.Account(c.UserContext(), acct); err != nil {
		return err
	}
	list, err := s.Credit.Entries(c.UserContext(), acct, before, limit)
	if err != nil {
		return err
	}
	balance, err := s.Credit.Balance(c.UserContext(), acct)
	if err != nil {
		return err
	}
	out, next := make([]creditJSON, len(list)), ""
	for i, e := range list {
		out[i] = creditJSON{e.Sequence, e.ID, formatTime(e.At), e.Credits, e.Balance, e.Reason, e.Reference}
	}
	if n := len(list); n == limit && list[n-1].Sequence > 1 {
		next = strconv.FormatUint(list[n-1].Sequence, 10)
	}
	return c.JSON(fiber.Map{"data": out, "meta": fiber.Map{"balance": balance, "next": next}})
}

// before reads a cursor that is a sequence.
func (s *selection) before() uint64 {
	text := s.cursor()
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		s.Add("cursor", "want the meta.next of a page, got "+strconv.Quote(text))
	}
	return n
}
