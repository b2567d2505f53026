package uplink

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/httpd"
)

// Signature headers of senders.
const (
	disruptiveHeader = "X-Dt-Signature"
	kpnHeader        = "Things-Message-Token"
)

// sourceIn returns the last path segment below one of the vendors' webhooks. It returns "" below
// the generic webhook, where that segment is a device.
func sourceIn(path string) string {
	path = strings.TrimSuffix(path, "/")
	i := strings.LastIndexByte(path, '/')
	if i < 0 || !slices.Contains(vendorWebhooks(), webhookName(path)) || strings.Count(path[:i], "/") < 2 {
		return ""
	}
	return path[i+1:]
}

// verify checks a post's signature. Disruptive Technologies and KPN sign the body as it was sent.
// ThingPark signs parts of its documents and the query.
func (s *Surface) verify(c *fiber.Ctx, secret string) error {
	err := s.checkSignature(c, secret)
	if errors.Is(err, netserver.ErrUnsigned) {
		return fmt.Errorf("%w: %w", httpd.ErrUnsigned, err)
	}
	return err
}

func (s *Surface) checkSignature(c *fiber.Ctx, secret string) error {
	disruptive, kpn := c.Get(disruptiveHeader), c.Get(kpnHeader)
	if disruptive != "" || kpn != "" {
		body, err := httpd.RawBody(c, s.bodyLimit)
		if err != nil {
			return err
		}
		if disruptive != "" {
			return netserver.VerifyDisruptive(disruptive, body, secret, s.now())
		}
		return netserver.VerifyKPN(kpn, body, secret)
	}
	raw := string(c.Request().URI().QueryString())
	if !strings.Contains(raw, "Token=") {
		return netserver.ErrUnsigned
	}
	// A Token covers ThingPark's documents only. Any other body counts as unsigned.
	post, err := s.postOf(c, raw)
	if err != nil {
		return err
	}
	if sender, err := netserver.Inspect(post); err != nil || sender != netserver.ThingPark {
		return netserver.ErrUnsigned
	}
	return netserver.VerifyThingPark(raw, post.Body, secret, s.now())
}
