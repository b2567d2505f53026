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

// damageFaults are bits that flip and files that are cut in the journal of a gateway
// that is stopped and has processed everything: nothing is lost, and the damage is
// said.
func (s *site) damageFaults(random *rand.Rand, pick func() *gateway) []fault {
	damaged := func(pattern string, harm func(text []byte) []byte, said *regexp.Regexp) func(context.Context, time.Duration) error {
		return func(ctx context.Context, _ time.Duration) error {
			g := pick()
			return s.pause(ctx, g, func() error { return s.damage(ctx, g, random, pattern, harm, said) })
		}
	}
	segment := regexp.MustCompile(`journal: (damaged range skipped|tail truncated)`)
	return []fault{
		{"a bit flips in a gateway's journal", damaged("*.segment", func(b []byte) []byte { return flip(b, random) }, segment)},
		{"a gateway's journal is cut", damaged("*.segment", func(b []byte) []byte { return b[:random.IntN(len(b))] }, segment)},
		{"a gateway's checkpoint is damaged", damaged("*.checkpoint", func(b []byte) []byte { return b[:0] }, regexp.MustCompile(`journal: checkpoint unreadable`))},
	}
}

// embeddedFaults damage the write-ahead log of the records of a gateway that is killed. A
// restart empties the log before: what it has then does not come from the load. A token is
// added, so that the log has a write of which the gateway must say that it is lost.
func (s *site) embeddedFaults(random *rand.Rand) []fault {
	lost := regexp.MustCompile(`a database has lost its newest writes`)
	damaged := func(harm func(path string) error) func(context.Context, time.Duration) error {
		return func(ctx context.Context, _ time.Duration) error {
			g := s.gateways[0]
			return s.pause(ctx, g, func() error {
				g.end(syscall.SIGTERM)
				if err := s.startGateway(ctx, g); err != nil {
					return err
				}
				added, err := ask(ctx, s.client, g, http.MethodPost, "/admin/tokens", `{"account":"chaos","scopes":["iot"]}`, "Authorization", "Bearer "+adminToken)
				if err = errors.Join(err, s.read(added, nil)); err != nil {
					return err
				}
				g.end(syscall.SIGKILL)
				if err := harm(filepath.Join(g.dir, "penstock.db-wal")); err != nil {
					return err
				}
				if err := s.startGateway(ctx, g); err != nil {
					return err
				}
				log, err := os.ReadFile(g.output())
				if err == nil && !saysOf(log, "penstock.db", lost) {
					s.note(g.name + " says nothing of writes that its database has lost")
				}
				return err
			})
		}
	}
	return []fault{
		{"a database's log is deleted", damaged(os.Remove)},
		{"a database's log is emptied", damaged(func(path string) error { return os.Truncate(path, 0) })},
		{"a bit flips in a database's log", damaged(func(path string) error {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, flip(text, random), 0o600)
		})},
	}
}

// flip changes a bit of what is not empty at the end of a file.
func flip(b []byte, random *rand.Rand) []byte {
	used := len(bytes.TrimRight(b, "\x00"))
	b[random.IntN(used)] ^= 1 << random.IntN(8)
	return b
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

// damage damages one of the files of a stopped gateway that have something in them.
func (s *site) damage(ctx context.Context, g *gateway, random *rand.Rand, pattern string, harm func(text []byte) []byte, said *regexp.Regexp) error {
	g.end(syscall.SIGTERM)
	names, err := filepath.Glob(filepath.Join(g.dir, "journal", "*", pattern))
	if err != nil {
		return err
	}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if len(bytes.TrimRight(text, "\x00")) == 0 {
			continue
		}
		if err := os.WriteFile(name, harm(text), 0o600); err != nil {
			return err
		}
		if err := s.startGateway(ctx, g); err != nil {
			return err
		}
		if log, err := os.ReadFile(g.output()); err != nil {
			return err
		} else if !saysOf(log, filepath.Base(name), said) {
			s.note(fmt.Sprintf("%s says nothing of damage in %s", g.name, name))
		}
		return nil
	}
	return s.startGateway(ctx, g)
}

// saysOf reports whether a line of a log that names a file says something.
func saysOf(log []byte, file string, said *regexp.Regexp) bool {
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte(file)) && said.Match(line) {
			return true
		}
	}
	return false
}
