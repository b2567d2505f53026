package e2e

import (
	"fmt"
	"strings"
)

// UserPassword is the password of every user of the tests.
const UserPassword = "correct horse battery"

// AddUser adds a user; account is JSON, empty for none.
func (g *Gateway) AddUser(name, role, account string) {
	g.T.Helper()
	body := fmt.Sprintf(`{"name":%q,"role":%q,"password":%q}`, name, role, UserPassword)
	if account != "" {
		body = strings.TrimSuffix(body, "}") + `,"account":` + account + "}"
	}
	g.Admin().Post("/admin/users", body).Mentions(g.T, 201, `"name":"`+name+`"`)
}
