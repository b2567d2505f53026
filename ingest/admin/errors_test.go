package admin

import (
	"errors"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/user"
)

// Errors of back ends contain addresses, which accounts and unknown callers must not see.
func TestOnlyStaffSeesErrorsOfBackEnds(t *testing.T) {
	app := fiber.New()
	app.Use(errorAnswers().Handler)
	app.Get("/:role?", func(c *fiber.Ctx) error {
		c.Locals(principalKey{}, principal{Principal: httpd.Principal{Role: user.Role(c.Params("role"))}})
		return relay.Errorf(relay.KindUnavailable, "database: %w", errors.New("dial tcp 10.0.0.5:5432: connection refused"))
	})
	for role, sees := range map[user.Role]bool{"": false, user.Account: false, user.Viewer: true, user.Operator: true, user.Admin: true} {
		status, body, _ := answertest.Send(t, app, answertest.Request("GET", "/"+string(role), ""))
		relaytest.Equal(t, "the status for "+string(role), status, 503)
		relaytest.Equal(t, string(role)+" sees the host", strings.Contains(body, "10.0.0.5"), sees)
	}
}
