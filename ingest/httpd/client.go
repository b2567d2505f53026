package httpd

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// ClientAddr returns the address of the client of a request, for an IPv6 client the address of
// its /64 network. Behind trusted proxies the client is the last address in X-Forwarded-For that
// does not belong to a trusted proxy.
func ClientAddr(c *fiber.Ctx) netip.Addr {
	addr := clientIP(c)
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}

// ClientIP returns the address of the client of a request as a string.
func ClientIP(c *fiber.Ctx) string { return clientIP(c).String() }

func clientIP(c *fiber.Ctx) netip.Addr {
	addr, _ := netip.AddrFromSlice(c.Context().RemoteIP())
	addr = addr.Unmap()
	if state := stateOf(c); state != nil && isTrusted(state.proxies, addr) {
		return clientBehindProxies(addr, state.proxies, c.Request().Header.PeekAll(fiber.HeaderXForwardedFor))
	}
	return addr
}

// clientBehindProxies returns the client of a request from addr. It trusts the addresses in
// X-Forwarded-For that trusted proxies have added: from the end back to the first address that
// does not belong to a trusted proxy.
func clientBehindProxies(addr netip.Addr, proxies []netip.Prefix, forwarded [][]byte) netip.Addr {
	if !isTrusted(proxies, addr) {
		return addr
	}
	var hops []string
	for _, line := range forwarded {
		hops = append(hops, strings.Split(string(line), ",")...)
	}
	for _, hop := range slices.Backward(hops) {
		hopAddr, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		if addr = hopAddr.Unmap().WithZone(""); !isTrusted(proxies, addr) {
			break
		}
	}
	return addr
}

func isTrusted(proxies []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
