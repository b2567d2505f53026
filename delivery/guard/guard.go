// Package guard keeps connections that customers can aim (relay endpoints,
// receipts, callbacks, mail hosts) away from everything that is not public.
//
// The address is judged where it cannot change any more: in the dialer's
// Control, after DNS and just before connect, once per address tried. A name
// that answers differently the second time gains nothing. CheckURL is the
// earlier, friendlier check when a URL is saved.
//
// The table is the IANA special-purpose registries (IPv4, IPv6) as kept by
// code.dny.dev/ssrf: for IPv4 everything registered, for IPv6 everything
// outside 2000::/3 and what is registered within, so NAT64, 6to4, Teredo,
// IPv4-compatible, unique local and site-local addresses are refused whatever
// they embed. An IPv4-mapped address is judged as the IPv4 address it reaches.
// Added here: a cloud metadata service that answers on a public address.
package guard

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// Guard judges addresses. The zero value and nil let only public ones through.
type Guard struct {
	allow []netip.Prefix
}

// New makes a guard that lets public addresses and the given networks through.
func New(allow []netip.Prefix) *Guard {
	g := &Guard{}
	for _, p := range allow {
		g.allow = append(g.allow, unmap(p))
	}
	return g
}

// Error refuses an address.
type Error struct {
	Addr netip.Addr
	// Host is the name that led to the address, "" when it stood there itself.
	Host string
}

// Error names the address and the host it came from.
func (e *Error) Error() string {
	if e.Host == "" {
		return fmt.Sprintf("address %s is not public", e.Addr)
	}
	return fmt.Sprintf("address %s of %s is not public", e.Addr, e.Host)
}

// Check returns an *Error unless the address is public or allowed.
func (g *Guard) Check(addr netip.Addr) error {
	bare := addr.Unmap().WithZone("")
	if g.allowed(bare) || public(bare) {
		return nil
	}
	return &Error{Addr: addr.Unmap()}
}

// Control is for net.Dialer: it refuses the connection about to be made.
func (g *Guard) Control(network, address string, _ syscall.RawConn) error {
	switch network {
	case "tcp4", "tcp6":
	default:
		return fmt.Errorf("guard: network %q is not TCP", network)
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return g.Check(ap.Addr())
}

func (g *Guard) allowed(addr netip.Addr) bool {
	if g == nil {
		return false
	}
	return slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// public expects an address that is unmapped and without a zone.
func public(addr netip.Addr) bool {
	contains := func(p netip.Prefix) bool { return p.Contains(addr) }
	// Azure serves metadata and the host's agent to its guests in public space.
	azure := netip.AddrFrom4([4]byte{168, 63, 129, 16})
	switch {
	case !addr.IsValid() || addr == azure:
		return false
	case addr.Is4():
		return !slices.ContainsFunc(ssrf.IPv4DeniedPrefixes, contains)
	default:
		return ssrf.IPv6GlobalUnicast.Contains(addr) && !slices.ContainsFunc(ssrf.IPv6DeniedPrefixes, contains)
	}
}

// unmap turns a prefix within ::ffff:0:0/96 into the IPv4 prefix it means.
func unmap(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Masked()
	}
	return p.Masked()
}
