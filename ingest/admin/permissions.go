package admin

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay/user"
)

// permission says who may use an operation.
type permission struct {
	method, path string // below /admin, as it is mounted
	id           string // operationId of the contract
	roles        []user.Role
	// open operations take no credentials: they are there to get some.
	open bool
	// change operations are recorded in the audit log.
	change bool
}

// permissions is the whole table. An operation that it lacks is an admin's alone.
//
// The role account may use only operations that can be limited to one account: it reads
// and tries, and names no other account.
func permissions() []permission {
	admins := []user.Role{user.Admin}
	operators := append(admins, user.Operator)
	staff := append(operators, user.Viewer)
	everyone := append(staff, user.Account)
	// What shows the secrets or the requests of an account, unmasked.
	trusted := append(operators[:2:2], user.Account)
	return []permission{
		{method: "POST", path: "/session", id: "signIn", open: true},
		{method: "GET", path: "/session", id: "showSession", roles: everyone},
		{method: "DELETE", path: "/session", id: "signOut", roles: everyone},
		{method: "PUT", path: "/session/password", id: "setOwnPassword", roles: everyone, change: true},
		{method: "GET", path: "/oidc", id: "showProvider", open: true},
		{method: "GET", path: "/oidc/start", id: "startProviderSignIn", open: true},
		{method: "GET", path: "/oidc/callback", id: "finishProviderSignIn", open: true},
		{method: "GET", path: "/users", id: "listUsers", roles: admins},
		{method: "POST", path: "/users", id: "addUser", roles: admins, change: true},
		{method: "GET", path: "/users/:name", id: "showUser", roles: admins},
		{method: "PATCH", path: "/users/:name", id: "changeUser", roles: admins, change: true},
		{method: "DELETE", path: "/users/:name", id: "removeUser", roles: admins, change: true},
		{method: "GET", path: "/audit", id: "listAudit", roles: admins},

		{method: "GET", path: "/status", id: "getStatus", roles: staff},
		{method: "GET", path: "/traffic", id: "getTraffic", roles: staff},
		{method: "GET", path: "/accounts", id: "listAccounts", roles: everyone},
		{method: "GET", path: "/tokens", id: "listTokensOfAccounts", roles: admins},
		{method: "POST", path: "/tokens", id: "addToken", roles: admins, change: true},
		{method: "DELETE", path: "/tokens/:token_id", id: "revokeToken", roles: admins, change: true},
		{method: "PUT", path: "/inventory", id: "putInventory", roles: admins, change: true},
		{method: "GET", path: "/inventory", id: "getInventory", roles: operators},
		{method: "POST", path: "/recover", id: "recover", roles: admins, change: true},
		{method: "GET", path: "/gateways", id: "listGateways", roles: staff},
		{method: "DELETE", path: "/gateways/:node", id: "forgetGateway", roles: operators, change: true},
		{method: "GET", path: "/events", id: "listEvents", roles: everyone},
		{method: "GET", path: "/events/:event", id: "getEvent", roles: everyone},
		{method: "POST", path: "/events/replay", id: "replayEvents", roles: operators, change: true},
		{method: "GET", path: "/deliveries", id: "listDeliveries", roles: everyone},
		{method: "POST", path: "/deliveries/replay", id: "replayDeliveries", roles: operators, change: true},
		{method: "GET", path: "/devices", id: "listDevicesOfAccounts", roles: everyone},
		{method: "GET", path: "/devices/:device_id", id: "showDevice", roles: everyone},
		{method: "GET", path: "/devices/:device_id/readings/aggregate", id: "aggregateDeviceOfAccount", roles: everyone},
		{method: "GET", path: "/devices/:device_id/frames", id: "listFramesOfDevice", roles: everyone},
		{method: "GET", path: "/devices/:device_id/markers", id: "listMarkersOfDevice", roles: everyone},
		{method: "GET", path: "/decoders", id: "listDecodersOfAccounts", roles: everyone},
		{method: "PATCH", path: "/decoders/:decoder_id", id: "changeDecoder", roles: operators, change: true},
		{method: "POST", path: "/decoders/try", id: "tryDecoder", roles: everyone},
		{method: "GET", path: "/decoders/:decoder_id", id: "showDecoder", roles: everyone},
		{method: "GET", path: "/relays", id: "listRelaysOfAccounts", roles: everyone},
		{method: "GET", path: "/relays/:kind/:relay_id", id: "showRelay", roles: everyone},
		{method: "PATCH", path: "/relays/:kind/:relay_id", id: "changeRelay", roles: operators, change: true},
		{method: "POST", path: "/relays/explain", id: "explainRelay", roles: operators},
		{method: "GET", path: "/rules", id: "listRulesOfAccount", roles: trusted},
		{method: "POST", path: "/rules/try", id: "tryRuleOfAccount", roles: trusted},
		{method: "GET", path: "/alarms", id: "listAlarmsOfAccount", roles: everyone},
		{method: "PATCH", path: "/alarms/:alarm_id", id: "acknowledgeAlarm", roles: operators, change: true},
		{method: "GET", path: "/sims", id: "listSIMsOfAccounts", roles: everyone},
		{method: "GET", path: "/sims/:iccid", id: "showSIM", roles: everyone},
		{method: "GET", path: "/sims/:iccid/usage", id: "usageOfSIM", roles: everyone},
		{method: "GET", path: "/jobs", id: "listJobsOfAccounts", roles: everyone},
		{method: "GET", path: "/ledgers", id: "listLedgersOfAccounts", roles: everyone},
		{method: "GET", path: "/ledgers/:ledger_id/entries", id: "listEntriesOfLedger", roles: everyone},
		{method: "GET", path: "/ledger-tokens/:token_id", id: "showLedgerToken", roles: everyone},
		{method: "GET", path: "/breakers", id: "listBreakers", roles: everyone},
		{method: "DELETE", path: "/breakers/:endpoint", id: "closeBreaker", roles: operators, change: true},
		{method: "GET", path: "/credit", id: "listCredit", roles: everyone},
		{method: "GET", path: "/balances", id: "listBalances", roles: everyone},
		{method: "GET", path: "/messages", id: "listMessages", roles: everyone},
		{method: "POST", path: "/messages/resend", id: "resendMessages", roles: operators, change: true},
	}
}

// operationsOf lists what a role may use, by operationId.
func operationsOf(r user.Role) (ids []string) {
	for _, p := range permissions() {
		if p.allows(r) {
			ids = append(ids, p.id)
		}
	}
	return ids
}

// byMethod orders the table for look-ups.
func byMethod(table []permission) map[string][]permission {
	out := make(map[string][]permission)
	for _, p := range table {
		out[p.method] = append(out[p.method], p)
	}
	return out
}

// permissionOf returns the entry of a request; one for admins alone if there is none.
func (s *Surface) permissionOf(c *fiber.Ctx) permission {
	method := c.Method()
	if method == fiber.MethodHead {
		method = fiber.MethodGet
	}
	path := strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(c.Path()), "/admin"), "/")
	for _, p := range s.permissions[method] {
		if matches(p.path, path) {
			return p
		}
	}
	return permission{
		method: strings.Clone(method), path: strings.Clone(path), id: strings.Clone(method + " " + path), roles: []user.Role{user.Admin},
		change: method != fiber.MethodGet,
	}
}

// matches reports whether a path is one of a route.
func matches(route, path string) bool {
	names, values := strings.Split(route, "/"), strings.Split(path, "/")
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

// allows reports whether a role may use the operation.
func (p permission) allows(r user.Role) bool { return slices.Contains(p.roles, r) }

// needs lists the roles in words: operator or admin.
func (p permission) needs() string {
	words := make([]string, len(p.roles))
	for i, r := range p.roles {
		words[len(words)-1-i] = string(r)
	}
	return strings.Join(words, " or ")
}
