package admin

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/account"
)

// commandCase is a command, its exit code and a part of its output.
type commandCase struct {
	stdin, args, want string
	code              int
}

// runCommands runs the subcommands of a command, one after the other.
func runCommands(t *testing.T, g *e2e.Gateway, command string, cases []commandCase) {
	t.Helper()
	for _, tc := range cases {
		g.RunCommand(tc.stdin, append([]string{command}, strings.Fields(tc.args)...)...).Mentions(t, tc.code, tc.want)
	}
}

// TestUsersFromTheShell manages users with the command user.
func TestUsersFromTheShell(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	runCommands(t, g, "user", []commandCase{
		{"", "list", "there are no users", 0},
		{"", "add anna --role admin", "nothing on standard input: write the password or secret to it", 1},
		{"short\n", "add anna --role admin", "password: The password must have at least 12 characters", 1},
		{e2e.UserPassword + "\n", "add anna --role admin", "user anna added as admin", 0},
		{e2e.UserPassword, "add carl --role account --account acme", "user carl added as account", 0},
		{e2e.UserPassword, "add anna --role viewer", "A user named anna already exists.", 1},
		{"", "list", "anna  admin    -        password  enabled  never", 0},
		{"", "set carl", "nothing to change: set --role", 1},
		{"", "set carl --role viewer --disable", "user carl changed", 0},
		{"", "set carl --disable --enable", "--disable and --enable can't be used together", 2},
		{"another password", "set anna --password", "user anna changed", 0},
		{"", "list", "carl  viewer  -        password  disabled  never", 0},
		{"", "remove carl", "user carl removed", 0},
		{"", "remove carl", "user carl: not found", 1},
		{"", "add", "missing flags: --role", 2},
	})
	body, _ := json.Marshal(map[string]string{"name": "anna", "password": "another password"})
	g.WithToken("").Post("/admin/session", string(body)).Mentions(t, 200, `"role":"admin"`)
}

// TestTokensFromTheShell creates, lists and revokes tokens with the command token.
func TestTokensFromTheShell(t *testing.T) {
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	result := g.RunCommand("", "token", "add", "--account", "acme", "--scopes", "webhook,iot")
	token := strings.TrimSpace(result.Stdout)
	id := account.HashToken(token)[:12]
	if strings.Contains(token, " ") {
		t.Fatalf("standard output = %q, want only a token", result.Stdout)
	}
	result.Mentions(t, 0, "token "+id+" of account acme may use webhook, iot; it is not shown again")
	g.WithToken(token).Get("/iot/devices").Mentions(t, 200, "data")
	g.XAuth(token).Get("/v2/sms/credit").Mentions(t, 403, "unauthorised")
	declaredID := account.HashToken("acme-all-0123456")[:12]
	runCommands(t, g, "token", []commandCase{
		{"", "add", "missing flags: --account", 2},
		{"", "add --account nobody", "account: There is no account named", 1},
		{"", "add --account acme --scopes root --source a/b", "scopes[0]: expected messaging, cellular, iot, ledger, webhook or carrier", 1},
		{"", "add --account acme --source s1 --secret", "nothing on standard input: write the password or secret to it", 1},
		{"shared\n", "add --account acme --source s1 --scopes carrier --secret", "may use carrier", 0},
		{"", "add --account acme --source s1", "There is a token with the source s1 already.", 1},
		{"", "list --account acme", id + "  acme     webhook,iot", 0},
		{"", "list", "  default", 0},
		{"", "revoke " + id, "token " + id + " revoked", 0},
		{"", "revoke " + id, ": not found", 1},
		{"", "revoke " + declaredID, "the document default declared it: remove it there too", 0},
	})
	for _, revokedToken := range []string{token, "acme-all-0123456"} {
		g.WithToken(revokedToken).Get("/iot/devices").Expect(t, 401, `{"message":"Unauthenticated."}`)
	}
	if body := g.Admin().Get("/admin/inventory").Body; strings.Contains(body, declaredID) {
		t.Errorf("inventory = %s, want no revoked token", body)
	}
	if body := g.Admin().Get("/admin/audit?operation=addToken").Body; strings.Contains(body, token) || strings.Contains(body, "shared") || !strings.Contains(body, id) {
		t.Errorf("audit log = %s, want the id of the token, no token and no secret", body)
	}
}
