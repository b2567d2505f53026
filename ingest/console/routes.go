package console

import (
	"crypto/sha256"
	_ "embed" // the page, its script and its style sheet
	"encoding/base64"
	"strings"

	"github.com/gofiber/fiber/v2"
)

//go:embed console.html
var page []byte

//go:embed app.js
var script []byte

//go:embed style.css
var sheet []byte

// policy lets the page load its own script and style sheet and ask its own
// gateway, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// Mount adds the page and what it loads to the app. None takes a token.
func Mount(app fiber.Router) {
	app.Get("/console", asset(fiber.MIMETextHTMLCharsetUTF8, page))
	app.Get("/console/app.js", asset(fiber.MIMETextJavaScriptCharsetUTF8, script))
	app.Get("/console/style.css", asset("text/css; charset=utf-8", sheet))
}

// asset serves a file of the program. A browser asks each time whether it has
// changed, so that a new version shows at once, and is answered 304 if not.
func asset(kind string, content []byte) fiber.Handler {
	sum := sha256.Sum256(content)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	return func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentSecurityPolicy, policy)
		c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
		c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
		c.Set(fiber.HeaderCacheControl, "no-cache")
		c.Set(fiber.HeaderETag, tag)
		if known(c.Get(fiber.HeaderIfNoneMatch), tag) {
			return c.SendStatus(fiber.StatusNotModified)
		}
		c.Set(fiber.HeaderContentType, kind)
		return c.Send(content)
	}
}

// known reports whether If-None-Match names a tag (RFC 9110, 13.1.2). Proxies
// that compress make a tag weak; it still names the same content.
func known(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			return true
		}
	}
	return false
}
