package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/durable"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	registry "github.com/penstock/penstock/relay/gateway"
)

// The file with the name of the gateway, and the folder of embedded readings, in the data directory.
const (
	nodeFile    = "node"
	readingsDir = "readings"
)

// readOrCreate returns the text in a file of the data directory. It creates a missing or empty
// file with a random text.
func readOrCreate(dir, name string, length int) (text string, err error) {
	if text, err = readText(dir, name); err != nil || text != "" {
		return text, err
	}
	text = strings.ToLower(rand.Text())[:length]
	if err := durable.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	return text, nil
}

// readOrCreateToken is like readOrCreate for a token. It refuses a token that can be guessed.
func readOrCreateToken(dir, name string) (token string, err error) {
	if token, err = readToken(dir, name); err != nil || token != "" {
		return token, err
	}
	return readOrCreate(dir, name, 26)
}

// readText returns the text in a file of the data directory; empty if the file is missing.
func readText(dir, name string) (text string, err error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("data directory: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// readJSON decodes a file of the data directory into v, unless the file is missing. advice says what to
// do with a damaged file.
func readJSON(path string, v any, advice string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s is damaged: %s: %w", path, advice, err)
	}
	return nil
}

// readToken is like readText for a token. It refuses a token that can be guessed.
func readToken(dir, name string) (token string, err error) {
	if token, err = readText(dir, name); err != nil || token == "" {
		return "", err
	}
	if problem := config.TokenProblem(token); problem != "" {
		return "", fmt.Errorf("%s: %s; write another token to the file, or remove the file to generate a token", filepath.Join(dir, name), problem)
	}
	return token, nil
}

// checkDatabases returns an error if a data directory that is not new lacks the SQLite database of
// the records: SQLite would create a new database.
func checkDatabases(cfg config.Config) error {
	if _, err := os.Stat(filepath.Join(cfg.DataDir, databaseFile)); errors.Is(err, fs.ErrNotExist) {
		return nil // a new data directory
	}
	if path := filepath.Join(cfg.DataDir, db.File); cfg.Database.URL == "" && isMissing(path) {
		return fmt.Errorf("%s is missing or empty, although the gateway was used with a database: "+
			"run `penstock restore` with a backup; to begin with an empty database, run `penstock migrate`; then start the gateway and run `penstock recover`", path)
	}
	return nil
}

// isMissing reports whether a file does not exist or is empty.
func isMissing(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

// dataDirPlace identifies a data directory by the host, its boot, and the directory's device and
// inode. Only one process can work in a place, because the process locks the journals.
func dataDirPlace(dataDir string) (string, error) {
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

// registered returns the gateway that is registered under the name of this gateway; ok is false if
// no gateway is.
func (m *membership) registeredGateway(ctx context.Context) (g registry.Gateway, ok bool, err error) {
	gateways, err := m.store.Gateways(ctx)
	for i := range gateways {
		if gateways[i].Node == m.self.Node {
			return gateways[i], true, err
		}
	}
	return g, false, err
}

// checkName reports whether another process uses the name of this gateway: a process that has
// registered after this process, or that sends heartbeats while this process starts. checkName
// then retires this process.
func (m *membership) checkName(ctx context.Context) (taken bool, err error) {
	g, ok, err := m.registeredGateway(ctx)
	if err != nil || !ok || g.Facts[registry.Incarnation] == m.self.Facts[registry.Incarnation] {
		return false, err
	}
	if !m.claimed {
		if alive, err := m.sendsHeartbeats(ctx, &g); err != nil || !alive {
			return false, err
		}
	}
	m.retire(fmt.Sprintf("another process works as gateway %s, at %s (%s): one of the two data directories is a copy, and events of both "+
		"would have the same ids. Stop one of them; a new gateway starts with an empty data directory", g.Node, g.URL, g.Facts[registry.Place]))
	return true, nil
}

// sendsHeartbeats watches a registered gateway for watchFor and reports whether the gateway sends a
// heartbeat. A process in the same place has ended, because this process holds its locks.
func (m *membership) sendsHeartbeats(ctx context.Context, g *registry.Gateway) (alive bool, err error) {
	if place := m.self.Facts[registry.Place]; place != "" && place == g.Facts[registry.Place] {
		return false, nil
	}
	if g.SeenAt.Equal(m.endedAt) { // an earlier call has found that the process has ended
		return false, nil
	}
	m.log.Info("this gateway's name is registered by another process; watching whether that process sends heartbeats", "node", g.Node, "internal_url", g.URL)
	for end := time.Now().Add(m.watchFor); time.Now().Before(end); {
		if !relay.Sleep(ctx, m.watchFor/24) {
			return false, ctx.Err()
		}
		current, ok, err := m.registeredGateway(ctx)
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

// retire stops accepting and processing for the rest of the process.
func (m *membership) retire(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gate.Close()
	m.haltReason, m.haltedByOther, m.retired = reason, false, true
	for _, intake := range m.intakes {
		intake.Refuse(reason)
	}
	m.log.Error("nothing is accepted or processed any more", "error", reason)
}
