package admin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inventory"
)

// appliedJSON is the result of applying an inventory.
type appliedJSON struct {
	Accounts []appliedAccountJSON `json:"accounts"`
	Removed  []string             `json:"removed"`
	Kept     []string             `json:"kept"`
}

type appliedAccountJSON struct {
	ID   account.ID `json:"id"`
	Name string     `json:"name"`
}

func appliedOf(a inventory.Applied) appliedJSON {
	out := appliedJSON{Accounts: make([]appliedAccountJSON, len(a.Accounts)), Removed: a.Removed, Kept: a.Kept}
	for i, one := range a.Accounts {
		out.Accounts[i] = appliedAccountJSON(one)
	}
	return out
}

func (s *Surface) getInventory(c *fiber.Ctx) error {
	d, err := s.Inventory.Declared(c.UserContext())
	if err != nil {
		return err
	}
	return c.JSON(d)
}

func (s *Surface) putInventory(c *fiber.Ctx) error {
	m := inventory.Mode{Prune: c.QueryBool("prune")}
	for _, word := range strings.FieldsFunc(c.Query("reset"), func(r rune) bool { return r == ',' }) {
		if !slices.Contains([]string{"credit", "sims", "relays", "rules"}, word) {
			return badReset(c, word)
		}
		m.Reset = append(m.Reset, strings.Clone(word))
	}
	data, err := httpd.Body(c, 8<<20)
	if err != nil {
		return err
	}
	done, err := s.Inventory.Apply(c.UserContext(), data, m)
	if mistakes, ok := errors.AsType[inventory.Mistakes](err); ok {
		return refused(c, mistakes)
	}
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": appliedOf(done)})
}

// refused answers with every mistake by its path.
func refused(c *fiber.Ctx, mistakes inventory.Mistakes) error {
	byPath := make(map[string][]string, len(mistakes))
	for _, m := range mistakes {
		byPath[m.Path] = append(byPath[m.Path], m.Text)
	}
	return c.Status(fiber.StatusUnprocessableEntity).JSON(fiber.Map{
		"message": "The inventory was refused: " + mistakes[0].String(), "errors": byPath,
	})
}

func badReset(c *fiber.Ctx, word string) error {
	return c.Status(fiber.StatusUnprocessableEntity).JSON(fiber.Map{
		"message": "The given data was invalid.",
		"errors":  fiber.Map{"reset": []string{fmt.Sprintf("want credit, sims, relays or rules, got %q", word)}},
	})
}
