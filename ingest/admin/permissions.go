package admin

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/user"
)

// operation is an operation of the contract, with its route, its handler and the roles that may
// use it.
type operation struct {
	method, path string // path is below /admin
	id           string // operationId of the contract
	roles        []user.Role
	open         bool // requires no credentials, because the operation is a step of signing in
	change       bool // is recorded in the audit log
	search       bool // reads many records and needs a slot of httpd.Searches
	// prepare runs before the operation is recorded in the audit log; nil does nothing.
	prepare func(*fiber.Ctx) error
	handle  fiber.Handler
}

// allOperations lists the operations. Only admins may use an operation that is not in the list.
// The role account may use only operations that read or try records of a single account.
func (s *Surface) allOperations() []operation {
	admins := []user.Role{user.Admin}
	operators := []user.Role{user.Admin, user.Operator}
	staff := []user.Role{user.Admin, user.Operator, user.Viewer}
	everyone := []user.Role{user.Admin, user.Operator, user.Viewer, user.Account}
	// trusted may use operations with unmasked secrets or requests of an account in their answers.
	trusted := []user.Role{user.Admin, user.Operator, user.Account}
	return []operation{
		{method: "POST", path: "/session", id: "signIn", open: true, handle: params.WithoutQuery(s.signIn)},
		{method: "GET", path: "/session", id: "showSession", roles: everyone, handle: s.showSession},
		{method: "DELETE", path: "/session", id: "signOut", roles: everyone, handle: s.signOut},
		{method: "PUT", path: "/session/password", id: "setOwnPassword", roles: everyone, change: true, handle: params.WithoutQuery(s.setOwnPassword)},
		{method: "GET", path: "/oidc", id: "showProvider", open: true, handle: s.showProvider},
		{method: "GET", path: "/oidc/start", id: "startProviderSignIn", open: true, handle: s.startProvider},
		{method: "GET", path: "/oidc/callback", id: "finishProviderSignIn", open: true, handle: s.finishProvider},
		{method: "GET", path: "/users", id: "listUsers", roles: admins, handle: params.WithoutQuery(s.listUsers)},
		{method: "POST", path: "/users", id: "addUser", roles: admins, change: true, handle: params.WithoutQuery(s.addUser)},
		{method: "GET", path: "/users/:name", id: "showUser", roles: admins, handle: s.showUser},
		{method: "PATCH", path: "/users/:name", id: "changeUser", roles: admins, change: true, handle: params.WithoutQuery(s.changeUser)},
		{method: "DELETE", path: "/users/:name", id: "removeUser", roles: admins, change: true, handle: params.WithoutQuery(s.removeUser)},
		{method: "GET", path: "/audit", id: "listAudit", roles: admins, search: true, handle: s.withSelection(s.listAudit)},

		{method: "GET", path: "/status", id: "getStatus", roles: staff, handle: s.status},
		{method: "GET", path: "/traffic", id: "getTraffic", roles: staff, handle: s.withSelection(s.getTraffic)},
		{method: "GET", path: "/accounts", id: "listAccounts", roles: everyone, handle: params.WithoutQuery(s.listAccounts)},
		{method: "POST", path: "/accounts", id: "addAccount", roles: admins, change: true, handle: params.WithoutQuery(s.addAccount)},
		{method: "GET", path: "/accounts/:account", id: "showAccount", roles: everyone, handle: s.showAccount},
		{method: "PATCH", path: "/accounts/:account", id: "changeAccount", roles: admins, change: true, handle: params.WithoutQuery(s.changeAccount)},
		{method: "DELETE", path: "/accounts/:account", id: "removeAccount", roles: admins, change: true, handle: params.WithoutQuery(s.removeAccount)},
		{method: "POST", path: "/accounts/:account/credit", id: "adjustCredit", roles: admins, change: true, handle: params.WithoutQuery(s.adjustCredit)},
		{method: "GET", path: "/tokens", id: "listTokensOfAccounts", roles: admins, handle: s.withSelection(s.listTokens)},
		{method: "POST", path: "/tokens", id: "addToken", roles: admins, change: true, handle: params.WithoutQuery(s.addToken)},
		{method: "DELETE", path: "/tokens/:token_id", id: "revokeToken", roles: admins, change: true, handle: params.WithoutQuery(s.revokeToken)},
		{method: "PUT", path: "/inventory", id: "putInventory", roles: admins, change: true, handle: s.putInventory},
		{method: "GET", path: "/inventory", id: "getInventory", roles: operators, search: true, handle: s.withSelection(s.getInventory)},
		{method: "GET", path: "/inventory/drift", id: "getInventoryDrift", roles: operators, search: true, handle: s.withSelection(s.getDrift)},
		{method: "POST", path: "/recover", id: "recover", roles: admins, change: true, prepare: s.acceptServer, handle: params.WithoutQuery(s.recover)},
		{method: "GET", path: "/gateways", id: "listGateways", roles: staff, handle: params.WithoutQuery(s.listGateways)},
		{method: "DELETE", path: "/gateways/:node", id: "forgetGateway", roles: operators, change: true, handle: params.WithoutQuery(s.forgetGateway)},
		{method: "GET", path: "/events", id: "listEvents", roles: everyone, search: true, handle: s.withSelection(s.listEvents)},
		{method: "GET", path: "/events/:event", id: "getEvent", roles: everyone, search: true, handle: s.getEvent},
		{method: "POST", path: "/events/replay", id: "replayEvents", roles: operators, change: true, handle: s.withSelection(s.replayEvents)},
		{method: "GET", path: "/deliveries", id: "listDeliveries", roles: everyone, search: true, handle: s.withSelection(s.listDeliveries)},
		{method: "POST", path: "/deliveries/replay", id: "replayDeliveries", roles: operators, change: true, handle: s.withSelection(s.replayDeliveries)},
		{method: "GET", path: "/devices", id: "listDevicesOfAccounts", roles: everyone, search: true, handle: s.withSelection(s.listDevices)},
		{method: "GET", path: "/devices/:device_id", id: "showDevice", roles: everyone, handle: s.withSelection(s.getDevice)},
		{method: "GET", path: "/identifiers", id: "listIdentifiers", roles: staff, search: true, handle: s.withSelection(s.listIdentifiers)},
		{method: "DELETE", path: "/identifiers/:identifier", id: "releaseIdentifier", roles: operators, change: true, handle: params.WithoutQuery(s.releaseIdentifier)},
		{method: "GET", path: "/decoders", id: "listDecodersOfAccounts", roles: everyone, search: true, handle: s.withSelection(s.listDecoders)},
		{method: "POST", path: "/decoders/try", id: "tryDecoder", roles: everyone, search: true, handle: params.WithoutQuery(s.tryDecoder)},
		{method: "GET", path: "/decoders/:decoder_id", id: "showDecoder", roles: everyone, handle: s.withSelection(s.getDecoder)},
		{method: "GET", path: "/sensor-types", id: "listSensorTypes", roles: staff, handle: params.WithoutQuery(s.listSensorTypes)},
		{method: "POST", path: "/sensor-types", id: "addSensorType", roles: operators, change: true, handle: params.WithoutQuery(s.addSensorType)},
		{method: "GET", path: "/relays", id: "listRelaysOfAccounts", roles: everyone, search: true, handle: s.withSelection(s.listRelays)},
		{method: "GET", path: "/relays/:kind/:relay_id", id: "showRelay", roles: everyone, handle: s.withSelection(s.getRelay)},
		{method: "POST", path: "/relays/explain", id: "explainRelay", roles: operators, handle: s.withSelection(s.explainRelay)},
		{method: "GET", path: "/rules", id: "listRulesOfAccount", roles: trusted, search: true, handle: s.withSelection(s.listRules)},
		{method: "GET", path: "/alarms", id: "listAlarmsOfAccount", roles: everyone, search: true, handle: s.withSelection(s.listAlarms)},
		{method: "GET", path: "/sims", id: "listSIMsOfAccounts", roles: everyone, search: true, handle: s.withSelection(s.listSIMs)},
		{method: "GET", path: "/sims/:iccid", id: "showSIM", roles: everyone, handle: s.withSelection(s.getSIM)},
		{method: "GET", path: "/sims/:iccid/usage", id: "usageOfSIM", roles: everyone, search: true, handle: s.withSelection(s.simUsage)},
		{method: "GET", path: "/jobs", id: "listJobsOfAccounts", roles: everyone, search: true, handle: s.withSelection(s.listJobs)},
		{method: "GET", path: "/ledgers", id: "listLedgersOfAccounts", roles: everyone, search: true, handle: s.withSelection(s.listLedgers)},
		{method: "GET", path: "/ledgers/:ledger_id/entries", id: "listEntriesOfLedger", roles: everyone, search: true, handle: s.withSelection(s.listLedgerEntries)},
		{method: "GET", path: "/ledgers/:ledger_id/tokens", id: "listTokensOfLedger", roles: everyone, search: true, handle: s.withSelection(s.listLedgerTokens)},
		{method: "GET", path: "/ledger-tokens/:token_id", id: "showLedgerToken", roles: everyone, handle: s.withSelection(s.getLedgerToken)},
		{method: "GET", path: "/breakers", id: "listBreakers", roles: everyone, handle: params.WithoutQuery(s.listBreakers)},
		{method: "DELETE", path: "/breakers/:endpoint", id: "closeBreaker", roles: operators, change: true, handle: params.WithoutQuery(s.closeBreaker)},
		{method: "GET", path: "/credit", id: "listCredit", roles: everyone, search: true, handle: s.withSelection(s.listCredit)},
		{method: "GET", path: "/balances", id: "listBalances", roles: everyone, handle: s.withSelection(s.listBalances)},
		{method: "GET", path: "/messages", id: "listMessages", roles: everyone, search: true, handle: s.withSelection(s.listMessages)},
		{method: "POST", path: "/messages/resend", id: "resendMessages", roles: operators, change: true, handle: s.withSelection(s.resendMessages)},
	}
}

// operationsOf lists the operationIds of the admin API that a role may use, and those of the APIs
// of accounts that it may use while acting as an account.
func (s *Surface) operationsOf(r user.Role) []string {
	ids := s.auth.OperationsOf(r)
	for _, o := range s.operations {
		if o.allows(r) {
			ids = append(ids, o.id)
		}
	}
	return ids
}

// operationOf returns the operation of a request. For an unknown request it returns an operation
// that only admins may use.
func (s *Surface) operationOf(c *fiber.Ctx) operation {
	method := c.Method()
	if method == fiber.MethodHead {
		method = fiber.MethodGet
	}
	path := httpd.RoutePath(c)
	for _, prefix := range []string{"/admin", "/internal"} {
		path = strings.TrimPrefix(path, prefix)
	}
	for _, o := range s.operations {
		if o.method == method && httpd.MatchesRoute(o.path, path) {
			return o
		}
	}
	return operation{
		method: strings.Clone(method), path: strings.Clone(path), id: strings.Clone(method + " " + path), roles: []user.Role{user.Admin},
		change: method != fiber.MethodGet,
	}
}

// allows reports whether a role may use the operation.
func (o operation) allows(r user.Role) bool { return slices.Contains(o.roles, r) }

// principal is the sender of a request.
type principal struct {
	httpd.Principal
	// peer is the gateway that forwarded the request; empty for a request of a client. The peer
	// has authorised the user, whose role is peerRole, and masks the answer.
	peer     string
	peerRole user.Role
}

type principalKey struct{}

// principalOf returns the sender of a request.
func principalOf(c *fiber.Ctx) principal {
	p, _ := c.Locals(principalKey{}).(principal)
	return p
}

// authorize passes requests with the admin token or a session cookie if the role of the sender may
// use the operation.
func (s *Surface) authorize(c *fiber.Ctx) error {
	o := s.operationOf(c)
	if o.open {
		return c.Next()
	}
	sender, err := s.auth.Principal(c)
	if err != nil {
		return err
	}
	if !o.allows(sender.Role) {
		return httpd.NotAllowed(sender.Role, o.roles)
	}
	c.Locals(principalKey{}, principal{Principal: sender})
	if o.search {
		if err := httpd.AdmitTo(c, httpd.Searches, sender.SearchAccount()); err != nil {
			return err
		}
	}
	return c.Next()
}

// sees reports whether the sender of a request may see the records of an account.
func sees(c *fiber.Ctx, acct relay.AccountID) bool {
	p := principalOf(c)
	return p.Role != user.Account || p.Account == acct
}

// seesBackends reports whether a request has the admin token or a session of a role other than
// account, and its sender may therefore read errors of back ends.
func (s *Surface) seesBackends(c *fiber.Ctx) bool {
	if c.Get(fiber.HeaderAuthorization) != "" {
		return s.auth.IsAdmin(c)
	}
	session, err := s.auth.SessionOf(c)
	return err == nil && session.User.Role != user.Account
}
