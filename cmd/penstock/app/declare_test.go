package app

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

// noCredentials are records without any.
type noCredentials struct{}

var errNone = relay.Errorf(relay.KindNotFound, "none")

func (noCredentials) Token(context.Context, string) (account.Token, error) {
	return account.Token{}, errNone
}

func (noCredentials) TokenBySource(context.Context, string) (account.Token, error) {
	return account.Token{}, errNone
}

func (noCredentials) Login(context.Context, string) (account.Login, error) {
	return account.Login{}, errNone
}

// A sender that an inventory declares is not refused before the inventory is applied.
func TestCredentialsOfAnInventoryThatIsNotAppliedAreUnavailable(t *testing.T) {
	var undeclared atomic.Bool
	c := credentials{noCredentials{}, &undeclared}
	for _, tc := range []struct {
		undeclared bool
		want       relay.Kind
	}{{true, relay.KindUnavailable}, {false, relay.KindNotFound}} {
		undeclared.Store(tc.undeclared)
		_, byText := c.Token(t.Context(), "h")
		_, bySource := c.TokenBySource(t.Context(), "hq")
		_, login := c.Login(t.Context(), "acme")
		for kind, err := range map[string]error{"a token": byText, "a token by its source": bySource, "a login": login} {
			relaytest.Equal(t, kind, relay.KindOf(err), tc.want)
		}
	}
}
