// Package oidc signs users in through an OpenID Connect provider: the authorization code
// flow with PKCE (RFC 7636), state and nonce (OpenID Connect Core 1.0). It is the only
// package that imports go-oidc and oauth2.
//
// A claim of the ID token determines the role. An ID token that is not signed by a key of
// the provider, is for another client, names no subject, has expired or lacks the nonce
// is refused.
package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/user"
)

// Options configures a provider and the meaning of its claims.
type Options struct {
	Issuer, ClientID, ClientSecret string
	// RedirectURL is the URL to which the provider redirects the browser.
	RedirectURL string
	// Scopes are requested in addition to openid.
	Scopes []string
	// NameClaim is the claim that names the user.
	NameClaim string
	// RoleClaim is the claim, a text or a list of texts, whose values give roles.
	RoleClaim string
	// Roles are the values of RoleClaim that give a role. A user with several roles gets the
	// first of admin, operator and viewer.
	Roles map[user.Role][]string
	// AccountClaim is the claim that names the account of a user without any of these
	// roles; empty refuses such users.
	AccountClaim string
	Now          func() time.Time // nil means time.Now
}

// requestTimeout limits each request to the provider.
const requestTimeout = 10 * time.Second

// Provider is an OpenID Connect provider. Its configuration is read at the first sign-in, so
// that a gateway can start while the provider is down. It is safe for concurrent use.
type Provider struct {
	opts   Options
	client *http.Client

	mu     sync.Mutex
	cached *oidc.Provider // nil before its configuration is read
}

// New returns a provider.
func New(o Options) *Provider {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.NameClaim, o.RoleClaim = cmp.Or(o.NameClaim, "preferred_username"), cmp.Or(o.RoleClaim, "groups")
	return &Provider{opts: o, client: &http.Client{Timeout: requestTimeout}}
}

func (p *Provider) provider(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cached != nil {
		return p.cached, nil
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), requestTimeout)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, p.opts.Issuer)
	if err != nil {
		return nil, relay.Errorf(relay.KindUnavailable, "OpenID Connect provider %s: %w", p.opts.Issuer, err)
	}
	p.cached = provider
	return provider, nil
}

func (p *Provider) config(provider *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.opts.ClientID, ClientSecret: p.opts.ClientSecret, Endpoint: provider.Endpoint(), RedirectURL: p.opts.RedirectURL,
		Scopes: append([]string{oidc.ScopeOpenID}, p.opts.Scopes...),
	}
}

// Begin returns a new attempt, and the URL to which the browser must be redirected.
func (p *Provider) Begin(ctx context.Context) (user.Attempt, string, error) {
	provider, err := p.provider(ctx)
	if err != nil {
		return user.Attempt{}, "", err
	}
	a := user.Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	return a, p.config(provider).AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// Finish exchanges the code that the browser received for an ID token and returns the user's
// identity. The error is relay.KindForbidden if the provider refuses the code or the token
// gives no access, and relay.KindUnavailable if the provider does not respond or fails.
func (p *Provider) Finish(ctx context.Context, a user.Attempt, code string) (user.Identity, error) {
	provider, err := p.provider(ctx)
	if err != nil {
		return user.Identity{}, err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), requestTimeout)
	defer cancel()
	tokens, err := p.config(provider).Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		retrieveErr, answered := errors.AsType[*oauth2.RetrieveError](err)
		_, unreachable := errors.AsType[*url.Error](err)
		switch {
		case unreachable, answered && retrieveErr.Response.StatusCode >= 500:
			err = relay.Errorf(relay.KindUnavailable, "OpenID Connect provider: %w", err)
		case answered:
			err = relay.Errorf(relay.KindForbidden, "the provider refused the code: %s", cmp.Or(retrieveErr.ErrorCode, retrieveErr.Response.Status))
		default:
			err = relay.Errorf(relay.KindForbidden, "the provider's answer is refused: %w", err)
		}
		return user.Identity{}, err
	}
	raw, ok := tokens.Extra("id_token").(string)
	if !ok {
		return user.Identity{}, relay.Errorf(relay.KindForbidden, "the provider returned no ID token")
	}
	token, err := provider.VerifierContext(ctx, &oidc.Config{ClientID: p.opts.ClientID, Now: p.opts.Now}).Verify(ctx, raw)
	switch {
	case err != nil && strings.Contains(err.Error(), "fetching keys"): // the library does not wrap the cause
		return user.Identity{}, relay.Errorf(relay.KindUnavailable, "OpenID Connect provider: %w", err)
	case err != nil:
		return user.Identity{}, relay.Errorf(relay.KindForbidden, "the ID token is refused: %w", err)
	}
	if a.Nonce == "" || token.Nonce != a.Nonce {
		return user.Identity{}, relay.Errorf(relay.KindForbidden, "the ID token is refused: it has another nonce")
	}
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return user.Identity{}, relay.Errorf(relay.KindForbidden, "the ID token is refused: %w", err)
	}
	// The library checks only that this client is among the audiences (OpenID Connect Core
	// 1.0, sections 2 and 3.1.3.7).
	problem := ""
	party, present := claims["azp"]
	switch {
	case strings.TrimSpace(token.Subject) == "":
		problem = "it has no subject"
	case present && party != p.opts.ClientID:
		problem = fmt.Sprintf("it is for another client, azp is %q", party)
	case !present && len(token.Audience) > 1:
		problem = "it has several audiences and no azp"
	}
	if problem != "" {
		return user.Identity{}, relay.Errorf(relay.KindForbidden, "the ID token is refused: %s", problem)
	}
	return p.identity(token.Issuer+" "+token.Subject, claims)
}

func (p *Provider) identity(subject string, claims map[string]any) (user.Identity, error) {
	identity := user.Identity{Subject: subject}
	identity.Name, _ = claims[p.opts.NameClaim].(string)
	if verified, present := claims["email_verified"]; p.opts.NameClaim == "email" && present && verified != true && verified != "true" {
		return identity, relay.Errorf(relay.KindForbidden, "the e-mail address %s is not verified", identity.Name)
	}
	roles := texts(claims[p.opts.RoleClaim])
	for _, role := range []user.Role{user.Admin, user.Operator, user.Viewer} {
		if slices.ContainsFunc(p.opts.Roles[role], func(value string) bool { return slices.Contains(roles, value) }) {
			identity.Role = role
			return identity, nil
		}
	}
	if accounts := texts(claims[p.opts.AccountClaim]); p.opts.AccountClaim != "" && len(accounts) == 1 {
		identity.Role, identity.Account = user.Account, accounts[0]
		return identity, nil
	}
	return identity, relay.Errorf(relay.KindForbidden, "the claim %s gives %s no role", p.opts.RoleClaim, identity.Name)
}

// texts returns the values of a claim that is a text, a number or a list of these.
func texts(claim any) []string {
	switch v := claim.(type) {
	case string:
		return []string{v}
	case float64:
		return []string{fmt.Sprintf("%.0f", v)}
	case []any:
		var list []string
		for _, item := range v {
			list = append(list, texts(item)...)
		}
		return list
	}
	return nil
}
