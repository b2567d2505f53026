// Package guard refuses connections to addresses that are not public, for targets that
// customers choose: relay endpoints, receipts, callbacks, mail hosts.
//
// The address is checked in the dialer's Control: after DNS resolution, just before
// connect, and for each address that is tried. So a name that resolves to another
// address the second time (DNS rebinding) is refused too. CheckURL is an earlier check
// with better errors, for when a URL is saved.
//
// The refused addresses are the IANA special-purpose registries (IPv4, IPv6) as listed
// by code.dny.dev/ssrf: for IPv4 all registered ranges, for IPv6 everything outside
// 2000::/3 and the ranges registered within. So NAT64, 6to4, Teredo, IPv4-compatible,
// unique local and site-local addresses are refused, whatever address they embed. An
// IPv4-mapped address is checked as its IPv4 address. The package also refuses a cloud
// metadata service on a public address.
package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Guard checks addresses. The zero value and nil allow public addresses only.
type Guard struct {
	allow []netip.Prefix
}

// New returns a guard that allows public addresses and the networks of allow.
func New(allow []netip.Prefix) *Guard {
	g := &Guard{}
	for _, p := range allow {
		if p.Addr().Is4In6() && p.Bits() >= 96 { // a prefix of IPv4-mapped addresses
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		g.allow = append(g.allow, p.Masked())
	}
	return g
}

// Error is returned for an address that is not allowed.
type Error struct {
	Addr netip.Addr
	// Host is the name that resolved to the address; empty for a literal address.
	Host string
}

// Error names the address and the host that resolved to it.
func (e *Error) Error() string {
	if e.Host == "" {
		return fmt.Sprintf("address %s is not public", e.Addr)
	}
	return fmt.Sprintf("address %s of %s is not public", e.Addr, e.Host)
}

// Check returns an *Error unless the address is public or allowed.
func (g *Guard) Check(addr netip.Addr) error {
	unmapped := addr.Unmap().WithZone("")
	if g.allowed(unmapped) || public(unmapped) {
		return nil
	}
	return &Error{Addr: addr.Unmap()}
}

// Control is the Control function of a net.Dialer: it refuses a connection before it is
// made.
func (g *Guard) Control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
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

// public reports whether an address, unmapped and without a zone, is public.
func public(addr netip.Addr) bool {
	contains := func(p netip.Prefix) bool { return p.Contains(addr) }
	// Azure serves metadata and the host agent to its guests on a public address.
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

// Dialer makes TCP connections that a guard allows.
type Dialer struct{ dialer net.Dialer }

// NewDialer returns a dialer. The timeout bounds name resolution and connecting
// together; 0 means no timeout. A nil resolver means the system's.
func NewDialer(g *Guard, timeout time.Duration, resolver *net.Resolver) *Dialer {
	return &Dialer{dialer: net.Dialer{Timeout: timeout, Resolver: resolver, Control: g.Control}}
}

// DialContext connects to host:port. It returns an *Error that names the host if the
// first address tried is not allowed and no allowed address answers.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dialer.DialContext(ctx, network, address)
	if err == nil {
		return conn, nil
	}
	refused, ok := errors.AsType[*Error](err)
	if !ok {
		return nil, err
	}
	if host, _, err := net.SplitHostPort(address); err == nil && host != refused.Addr.String() {
		return nil, &Error{Addr: refused.Addr, Host: host}
	}
	return nil, refused
}
