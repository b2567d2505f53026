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

// damageFaults returns faults that damage files of a stopped gateway. The gateway has processed
// everything before, so nothing is lost, and it must log the damage when it starts.
// TestDamageOfEveryFileIsNoticed and TestEmbeddedStoresCatchUp damage the other files, and in
// other ways.
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
				return errors.Join(os.WriteFile(name, text, 0o600), s.startDamaged(ctx, g, filepath.Base(name), "journal: (damaged range skipped|tail truncated)"))
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
			// The restart empties the log, so that the deletion loses no write of the load. The
			// token is a write whose loss the gateway must log.
			g.end(syscall.SIGTERM)
			if err := s.startGateway(ctx, g); err != nil {
				return err
			}
			created, err := request(ctx, s.client, g, http.MethodPost, "/admin/tokens", `{"account":"chaos","scopes":["iot"]}`, "Authorization", "Bearer "+adminToken)
			if err = errors.Join(err, s.read(created, nil)); err != nil {
				return err
			}
			g.end(syscall.SIGKILL)
			return errors.Join(os.Remove(filepath.Join(g.dir, "penstock.db-wal")), s.startDamaged(ctx, g, "penstock.db", "a database has lost its newest writes"))
		})
	}})
}

// startDamaged starts a gateway, which must log a line that contains file and matches pattern.
func (s *site) startDamaged(ctx context.Context, g *gateway, file, pattern string) error {
	if err := s.startGateway(ctx, g); err != nil {
		return err
	}
	log, err := os.ReadFile(g.logFile())
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte(file)) && regexp.MustCompile(pattern).Match(line) {
			return nil
		}
	}
	s.note(fmt.Sprintf("%s did not log the damage of %s", g.name, file))
	return err
}

// pause calls do while the load stands still and a gateway has processed everything that it
// accepted, including quarantined events.
func (s *site) pause(ctx context.Context, g *gateway, do func() error) error {
	if err := servers.UntilEvery(ctx, time.Second, s.settings.settle, "no event to be quarantined", func() bool {
		n, err := s.replay(ctx)
		return err == nil && n == 0
	}); err != nil {
		return err
	}
	s.smsc.kill()
	s.pausing.Lock()
	defer s.pausing.Unlock()
	err := servers.Until(ctx, s.settings.settle, g.name+" to process everything that it accepted", func() bool { return lag(ctx, g) == 0 })
	if err == nil {
		err = do()
	}
	return errors.Join(err, s.smsc.start())
}
