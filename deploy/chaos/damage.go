package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// damageFaults harm files of a gateway that is stopped and has processed everything:
// nothing is lost, and the gateway says so. TestDamageOfEveryFileIsNoticed and
// TestEmbeddedStoresCatchUp harm the other files, and in other ways.
func (s *site) damageFaults(random *rand.Rand, pick func() *gateway) []fault {
	faults := []fault{{"a bit flips in a gateway's journal", func(ctx context.Context, _ time.Duration) error {
		g := pick()
		return s.pause(ctx, g, func() error {
			g.end(syscall.SIGTERM)
			names, _ := filepath.Glob(filepath.Join(g.dir, "journal", "*", "*.segment"))
			random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			for _, name := range names {
				text, err := os.ReadFile(name)
				used := len(bytes.TrimRight(text, "\x00"))
				if err != nil || used == 0 {
					continue
				}
				text[random.IntN(used)] ^= 1 << random.IntN(8)
				return errors.Join(os.WriteFile(name, text, 0o600), s.startHarmed(ctx, g, filepath.Base(name), "journal: (damaged range skipped|tail truncated)"))
			}
			return s.startGateway(ctx, g)
		})
	}}}
	if s.kind.name != onSQLite {
		return faults
	}
	return append(faults, fault{"a database's log is deleted", func(ctx context.Context, _ time.Duration) error {
		g := pick()
		return s.pause(ctx, g, func() error {
			// A restart empties the log: what it has then does not come from the load. A token
			// is added, so that the log has a write of which the gateway must say that it is lost.
			g.end(syscall.SIGTERM)
			if err := s.startGateway(ctx, g); err != nil {
				return err
			}
			added, err := ask(ctx, s.client, g, http.MethodPost, "/admin/tokens", `{"account":"chaos","scopes":["iot"]}`, "Authorization", "Bearer "+adminToken)
			if err = errors.Join(err, s.read(added, nil)); err != nil {
				return err
			}
			g.end(syscall.SIGKILL)
			return errors.Join(os.Remove(filepath.Join(g.dir, "penstock.db-wal")), s.startHarmed(ctx, g, "penstock.db", "a database has lost its newest writes"))
		})
	}})
}

// startHarmed starts a gateway whose log must have a line that names a file and says
// something of it.
func (s *site) startHarmed(ctx context.Context, g *gateway, file, text string) error {
	if err := s.startGateway(ctx, g); err != nil {
		return err
	}
	log, err := os.ReadFile(g.output())
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte(file)) && regexp.MustCompile(text).Match(line) {
			return nil
		}
	}
	s.note(fmt.Sprintf("%s says nothing of what happened to %s", g.name, file))
	return err
}

// pause lets the load stand still, and waits until a gateway has processed what it
// has accepted, also what was quarantined.
func (s *site) pause(ctx context.Context, g *gateway, do func() error) error {
	if err := servers.UntilEvery(ctx, time.Second, s.settings.settle, "nothing to be quarantined", func() bool {
		n, err := s.replay(ctx)
		return err == nil && n == 0
	}); err != nil {
		return err
	}
	s.smsc.kill()
	s.pausing.Lock()
	defer s.pausing.Unlock()
	err := servers.Until(ctx, s.settings.settle, g.name+" to process what it has accepted", func() bool { return lag(ctx, g) == 0 })
	if err == nil {
		err = do()
	}
	return errors.Join(err, s.smsc.start())
}
