package ledger_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/ledger/vault"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestTokenLifecycle(t *testing.T) {
	st := newSite(t)
	d := st.generate("plain", ledger.NewToken{
		Metadata: json.RawMessage(`{"serial":"A<1>","n":1.0}`), PrivateMetadata: json.RawMessage(`{"owner": "O'Hara", "pin": 7}`),
		RedirectURL: "https://example.com/asset?x=1", RedirectMeta: json.RawMessage(`{"id":"7&8","deep":{"a":[1]}}`),
	})
	relaytest.Equal(t, "the length of the token", len(d.Text), 26)
	relaytest.Equal(t, "the private token", d.Private, "")
	relaytest.Equal(t, "the id of the token", d.ID, ledger.TokenID(d.Text))
	relaytest.Equal(t, "the remaining claims", *d.Remaining(), 3)
	relaytest.Equal(t, "the expiry of the token", d.ExpiresAt, st.clock.Now().Add(time.Hour))
	id, err := st.s.Annotate(t.Context(), 1, d.Text, json.RawMessage(`{"serial":"B","place":"yard"}`))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the metadata", fmt.Sprint(st.finished(id).Token.AllMetadata()), "map[n:1.0 place:yard serial:B]")
	for i := range 4 {
		o := st.claim(d.Text, "")
		relaytest.Equal(t, fmt.Sprintf("claim %d: token, whether claimed, whether without error", i),
			[]any{o.Token, o.Claimed, o.Error == nil}, []any{d.Text, i < 3, i < 3})
	}
	var types []string
	h := st.history(ledger.Credential{Token: d.Text})
	for _, e := range h.Data {
		types = append(types, string(e.Type))
	}
	relaytest.Equal(t, "the types of the entries", types, []string{"generated", "metadata", "claimed", "claimed", "claimed"})
	relaytest.Equal(t, "the size of the tree", h.Head.Size, 5)
	if document := documentOf(t, h); strings.Contains(document, d.Text) {
		t.Errorf("the history contains the text of the token %s: %s", d.Text, document)
	}
	redirectURL, err := st.s.RedirectTarget(t.Context(), ledger.Credential{Token: d.Text})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the redirect", redirectURL, `https://example.com/asset?deep=%7B%22a%22%3A%5B1%5D%7D&id=7%268&x=1`)
	if len(st.sent) != 8 {
		t.Fatalf("got %d events, want 8", len(st.sent))
	}
	relaytest.Equal(t, "the id of the second event of the first claim", st.sent[1].ID, st.sent[0].ID)
	relaytest.Equal(t, "the type of the first event", st.sent[0].Type, ledger.EventClaimed)
	st.clock.Advance(time.Hour)
	o := st.claim(d.Text, "")
	relaytest.Equal(t, "the error of an expired token", o.Error, new("The token has expired."))
	relaytest.Equal(t, "whether an expired token is claimed", o.Claimed, false)
	if _, err := st.s.RedirectTarget(t.Context(), ledger.Credential{Token: d.Text}); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Follow with an expired token: error %v, want kind not found", err)
	}
}

// TestAClaimOfSeveralTokensIsAtomic checks that no token is claimed if one is refused.
func TestAClaimOfSeveralTokensIsAtomic(t *testing.T) {
	st := newSite(t)
	expired := st.generate("plain", ledger.NewToken{})
	st.clock.Advance(time.Hour)
	token1, used, token2 := st.generate("plain", ledger.NewToken{}), st.generate("plain", ledger.NewToken{}), st.generate("plain", ledger.NewToken{})
	for range 3 {
		st.claim(used.Text, "")
	}
	countClaims := func(d *ledger.Details) (n int) {
		for _, e := range st.history(ledger.Credential{Token: d.Text}).Data {
			if e.Type == ledger.Claimed {
				n++
			}
		}
		return n
	}
	for name, tc := range map[string]struct {
		tokens []string
		want   string // "claimed" or the error of each token
	}{
		"a token without claims left": {[]string{token1.Text, used.Text, token2.Text},
			"Another of the tokens was refused. The token has no claims left. Another of the tokens was refused."},
		"an expired token": {[]string{token1.Text, expired.Text},
			"Another of the tokens was refused. The token has expired."},
		"valid tokens only": {[]string{token1.Text, token2.Text}, "claimed claimed"},
	} {
		id, err := st.s.Claim(t.Context(), 1, tc.tokens[0], tc.tokens[1:], "")
		relaytest.NoError(t, err)
		var results []string
		for _, o := range st.finished(id).Claims {
			result := "claimed"
			if o.Error != nil {
				result = *o.Error
			}
			results = append(results, result)
		}
		relaytest.Equal(t, name+": the outcomes", strings.Join(results, " "), tc.want)
	}
	relaytest.Equal(t, "the claims of the three tokens", []int{countClaims(token1), countClaims(used), countClaims(token2)}, []int{1, 3, 1})
}

// documentOf returns the JSON of a history as the API sends it.
func documentOf(t *testing.T, h ledger.History) string {
	t.Helper()
	b, err := json.Marshal(h)
	relaytest.NoError(t, err)
	return string(b)
}

func TestUnknownAndForbiddenTokensGetTheSameError(t *testing.T) {
	st := newSite(t)
	d := st.generate("locked", ledger.NewToken{RedirectURL: "https://example.com/"})
	if d.Private == "" {
		t.Fatal("the token has no private token")
	}
	relaytest.Equal(t, "the expiry of the token", d.ExpiresAt, time.Time{})
	relaytest.Equal(t, "the remaining claims", d.Remaining(), nil)
	ctx := t.Context()
	for name, call := range map[string]func(acct int, c ledger.Credential) error{
		"history": func(_ int, c ledger.Credential) error { _, err := st.s.History(ctx, 1, c); return err },
		"claim": func(_ int, c ledger.Credential) error {
			_, err := st.s.Claim(ctx, 1, c.Token, nil, c.Private)
			return err
		},
		"validate": func(_ int, c ledger.Credential) error {
			_, err := st.s.Validate(ctx, 1, ledger.Validation{Token: c.Token, Private: c.Private})
			return err
		},
		"another account's": func(_ int, c ledger.Credential) error {
			_, err := st.s.Validate(ctx, 2, ledger.Validation{Token: c.Token, Private: c.Private})
			if err == nil {
				return fmt.Errorf("the token is valid in account 2")
			}
			return nil
		},
	} {
		relaytest.NoError(t, call(1, ledger.Credential{Token: d.Text, Private: d.Private}))
		if name == "another account's" {
			continue
		}
		texts := map[string]bool{}
		for _, c := range []ledger.Credential{{Token: d.Text}, {Token: d.Text, Private: "x"}, {Token: "unknown", Private: d.Private}, {Token: strings.Repeat("a", 300)}} {
			err := call(1, c)
			texts[fmt.Sprint(err, relay.KindOf(err), relay.FieldsOf(err))] = true
		}
		if len(texts) != 1 || !texts["The given token was invalid. invalid map[token:[The given token was invalid.]]"] {
			t.Errorf("%s: got errors %v, want the same error for each credential", name, texts)
		}
	}
	for _, c := range []ledger.Credential{{Token: d.Text}, {Token: "unknown"}} {
		if _, err := st.s.RedirectTarget(ctx, c); relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("Follow with the token %q without its private token: error %v, want kind not found", c.Token, err)
		}
	}
	redirectURL, err := st.s.RedirectTarget(ctx, ledger.Credential{Token: d.Text, Private: d.Private})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the redirect", redirectURL, "https://example.com/")
}

func TestValidateComparesPrivateMetadata(t *testing.T) {
	st := newSite(t)
	withMetadata := st.generate("plain", ledger.NewToken{PrivateMetadata: json.RawMessage(`{"a":1,"b":"x"}`)})
	withoutMetadata := st.generate("plain", ledger.NewToken{})
	for _, tc := range []struct {
		name, token, metadata string
		valid                 bool
	}{
		{"equal values in another notation", withMetadata.Text, ` { "b" : "\u0078", "a" : 1 } `, true},
		{"different value", withMetadata.Text, `{"a":2,"b":"x"}`, false},
		{"missing field", withMetadata.Text, `{"a":1}`, false},
		{"no private metadata in the request", withMetadata.Text, "", true},
		{"token without private metadata", withoutMetadata.Text, `{}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request := ledger.Validation{Token: tc.token}
			if tc.metadata != "" {
				request.PrivateMetadata = json.RawMessage(tc.metadata)
			}
			got, err := st.s.Validate(t.Context(), 1, request)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "whether the token is valid", got[0].Valid, tc.valid)
		})
	}
	doc, err := db.Value[string](t.Context(), st.db.DB, "test", "SELECT doc FROM ledger_token WHERE account = 1 AND id = $1", withMetadata.ID)
	relaytest.NoError(t, err)
	if strings.Contains(doc, `"b":`) || !strings.Contains(doc, "sealed") {
		t.Errorf("the private metadata is not sealed in the stored token: %s", doc)
	}
	several, err := st.s.Validate(t.Context(), 1, ledger.Validation{Token: withMetadata.Text, Tokens: []string{"unknown", withoutMetadata.Text, withMetadata.Text}})
	relaytest.NoError(t, err)
	var valid []bool
	for _, v := range several {
		valid = append(valid, v.Valid)
	}
	relaytest.Equal(t, "the validity of the tokens", valid, []bool{true, false, true})
	relaytest.Equal(t, "whether the second token is known", several[1].Known, false)
}

// TestAThousandConcurrentClaims claims a token that has three claims in a thousand jobs, each
// of which runs twice: three claims succeed.
func TestAThousandConcurrentClaims(t *testing.T) {
	st := newSite(t)
	d := st.generate("plain", ledger.NewToken{})
	var successCount atomic.Int32
	var wg sync.WaitGroup
	slots := make(chan struct{}, 100)
	for range 1000 {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if st.claim(d.Text, "").Claimed {
				successCount.Add(1)
			}
		})
	}
	wg.Wait()
	h := st.history(ledger.Credential{Token: d.Text})
	relaytest.Equal(t, "the number of successful claims", successCount.Load(), 3)
	relaytest.Equal(t, "the number of entries", len(h.Data), 4)
}

func TestThePrivateTokenIsReturnedForADay(t *testing.T) {
	st := newSite(t)
	id, err := st.s.Generate(t.Context(), 1, "locked", ledger.NewToken{})
	relaytest.NoError(t, err)
	if st.finished(id).Token.Private == "" {
		t.Error("the private token is missing")
	}
	expiresMillis, err := db.Value[int64](t.Context(), st.db.DB, "test", "SELECT expires FROM ledger_sealed WHERE account = 1 AND name = $1", id)
	relaytest.NoError(t, err)
	if ttl := time.UnixMilli(expiresMillis).Sub(st.clock.Now()); ttl > 24*time.Hour || ttl < 24*time.Hour-time.Minute {
		t.Errorf("the private token expires in %s, want 24h", ttl)
	}
	_, err = st.db.DB.Exec(t.Context(), "test", "UPDATE ledger_sealed SET expires = 1 WHERE account = 1 AND name = $1", id)
	relaytest.NoError(t, err)
	d := st.finished(id).Token
	relaytest.Equal(t, "the private token after a day", d.Private, "")
	if d.Text == "" {
		t.Error("the token is missing after a day")
	}
}

func TestCertificatesAreSignedByTheLedger(t *testing.T) {
	st := newSite(t)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	output, err := exec.Command("openssl", "req", "-new", "-newkey", "ed25519", "-nodes", "-keyout", path("k"), "-out", path("r"), "-subj", "/CN=x").CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v", output, err)
	}
	csr, err := os.ReadFile(path("r"))
	relaytest.NoError(t, err)
	d := st.generate("plain", ledger.NewToken{CSR: string(csr)})
	ca, err := st.s.Authority(t.Context(), 1, "plain")
	relaytest.NoError(t, err)
	relaytest.NoError(t, os.WriteFile(path("ca"), []byte(ca), 0o600))
	relaytest.NoError(t, os.WriteFile(path("cert"), []byte(d.Certificate), 0o600))
	if output, err := exec.Command("openssl", "verify", "-x509_strict", "-attime", fmt.Sprint(st.clock.Now().Unix()), "-CAfile", path("ca"), path("cert")).CombinedOutput(); err != nil {
		t.Errorf("%s: %v", output, err)
	}
	text, err := exec.Command("openssl", "x509", "-in", path("cert"), "-noout", "-text").CombinedOutput()
	relaytest.NoError(t, err)
	for _, part := range []string{"Not After : Mar  1 13:00:00 2026", ":token:" + d.ID} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the certificate lacks %q: %s", part, text)
		}
	}
	if _, err := st.s.Authority(t.Context(), 1, "locked"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Authority of a ledger without certificates: error %v, want kind not found", err)
	}
}

func TestInvalidTokenRequestsAreRefusedByField(t *testing.T) {
	st := newSite(t)
	d := st.generate("locked", ledger.NewToken{})
	ctx := t.Context()
	for _, tc := range []struct {
		name string
		call func() error
		want string
	}{
		{"fields of the wrong kind", func() error {
			_, err := st.s.Generate(ctx, 1, "plain", ledger.NewToken{Metadata: json.RawMessage(`[]`), PrivateMetadata: json.RawMessage(`1`), RedirectURL: "javascript:alert(1)", CSR: "x"})
			return err
		}, "csr metadata private_metadata redirect_url"},
		{"metadata longer than the limit", func() error {
			_, err := st.s.Generate(ctx, 1, "plain", ledger.NewToken{Metadata: json.RawMessage(`{"a":"` + strings.Repeat("x", 65<<10) + `"}`)})
			return err
		}, "metadata"},
		{"redirect metadata without a redirect URL", func() error {
			_, err := st.s.Generate(ctx, 1, "plain", ledger.NewToken{RedirectMeta: json.RawMessage(`{}`)})
			return err
		}, "redirect_meta"},
		{"metadata in a ledger without metadata", func() error {
			_, err := st.s.Annotate(ctx, 1, d.Text, json.RawMessage(`{}`))
			return err
		}, "metadata"},
		{"no metadata and no token", func() error { _, err := st.s.Annotate(ctx, 1, "", nil); return err }, "metadata token"},
		{"metadata of an unknown token", func() error { _, err := st.s.Annotate(ctx, 1, "x", json.RawMessage(`{}`)); return err }, "token"},
		{"a claim without a token", func() error { _, err := st.s.Claim(ctx, 1, "", nil, ""); return err }, "token"},
		{"a claim of too many tokens", func() error {
			_, err := st.s.Claim(ctx, 1, "", strings.Split(strings.Repeat("a,", 50)+"b,c,d,e,f,g,h,i,j,k,l", ","), "")
			return err
		}, "token"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.call()
			relaytest.Equal(t, "the fields with problems", strings.Join(slices.Sorted(maps.Keys(relay.FieldsOf(err))), " "), tc.want)
		})
	}
	if _, err := st.s.Generate(ctx, 1, "none", ledger.NewToken{}); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Generate in an unknown ledger: error %v, want kind not found", err)
	}
	if _, err := st.s.Job(ctx, 2, "x"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Job with an unknown id: error %v, want kind not found", err)
	}
}

func TestDataSealedWithAnOldMasterKeyStaysReadable(t *testing.T) {
	st := newSite(t)
	d := st.generate("plain", ledger.NewToken{PrivateMetadata: json.RawMessage(`{"a":1}`)})
	st.masters = append([]string{vault.NewMasterKey()}, st.masters...)
	st.s = st.open()
	st.claim(d.Text, "")
	st.masters = st.masters[:1]
	st.s = st.open()
	got, err := st.s.Validate(t.Context(), 1, ledger.Validation{Token: d.Text, PrivateMetadata: json.RawMessage(`{"a":1}`)})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "whether the private metadata is valid", got[0].Valid, true)
}
