package httpd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/user"
)

// Accounts finds accounts; account.Store implements it.
type Accounts interface {
	Account(ctx context.Context, id relay.AccountID) (account.Account, error)
	AccountByName(ctx context.Context, name string) (account.Account, error)
}

// Operation is an operation of one of the APIs that accounts use.
type Operation struct {
	Method string
	Path   string // parameters are segments that begin with a colon
	ID     string // operationId of the contract
	// Summary describes the operation to people: "Add a user".
	Summary string
}

// accessRule defines who may use an operation while acting as an account.
type accessRule struct {
	roles  []user.Role
	change bool // the operation changes records: the audit log records it
}

// access returns the rule for an operation. By default, all roles may read, and operators and
// administrators may make changes.
func (o Operation) access() accessRule {
	operators := []user.Role{user.Operator, user.Admin}
	trusted := []user.Role{user.Account, user.Operator, user.Admin}
	switch o.ID {
	case "lookUpNumber": // a GET that costs credit
		return accessRule{operators, true}
	case "readInbox", "listRules", "getRule": // the answers contain texts of messages or secrets
		return accessRule{trusted, false}
	case "tryRule", "previewMessage", "validateToken": // POSTs that change nothing
		return accessRule{trusted, false}
	}
	if reads(o.Method) {
		return accessRule{user.Roles(), false}
	}
	return accessRule{operators, true}
}

// OperationsOf lists the operationIds that a role may use while acting as an account.
func (a *Auth) OperationsOf(r user.Role) []string {
	var ids []string
	for _, o := range a.Operations {
		if slices.Contains(o.access().roles, r) {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// operationOf returns the operation whose route matches a request. If several match, it returns the
// operation with the fewest parameters. If none matches, it returns an operation that counts as a
// change, so that viewers cannot use an operation that is missing from Operations.
func (a *Auth) operationOf(c *fiber.Ctx) Operation {
	method, path := c.Method(), RoutePath(c)
	if method == fiber.MethodHead {
		method = fiber.MethodGet
	}
	var found *Operation
	for i := range a.Operations {
		o := &a.Operations[i]
		if o.Method == method && MatchesRoute(o.Path, path) && (found == nil || strings.Count(o.Path, ":") < strings.Count(found.Path, ":")) {
			found = o
		}
	}
	if found == nil {
		return Operation{Path: strings.Clone(path), ID: strings.Clone(method + " " + path)}
	}
	return *found
}

// RoutePath returns the path of a request in lower case, without a slash at the end.
func RoutePath(c *fiber.Ctx) string { return strings.TrimSuffix(strings.ToLower(c.Path()), "/") }

// MatchesRoute reports whether a path from RoutePath matches a route. Parameters of the route are
// segments that begin with a colon.
func MatchesRoute(route, path string) bool {
	names, values := strings.Split(strings.ToLower(route), "/"), strings.Split(path, "/")
	if len(names) != len(values) {
		return false
	}
	for i, name := range names {
		if name != values[i] && !(strings.HasPrefix(name, ":") && values[i] != "") {
			return false
		}
	}
	return true
}

// NotAllowed returns the error for a role that may not use an operation.
func NotAllowed(role user.Role, allowed []user.Role) error {
	names := make([]string, 0, len(user.Roles()))
	for _, r := range []user.Role{user.Account, user.Viewer, user.Operator, user.Admin} {
		if slices.Contains(allowed, r) {
			names = append(names, string(r))
		}
	}
	return fiber.NewError(fiber.StatusForbidden, fmt.Sprintf("The role %s may not do this; allowed: %s.", role, strings.Join(names, " or ")))
}

// act authenticates a user or the admin token, and calls the next handlers on behalf of the account
// that name, the value of X-Account, refers to. text is the text of the token; "" means that the
// request has a session.
func (a *Auth) act(c *fiber.Ctx, text, name string) error {
	o := a.operationOf(c)
	access := o.access()
	var principal Principal
	var err error
	if text != "" {
		principal, err = a.principal(c, text)
	} else {
		principal, err = a.sessionPrincipal(c, access.change)
	}
	if err != nil {
		return err
	}
	if !slices.Contains(access.roles, principal.Role) {
		return NotAllowed(principal.Role, access.roles)
	}
	acct, err := a.accountNamed(c.UserContext(), name)
	switch {
	case err != nil && relay.KindOf(err) != relay.KindNotFound:
		return err
	case principal.Role == user.Account && (err != nil || acct != principal.Account):
		return fiber.NewError(fiber.StatusForbidden, "A user with the role account may act only as its own account.")
	case err != nil:
		return fiber.NewError(fiber.StatusForbidden, fmt.Sprintf("%s names an unknown account: %q.", HeaderAccount, name))
	}
	c.Locals(principalKey{}, principal)
	c.Locals(tokenKey{}, account.Token{Account: acct, Scopes: account.DefaultScopes()})
	if state := stateOf(c); state != nil {
		state.account = acct
	}
	if !access.change {
		return c.Next()
	}
	return a.Record(c, audit.Entry{Actor: principal.Name, Role: string(principal.Role), Operation: o.ID, Account: acct, Target: RouteTarget(c, o.Path)})
}

// accountNamed returns the id of the account that name refers to: an id if name consists of digits,
// otherwise a name. It returns a NotFound error if the account does not exist.
func (a *Auth) accountNamed(ctx context.Context, name string) (relay.AccountID, error) {
	if id, err := strconv.ParseUint(name, 10, 63); err == nil {
		found, err := a.Accounts.Account(ctx, relay.AccountID(id)) //nolint:gosec // 63 bits
		return found.ID, err
	}
	found, err := a.Accounts.AccountByName(ctx, strings.Clone(name))
	return found.ID, err
}

// accountMatches reports whether X-Account is missing or refers to the account of the request's
// token.
func (a *Auth) accountMatches(c *fiber.Ctx, acct relay.AccountID) (bool, error) {
	name := c.Get(HeaderAccount)
	if name == "" {
		return true, nil
	}
	id, err := a.accountNamed(c.UserContext(), name)
	if relay.KindOf(err) == relay.KindNotFound {
		return false, nil
	}
	return id == acct, err
}
