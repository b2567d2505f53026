package carrier

import (
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
)

func TestRoutesAreOperationsOfTheContract(t *testing.T) {
	contracttest.CheckSurface(t, OpenAPI(), func(app *fiber.App, auth *httpd.Auth) {
		s := New(nil, Options{})
		s.Mount(app, auth)
		s.MountReceipts(app, auth, nil, Signer{})
	})
}
