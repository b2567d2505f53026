package httpd

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// store is a store of tokens that counts, can be down and can hang.
type store struct {
	mu     sync.Mutex
	tokens map[string]account.Token // by text
	asked  int
	down   error
	hang   chan struct{}
}

func (s *store) Token(_ context.Context, hash string) (account.Token, error) {
	s.mu.Lock()
	s.asked++
	hang := s.hang
	s.mu.Unlock()
	if hang != nil {
		<-hang
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return account.Token{}, s.down
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
	s.asked++
	if s.down != nil {
		return account.Token{}, s.down
	}
	for _, t := range s.tokens {
		if t.Source == source {
			return t, nil
		}
	}
	return account.Token{}, relay.Errorf(relay.KindNotFound, "no such source")
}

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

// ask makes a request and returns status, body and headers.
func ask(t *testing.T, app *fiber.App, r *http.Request) (int, string, http.Header) {
	t.Helper()
	resp, err := app.Test(r, 10_000)
	relaytest.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	relaytest.NoError(t, err)
	return resp.StatusCode, string(b), resp.Header
}

func request(method, target, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}
