// Package oidctest runs an OpenID Connect provider for tests: a discovery document, keys,
// an authorization endpoint that authorizes every request, and a token endpoint
// that checks client, code and PKCE and signs ID tokens with RS256.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// The client that is registered at the provider.
const (
	ClientID     = "penstock"
	ClientSecret = "client-secret-0123"
)

// Provider is a provider whose ID tokens a test controls.
type Provider struct {
	URL string // the issuer
	t   testing.TB
	key *rsa.PrivateKey

	mu sync.Mutex
	// claims are added to the next ID tokens. tamper changes the claims of a token before it is
	// signed.
	claims     map[string]any
	tamper     func(claims map[string]any)
	signer     *rsa.PrivateKey
	keysStatus int                   // of answers to requests for the keys; 0 means 200 with the keys
	requests   map[string]url.Values // the queries to the authorization endpoint, by code
}

// Start runs a provider until the test ends.
func Start(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{t: t, key: newKey(t), requests: map[string]url.Values{}}
	p.signer = p.key
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

func newKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// SetClaims sets claims of the next ID tokens. They are added to the standard claims or replace them.
func (p *Provider) SetClaims(claims map[string]any) { p.Tamper(claims, nil) }

// Tamper sets claims of the next ID tokens as SetClaims does. change is called with all claims of a
// token before it is signed.
func (p *Provider) Tamper(claims map[string]any, change func(map[string]any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims, p.tamper = claims, change
}

// FailKeys makes the provider answer requests for its keys with an error status.
func (p *Provider) FailKeys(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keysStatus = status
}

// SignWithAnotherKey makes the provider sign ID tokens with a key that it does not publish.
func (p *Provider) SignWithAnotherKey() {
	key := newKey(p.t)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signer = key
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
	})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	status := p.keysStatus
	p.mu.Unlock()
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	respond(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k1", "n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// authorize redirects the browser back with a code.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	redirect, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" || q.Get("state") == "" {
		http.Error(w, "bad request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.requests[code] = q
	p.mu.Unlock()
	redirect.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
	http.Redirect(w, r, redirect.String(), http.StatusFound)
}

// token exchanges a code once.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	request, found := p.requests[r.FormValue("code")]
	delete(p.requests, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case id != ClientID || secret != ClientSecret:
		respond(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	case !found || encode(sum[:]) != request.Get("code_challenge") || r.FormValue("redirect_uri") != request.Get("redirect_uri"):
		respond(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{
		"iss": p.URL, "aud": ClientID, "sub": "42", "nonce": request.Get("nonce"), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, p.claims)
	if p.tamper != nil {
		p.tamper(claims)
	}
	respond(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "id_token": p.sign(claims)})
}

// sign returns a JSON Web Token (RFC 7519) of the claims.
func (p *Provider) sign(claims map[string]any) string {
	header, _ := json.Marshal(map[string]any{"alg": "RS256", "kid": "k1", "typ": "JWT"})
	payload, _ := json.Marshal(claims)
	text := encode(header) + "." + encode(payload)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.signer, crypto.SHA256, sum[:])
	if err != nil {
		p.t.Error(err)
	}
	return text + "." + encode(signature)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
