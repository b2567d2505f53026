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

// listAccounts names the accounts that the request may see, by id.
func (s *Surface) listAccounts(c *fiber.Ctx) error {
	all, err := s.Accounts.Accounts(c.UserContext())
	if err != nil {
		return err
	}
	out := []accountJSON{}
	for _, a := range all {
		if sees(c, a.ID) {
			out = append(out, accountJSON{ID: a.ID, Name: a.Name})
		}
	}
	return c.JSON(fiber.Map{"data": out})
}
