package console

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"path"
	"strings"

	"github.com/gofiber/fiber/v2"
)

//go:embed web
var web embed.FS

// policy allows the page only to load its own modules and style sheets, and to send requests to
// its own gateway.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// file is an embedded file with its Content-Type and its ETag.
type file struct {
	contentType, etag string
	content           []byte
}

// Mount adds the page and the files that it loads to the app. None of the routes requires
// credentials.
func Mount(app fiber.Router) {
	files := loadFiles()
	app.Get("/", func(c *fiber.Ctx) error { return c.Redirect("/console", fiber.StatusFound) })
	app.Get("/console", func(c *fiber.Ctx) error { return serve(c, files["console.html"]) })
	app.Get("/console/:file", func(c *fiber.Ctx) error { return serve(c, files[c.Params("file")]) })
	app.Get("/console/:folder/:file", func(c *fiber.Ctx) error { return serve(c, files[c.Params("folder")+"/"+c.Params("file")]) })
}

// loadFiles returns the files by their path below web. They are part of the program,
// so reading them cannot fail.
func loadFiles() map[string]*file {
	kinds := map[string]string{
		".html": fiber.MIMETextHTMLCharsetUTF8, ".js": fiber.MIMETextJavaScriptCharsetUTF8, ".css": "text/css; charset=utf-8",
		".svg": "image/svg+xml",
	}
	files := make(map[string]*file)
	_ = fs.WalkDir(web, "web", func(name string, entry fs.DirEntry, _ error) error {
		if entry.IsDir() {
			return nil
		}
		kind, known := kinds[path.Ext(name)]
		if !known {
			kind = fiber.MIMETextPlainCharsetUTF8
		}
		content, _ := web.ReadFile(name)
		sum := sha256.Sum256(content)
		tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
		files[strings.TrimPrefix(name, "web/")] = &file{contentType: kind, etag: tag, content: content}
		return nil
	})
	return files
}

// serve sends a file. If f is nil, serve calls the next handler, which answers unknown paths. The
// browser revalidates a file before each use, so that a new version appears at once; an unchanged
// file is answered 304.
func serve(c *fiber.Ctx, f *file) error {
	if f == nil {
		return c.Next()
	}
	c.Set(fiber.HeaderContentSecurityPolicy, policy)
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	c.Set(fiber.HeaderCacheControl, "no-cache")
	c.Set(fiber.HeaderETag, f.etag)
	if matchesTag(c.Get(fiber.HeaderIfNoneMatch), f.etag) {
		return c.SendStatus(fiber.StatusNotModified)
	}
	c.Set(fiber.HeaderContentType, f.contentType)
	return c.Send(f.content)
}

// matchesTag reports whether If-None-Match has the tag (RFC 9110, 13.1.2). It ignores the mark of
// a weak tag, which proxies that compress add to the tag of the same content.
func matchesTag(header, tag string) bool {
	for text := range strings.SplitSeq(header, ",") {
		if text = strings.TrimPrefix(strings.TrimSpace(text), "W/"); text == tag || text == "*" {
			return true
		}
	}
	return false
}
