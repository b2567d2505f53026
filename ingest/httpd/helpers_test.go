package httpd

import (
	"context"
	"log/slog"
	"sync"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

func discardLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// store is a token store that counts lookups and can fail, block or panic.
type store struct {
	mu      sync.Mutex
	tokens  map[string]account.Token // by text
	lookups int
	err     error
	block   chan struct{} // lookups return when it is closed; nil does not block
	panics  bool
}

func (s *store) Token(_ context.Context, hash string) (account.Token, error) {
	s.mu.Lock()
	s.lookups++
	block, panics := s.block, s.panics
	token, err := s.find(hash)
	s.mu.Unlock()
	if panics {
		panic("store panicked")
	}
	if block != nil {
		<-block
	}
	return token, err
}

func (s *store) find(hash string) (account.Token, error) {
	if s.err != nil {
		return account.Token{}, s.err
	}
	for text, t := range s.tokens {
		if account.HashToken(text) == hash {
			return t, nil
		}
	}
	return account.Token{}, relay.Errorf(relay.KindNotFound, "no such token")
}

func (s *store) TokenBySource(_ context.Context, source string) (account.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookups++
	if s.err != nil {
		return account.Token{}, s.err
	}
	for _, t := range s.tokens {
		if t.Source == source {
			return t, nil
		}
	}
	return account.Token{}, relay.Errorf(relay.KindNotFound, "no such source")
}

// change calls f while the store is locked.
func (s *store) change(f func(*store)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func newStore() *store {
	return &store{tokens: map[string]account.Token{
		"hook": {Account: 7, Scopes: []account.Scope{account.Webhook}},
		"iot":  {Account: 8, Scopes: account.DefaultScopes()},
	}}
}

// requireAdmin returns a handler that passes requests with the admin token.
func requireAdmin(a *Auth) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if _, err := a.principal(c, Bearer(c)); err != nil {
			return err
		}
		return c.Next()
	}
}
