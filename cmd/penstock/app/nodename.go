package app

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/penstock/penstock/relay"
	registry "github.com/penstock/penstock/relay/gateway"
)

// placeOf identifies a data directory: the host, its boot, and the directory's device and
// inode. A process that holds the locks of the journals there is the only one in that place.
func placeOf(dataDir string) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dataDir)
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("%s has no device and inode", dataDir)
	}
	return fmt.Sprintf("%s %s %d:%d", host, strings.TrimSpace(string(boot)), stat.Dev, stat.Ino), nil
}

// registered returns the gateway that is registered under this one's name; ok is false if
// there is none.
func (m *membership) registered(ctx context.Context) (g registry.Gateway, ok bool, err error) {
	gateways, err := m.store.Gateways(ctx)
	for i := range gateways {
		if gateways[i].Node == m.self.Node {
			return gateways[i], true, err
		}
	}
	return g, false, err
}

// checkName stops the gateway for good if another process works under its name: if one
// has registered since this one did, or if the heartbeat of the one that was registered
// before advances while this one watches. It reports whether there is one.
func (m *membership) checkName(ctx context.Context) (taken bool, err error) {
	g, ok, err := m.registered(ctx)
	if err != nil || !ok || g.Facts[registry.Incarnation] == m.self.Facts[registry.Incarnation] {
		return false, err
	}
	if !m.claimed {
		if alive, err := m.watch(ctx, &g); err != nil || !alive {
			return false, err
		}
	}
	m.leave(fmt.Sprintf("another process works as gateway %s, at %s (%s): one of the two data directories is a copy, and events of both "+
		"would have the same ids. Stop one of them; a new gateway starts with an empty data directory", g.Node, g.URL, g.Facts[registry.Place]))
	return true, nil
}

// watch reports whether the heartbeat of a registered gateway advances. A process in the
// same place has ended, since this one has its locks.
func (m *membership) watch(ctx context.Context, g *registry.Gateway) (alive bool, err error) {
	if place := m.self.Facts[registry.Place]; place != "" && place == g.Facts[registry.Place] {
		return false, nil
	}
	if g.SeenAt.Equal(m.endedAt) { // it was watched before
		return false, nil
	}
	m.log.Info("this gateway's name is registered elsewhere; watching whether that process lives", "node", g.Node, "internal_url", g.URL)
	for end := time.Now().Add(m.watchFor); time.Now().Before(end); {
		if !relay.Sleep(ctx, m.watchFor/24) {
			return false, ctx.Err()
		}
		current, ok, err := m.registered(ctx)
		if err != nil {
			return false, err
		}
		if ok && !current.SeenAt.Equal(g.SeenAt) {
			*g = current
			return true, nil
		}
	}
	m.endedAt = g.SeenAt
	return false, nil
}

// leave stops accepting and processing until the process ends.
func (m *membership) leave(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gate.Close()
	m.halted, m.haltedByOther, m.gone = reason, false, true
	for _, intake := range m.intakes {
		intake.Refuse(reason)
	}
	m.log.Error("nothing is accepted or processed any more", "error", reason)
}
