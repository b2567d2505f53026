package admin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/user"
)

type userJSON struct {
	Name       string           `json:"name"`
	Role       user.Role        `json:"role"`
	Account    *relay.AccountID `json:"account"` // null unless the role is account
	Provider   user.Provider    `json:"provider"`
	Disabled   bool             `json:"disabled"`
	CreatedAt  string           `json:"created_at"`
	ChangedAt  string           `json:"changed_at"`
	SignedInAt *string          `json:"signed_in_at"`
}

func userOf(u user.User) userJSON {
	view := userJSON{
		Name: u.Name, Role: u.Role, Provider: u.Provider, Disabled: u.Disabled,
		CreatedAt: formatTime(u.CreatedAt), ChangedAt: formatTime(u.ChangedAt), SignedInAt: formatTimeOrNil(u.SignedInAt),
	}
	if u.Role == user.Account {
		view.Account = &u.Account
	}
	return view
}

func (s *Surface) listUsers(c *fiber.Ctx) error {
	users, err := s.Users.Users(c.UserContext())
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": httpd.Each(users, userOf)})
}

func (s *Surface) showUser(c *fiber.Ctx) error {
	u, err := s.Users.User(c.UserContext(), params.Path(c, "name"))
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": userOf(u)})
}

func (s *Surface) addUser(c *fiber.Ctx) error {
	var form struct {
		Name     string     `json:"name"`
		Role     user.Role  `json:"role"`
		Account  AccountRef `json:"account"`
		Password string     `json:"password"`
	}
	if err := readJSON(c, maxForm, &form); err != nil {
		return err
	}
	acct, err := s.existingAccount(c, form.Account)
	if err != nil {
		return err
	}
	u, err := s.Users.Add(c.UserContext(), user.NewUser{Name: form.Name, Role: form.Role, Account: acct, Password: form.Password})
	if err != nil {
		return err
	}
	n := httpd.NoteOf(c)
	n.Target, n.Account, n.After = u.Name, u.Account, userOf(u)
	return c.Status(fiber.StatusCreated).JSON(fiber.Map{"data": userOf(u)})
}

// existingAccount returns the account that a request refers to, or 0 for an empty reference. The
// error for an account that does not exist is relay.KindInvalid.
func (s *Surface) existingAccount(c *fiber.Ctx, r AccountRef) (relay.AccountID, error) {
	id, err := s.accountID(c, r)
	if err != nil || id == 0 {
		return id, err
	}
	_, err = s.Accounts.Account(c.UserContext(), id)
	if relay.KindOf(err) == relay.KindNotFound {
		return 0, relay.Invalid("account", "There is no account "+string(r)+".")
	}
	return id, err
}

func (s *Surface) changeUser(c *fiber.Ctx) error {
	var form struct {
		Role     *user.Role  `json:"role"`
		Account  *AccountRef `json:"account"`
		Password *string     `json:"password"`
		Disabled *bool       `json:"disabled"`
	}
	if err := readJSON(c, maxForm, &form); err != nil {
		return err
	}
	change := user.Change{Role: form.Role, Password: form.Password, Disabled: form.Disabled}
	if form.Account != nil {
		acct, err := s.existingAccount(c, *form.Account)
		if err != nil {
			return err
		}
		change.Account = &acct
	}
	oldUser, newUser, err := s.Users.Change(c.UserContext(), params.Path(c, "name"), change)
	if err != nil {
		return err
	}
	n := httpd.NoteOf(c)
	n.Target, n.Account, n.Before, n.After = newUser.Name, newUser.Account, userOf(oldUser), userOf(newUser)
	return c.JSON(fiber.Map{"data": userOf(newUser)})
}

func (s *Surface) removeUser(c *fiber.Ctx) error {
	u, err := s.Users.Remove(c.UserContext(), params.Path(c, "name"))
	if err != nil {
		return err
	}
	n := httpd.NoteOf(c)
	n.Target, n.Account, n.Before = u.Name, u.Account, userOf(u)
	return c.SendStatus(fiber.StatusNoContent)
}
