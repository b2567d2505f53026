package admin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay/account"
)

// accountJSON names an account.
type accountJSON struct {
	ID   account.ID `json:"id"`
	Name string     `json:"name"`
}

// listAccounts names all accounts, by id.
func (s *Surface) listAccounts(c *fiber.Ctx) error {
	all, err := s.Accounts.Accounts(c.UserContext())
	if err != nil {
		return err
	}
	out := make([]accountJSON, len(all))
	for i, a := range all {
		out[i] = accountJSON{ID: a.ID, Name: a.Name}
	}
	return c.JSON(fiber.Map{"data": out})
}
