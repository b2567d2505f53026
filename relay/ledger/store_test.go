package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/ledger/merkle"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestLedgers(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		s := NewStore(open(t))
		testDeclared(t, s)
		testSecrets(t, s)
		testToken(t, s)
		testClaims(t, s)
		testLog(t, s)
		if err := s.Delete(t.Context(), 1, "l1"); relay.KindOf(err) != relay.KindConflict {
			t.Errorf("Delete of a ledger with entries: error %v, want kind conflict", err)
		}
		t.Run("a deleted ledger keeps its hash", func(t *testing.T) { testHashStays(t, NewStore(open(t))) })
		t.Run("a log without entries has a head", func(t *testing.T) { testEmptyLog(t, NewStore(open(t))) })
		t.Run("a claim of several tokens counts for all or none", func(t *testing.T) { testClaimsOfSeveral(t, NewStore(open(t))) })
	})
}

func testHashStays(t *testing.T, s *Store) {
	ctx := t.Context()
	must(t, s.Put(ctx, 1, Ledger{ID: "l", Hash: "first"}))
	must(t, s.Delete(ctx, 1, "l"))
	must(t, s.Put(ctx, 1, Ledger{ID: "l", Hash: "second"}))
	if ledgers, err := s.Ledgers(ctx, 1); err != nil {
		t.Error(err)
	} else if len(ledgers) != 1 {
		t.Errorf("got %d ledgers, want 1", len(ledgers))
	} else {
		relaytest.Equal(t, "the hash of the ledger", ledgers[0].Hash, "first")
	}
}

func testEmptyLog(t *testing.T, s *Store) {
	for _, step := range []struct {
		oldSize int64
		stored  bool
	}{{1, false}, {0, true}} {
		stored, err := s.Extend(t.Context(), 1, "l", step.oldSize, Log{Signed: step.oldSize, Head: "head"}, nil)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "whether the head was stored", stored, step.stored)
	}
	relaytest.Equal(t, "the log", relaytest.Must(s.Log(t.Context(), 1, "l"))(t), Log{Head: "head"})
}

func TestPrivateTokensExpire(t *testing.T) {
	test := func(t *testing.T, o db.Options) {
		now := dbtest.TimeAt(0)
		o.Now = func() time.Time { return now }
		s := NewStore(dbtest.Open(t, o))
		ctx := t.Context()
		for _, job := range []string{"j1", "j1", "j2"} { // the first job runs twice
			must(t, s.SetPrivate(ctx, 1, job, []byte("p"), time.Hour))
		}
		_, err := s.KeepSecret(ctx, 1, "signer", []byte("s"))
		must(t, err)
		now = now.Add(time.Hour)
		if _, err := s.Private(ctx, 1, "j1"); relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("Private after the expiry: error %v, want kind not found", err)
		}
		must(t, s.SetPrivate(ctx, 1, "j2", []byte("new"), time.Hour))
		must(t, s.Sweep(ctx, now))
		rows, err := db.Values[string](ctx, s.db, "test", "SELECT kind || name FROM ledger_sealed ORDER BY kind, name")
		if err != nil || !slices.Equal(rows, []string{"privatej2", "secretsigner"}) {
			t.Errorf("stored rows %q, error %v; want privatej2 and secretsigner", rows, err)
		}
	}
	t.Run("on SQLite", func(t *testing.T) { test(t, db.Options{}) })
	t.Run("on PostgreSQL", func(t *testing.T) { test(t, db.Options{URL: dbtest.Shared(t).NewDatabase(t)}) })
}

// TestAChangedRowOfAKeyIsAnError changes the rows of keys, as an attacker who can write the
// database may. A changed row is not treated as missing, which would create a new key, and
// is not swept.
func TestAChangedRowOfAKeyIsAnError(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		s, ctx := NewStore(open(t)), t.Context()
		must(t, s.PutKeyset(ctx, 0, nil, []byte("k")))
		_, err := s.KeepSecret(ctx, 1, "signer l", []byte("s"))
		must(t, err)
		for _, tc := range []struct{ change, fault string }{
			{"expires = 1", "expires is 1, set it to 0"},
			{"expires = 0, sealed = CAST('' AS {bytea})", "sealed is empty, restore it from a backup"},
		} {
			must(t, s.db.Run(ctx, "test", "UPDATE ledger_sealed SET "+tc.change))
			must(t, s.Sweep(ctx, dbtest.TimeAt(1)))
			_, keysetErr := s.Keyset(ctx, 0)
			_, secretErr := s.Secret(ctx, 1, "signer l")
			for _, result := range []struct {
				err error
				row string
			}{
				{keysetErr, "account 0, kind 'keyset' and name ''"},
				{secretErr, "account 1, kind 'secret' and name 'signer l'"},
			} {
				if text := fmt.Sprint(result.err); !strings.Contains(text, result.row+" was changed: "+tc.fault) {
					t.Errorf("%s: error %q, want %q", tc.change, text, result.row+" was changed: "+tc.fault)
				}
			}
		}
	})
}

// TestTwoGateways lets two gateways claim, annotate and seal at the same time.
func TestTwoGateways(t *testing.T) {
	gateways := dbtest.TwoGateways(t, NewStore)
	ctx := t.Context()
	tokens := make([]Token, 3)
	for i := range tokens {
		tokens[i] = Token{ID: fmt.Sprint("t", i), Ledger: "l", Limit: 10}
	}
	var claimCount, headCount atomic.Int32
	dbtest.RunConcurrently(120, func(i int) {
		s, tok := gateways[i%2], tokens[i/2%3]
		must(t, s.generateOne(ctx, tok, []byte("generated")))
		r, err := s.claimOne(ctx, 1, Claim{Token: tok, JobID: fmt.Sprint("c", i/6), Now: dbtest.TimeAt(0)}) // each job runs on both gateways
		must(t, err)
		if r == ClaimCounted {
			claimCount.Add(1)
		}
		must(t, s.Annotate(ctx, 1, Annotation{Authenticator: authenticator(tok), Token: tok, JobID: fmt.Sprint("m", i/6), Metadata: []byte("{}"), Entry: []byte("m")}))
		stored, err := s.Extend(ctx, 1, "l", 0, Log{Signed: 1, Head: "head"}, []merkle.Hash{{1}})
		must(t, err)
		if stored {
			headCount.Add(1)
		}
	})
	// Each token is claimed by 20 jobs, of which 10 count, on both gateways.
	if claimCount.Load() != 3*10*2 || headCount.Load() != 1 {
		t.Errorf("%d claims counted and %d heads stored, want 60 and 1", claimCount.Load(), headCount.Load())
	}
	log, err := gateways[0].Log(ctx, 1, "l")
	if want := int64(3 + 3*10 + 3*20); err != nil || log.Entries != want {
		t.Errorf("log = %+v, error %v; want %d entries", log, err, want)
	}
	for _, tok := range tokens {
		if got, err := gateways[1].Token(ctx, 1, tok.ID); err != nil || got.Claimed != 10 {
			t.Errorf("token %s: %d claims, error %v; want 10", tok.ID, got.Claimed, err)
		}
		if got, err := gateways[1].Annotations(ctx, 1, tok.ID); err != nil || len(got) != 20 {
			t.Errorf("token %s: %d annotations, error %v; want 20", tok.ID, len(got), err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func testDeclared(t *testing.T, s *Store) {
	ctx := t.Context()
	l := Ledger{ID: "l1", Name: "Assets", Hash: "first", Claims: 3, Expiry: time.Hour, Metadata: true}
	for _, hash := range []string{"first", "second"} { // a ledger keeps its hash
		l.Hash = hash
		if err := s.Put(ctx, 1, l); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(ctx, 1, Ledger{ID: "a", Name: "Another", Hash: "h"}); err != nil {
		t.Fatal(err)
	}
	l.Hash = "first"
	got, err := s.Ledgers(ctx, 1)
	relaytest.NoError(t, err)
	if len(got) != 2 {
		t.Fatalf("got %d ledgers, want 2", len(got))
	}
	relaytest.Equal(t, "the id of the first ledger", got[0].ID, "a")
	relaytest.Equal(t, "the second ledger", got[1], l)
	relaytest.Equal(t, "the number of ledgers of another account", len(relaytest.Must(s.Ledgers(ctx, 2))(t)), 0)
	if err := s.Delete(ctx, 1, "a"); err != nil {
		t.Error(err)
	}
	if err := s.Delete(ctx, 1, "a"); relay.KindOf(err) != relay.KindNotFound {
		t.Error(err)
	}
}

func testSecrets(t *testing.T, s *Store) {
	ctx := t.Context()
	if _, err := s.Keyset(ctx, 1); relay.KindOf(err) != relay.KindNotFound {
		t.Error(err)
	}
	for _, step := range []struct {
		oldKeyset, newKeyset string
		stored               bool
	}{{"", "one", true}, {"", "two", false}, {"x", "two", false}, {"one", "two\x00\xff", true}} {
		err := s.PutKeyset(ctx, 1, []byte(step.oldKeyset), []byte(step.newKeyset))
		if (err == nil) != step.stored || err != nil && relay.KindOf(err) != relay.KindConflict {
			t.Errorf("%+v: %v", step, err)
		}
	}
	if b, err := s.Keyset(ctx, 1); err != nil || string(b) != "two\x00\xff" {
		t.Errorf("keyset = %q, error %v", b, err)
	}
	for _, text := range []string{"first", "second"} {
		if b, err := s.KeepSecret(ctx, 1, "signer", []byte(text)); err != nil || string(b) != "first" {
			t.Errorf("secret = %q, error %v; want first", b, err)
		}
	}
	if err := s.SetPrivate(ctx, 1, "j", []byte("p"), time.Hour); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Private(ctx, 1, "j"); err != nil || string(b) != "p" {
		t.Errorf("private token = %q, error %v; want p", b, err)
	}
	if _, err := s.Private(ctx, 2, "j"); relay.KindOf(err) != relay.KindNotFound {
		t.Error(err)
	}
	if _, err := s.AccountOf(ctx, "t"); relay.KindOf(err) != relay.KindNotFound {
		t.Error(err)
	}
	if err := s.SetAccount(ctx, "t", 1<<40); err != nil {
		t.Fatal(err)
	}
	relaytest.Equal(t, "the account of the token", relaytest.Must(s.AccountOf(ctx, "t"))(t), 1<<40)
}

func testToken(t *testing.T, s *Store) {
	ctx := t.Context()
	tok := Token{
		ID: "t", Ledger: "l1", CreatedAt: dbtest.TimeAt(0), ExpiresAt: dbtest.TimeAt(100), Limit: 3, PrivateID: "p", Metadata: []byte(`{"a":"<é>"}`),
		Sealed: []byte{0, 255}, Certificate: "-----\n", RedirectURL: "https://example.com/?a=1&b=2", RedirectMeta: []byte(`{"x":1}`),
	}
	for range 2 {
		if err := s.generateOne(ctx, tok, []byte("generated t")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := s.Annotate(ctx, 1, Annotation{Authenticator: authenticator(tok), Token: tok, JobID: "m1", Metadata: []byte(`{"b":2}`), Entry: []byte("m1")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Annotate(ctx, 1, Annotation{Authenticator: authenticator(tok), Token: tok, JobID: "m2", Metadata: []byte(`{"b":3}`), Entry: []byte("m2")}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Annotations(ctx, 1, "t"); err != nil || len(got) != 2 || string(got[0].Bytes) != "m1" || string(got[1].Bytes) != "m2" {
		t.Errorf("annotations = %+v, error %v; want m1 and m2", got, err)
	}
	relaytest.Equal(t, "the stored token", relaytest.Must(s.Token(ctx, 1, "t"))(t), tok)
	if _, err := s.Token(ctx, 2, "t"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Token in another account: error %v, want kind not found", err)
	}
	if err := s.Annotate(ctx, 2, Annotation{Authenticator: authenticator(tok), Token: tok, JobID: "m3"}); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Annotate in another account: error %v, want kind not found", err)
	}
}

func testClaims(t *testing.T, s *Store) {
	ctx := t.Context()
	tok, err := s.Token(ctx, 1, "t")
	if err != nil {
		t.Fatal(err)
	}
	var claimCount atomic.Int32
	dbtest.RunConcurrently(100, func(i int) {
		for range 2 { // each job runs twice, with the same result
			r, err := s.claimOne(ctx, 1, Claim{Token: tok, JobID: fmt.Sprint("j", i), Now: dbtest.TimeAt(1)})
			if err != nil {
				t.Error(err)
			}
			if r == ClaimCounted {
				claimCount.Add(1)
			}
		}
	})
	if claimCount.Load() != 2*3 {
		t.Errorf("%d of 100 jobs claimed a token with 3 claims, want 3", claimCount.Load()/2)
	}
	relaytest.Equal(t, "the result of an expired claim", relaytest.Must(s.claimOne(ctx, 1, Claim{Token: tok, JobID: "late", Now: dbtest.TimeAt(100)}))(t), ClaimExpired)
	relaytest.Equal(t, "the claims of the token", relaytest.Must(s.Token(ctx, 1, "t"))(t).Claimed, 3)
	if _, err := s.claimOne(ctx, 2, Claim{Token: tok, JobID: "x"}); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Claim in another account: error %v, want kind not found", err)
	}
	got, err := s.Entries(ctx, 1, "l1", []int64{0, 1, 2, 3, 4, 5, 6})
	if err != nil || strings.TrimSpace(fmt.Sprintf("%s", got)) != "[generated t m1 m2 <1> <2> <3> ]" || got[6] != nil {
		t.Errorf("entries = %s, error %v", got, err)
	}
	relaytest.Equal(t, "the entries of the token", relaytest.Must(s.EntriesOf(ctx, 1, "t"))(t), []int64{0, 1, 2, 3, 4, 5})
}

// testClaimsOfSeveral has concurrent jobs claim the same tokens of two ledgers in both orders.
func testClaimsOfSeveral(t *testing.T, s *Store) {
	ctx := t.Context()
	tokens := []Token{
		{ID: "a", Ledger: "l2", Limit: 3, CreatedAt: dbtest.TimeAt(0)}, {ID: "b", Ledger: "l1", Limit: 5, CreatedAt: dbtest.TimeAt(0)},
	}
	for _, tok := range tokens {
		must(t, s.generateOne(ctx, tok, []byte("generated")))
	}
	var bothCount atomic.Int32
	dbtest.RunConcurrently(20, func(i int) {
		claims := make([]Claim, 2)
		for n := range claims {
			claims[n] = Claim{Authenticator: authenticator(tokens[(i+n)%2]), Token: tokens[(i+n)%2], JobID: fmt.Sprint("j", i), Now: dbtest.TimeAt(1), Entry: numbered}
		}
		first, err := s.Claim(ctx, 1, claims)
		second, err2 := s.Claim(ctx, 1, claims)
		if err != nil || err2 != nil || !slices.Equal(first, second) {
			t.Errorf("first run: %v, error %v; second run: %v, error %v", first, err, second, err2)
			return
		}
		if first[0] == ClaimCounted && first[1] == ClaimCounted {
			bothCount.Add(1)
		} else if a, b := first[i%2], first[1-i%2]; a != ClaimExhausted || b != ClaimWithheld {
			t.Errorf("results of a and b = %s and %s, want %s and %s", a, b, ClaimExhausted, ClaimWithheld)
		}
	})
	if bothCount.Load() != 3 {
		t.Errorf("%d jobs claimed both tokens, want 3", bothCount.Load())
	}
	for _, tok := range tokens {
		relaytest.Equal(t, "the claims of the token", relaytest.Must(s.Token(ctx, 1, tok.ID))(t).Claimed, 3)
	}
}

func testLog(t *testing.T, s *Store) {
	ctx := t.Context()
	relaytest.Equal(t, "the log", relaytest.Must(s.Log(ctx, 1, "l1"))(t), Log{Entries: 6})
	hashes := []merkle.Hash{{1, 0, 255}, {2}, {3}} // the stored hashes of two entries
	for _, step := range []struct {
		oldSize int64
		newSize int64
		stored  bool
	}{{1, 2, false}, {0, 2, true}, {0, 2, false}, {2, 4, true}} {
		stored, err := s.Extend(ctx, 1, "l1", step.oldSize, Log{Signed: step.newSize, Head: fmt.Sprint("head ", step.newSize)}, hashes)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "whether the head was stored", stored, step.stored)
	}
	relaytest.Equal(t, "the log", relaytest.Must(s.Log(ctx, 1, "l1"))(t), Log{Entries: 6, Signed: 4, Head: "head 4"})
	relaytest.Equal(t, "the hashes", relaytest.Must(s.Hashes(ctx, 1, "l1", []int64{0, 2, 3, 5, 9}))(t), []merkle.Hash{{1, 0, 255}, {3}, {1, 0, 255}, {3}, {}})
}

// TestStandings tests the rows that verification and validation read.
func TestStandings(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		s, ctx := NewStore(open(t)), t.Context()
		must(t, s.Put(ctx, 1, Ledger{ID: "l", Hash: "h"}))
		for _, id := range []string{"a", "b", "c"} {
			must(t, s.generateOne(ctx, Token{ID: id, Ledger: "l"}, []byte("generated "+id)))
		}
		must(t, s.SetAccount(ctx, "b", 7))
		for i, id := range []string{"b", "a", "b"} {
			_, err := s.claimOne(ctx, 1, Claim{Token: Token{ID: id, Ledger: "l"}, JobID: fmt.Sprint("j", i)})
			must(t, err)
		}
		must(t, s.Annotate(ctx, 1, Annotation{Authenticator: authenticator(Token{ID: "b", Ledger: "l"}), Token: Token{ID: "b", Ledger: "l"}, JobID: "m", Metadata: []byte("{}"), Entry: []byte("m")}))
		got, err := s.Standing(ctx, 1, "b")
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the claims of the token", got.Token.Claimed, 2)
		relaytest.Equal(t, "the generation, the last entry and the number of entries",
			fmt.Sprintf("%d %s %d %s %d", got.Generation.Sequence, got.Generation.Bytes, got.Chain.Last.Sequence, got.Chain.Last.Bytes, got.Chain.Entries), "1 generated b 6 m 4")
		if got, err := s.Standing(ctx, 1, "c"); err != nil {
			t.Error(err)
		} else {
			relaytest.Equal(t, "the last entry of a token without events", got.Chain.Last, got.Generation)
		}
		if _, err := s.Standing(ctx, 2, "b"); relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("Standing in another account: error %v, want kind not found", err)
		}
		page, err := s.Standings(ctx, 1, "a", 2)
		relaytest.NoError(t, err)
		var tokens []string
		for _, st := range page {
			tokens = append(tokens, fmt.Sprint(st.ID, " ", st.Token.Claimed, " ", st.Account))
		}
		relaytest.Equal(t, "tokens, claims and home accounts of the page", tokens, []string{"b 2 7", "c 0 0"})
		rows, err := s.Rows(ctx, 1, "l", 5, 9)
		relaytest.NoError(t, err)
		if len(rows) != 2 {
			t.Fatalf("got %d rows, want 2", len(rows))
		}
		relaytest.Equal(t, "the second row", rows[1], got.Chain.Last)
		relaytest.Equal(t, "the previous MAC of the second row", rows[1].Previous, rows[0].MAC)
		rows[0].MAC, rows[0].Previous = nil, nil
		relaytest.Equal(t, "the first row", rows[0], Row{Sequence: 5, Token: "b", Job: "j2", Position: 2, Claims: 2, Bytes: []byte("<2>")})
		_, err = s.Extend(ctx, 2, "gone", 0, Log{Head: "head", SealedHead: "sealed"}, nil)
		must(t, err)
		logs, err := s.Logs(ctx)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the logs", logs, []PlacedLog{
			{Place: Place{Account: 1, Ledger: "l"}, Hash: "h", Declaration: Ledger{ID: "l"}, Log: Log{Entries: 7}},
			{Place: Place{Account: 2, Ledger: "gone"}, Log: Log{Head: "head", SealedHead: "sealed"}},
		})
	})
}

// TestAChangedChainIsNotExtended changes the stored entries of a token, as an attacker who
// can write the database may, before jobs append entries.
func TestAChangedChainIsNotExtended(t *testing.T) {
	for name, change := range map[string]string{
		"the counter is lowered":        "UPDATE ledger_token SET claimed = 1",
		"an entry is removed":           "DELETE FROM ledger_entry WHERE sequence = 1",
		"the last claim is changed":     "UPDATE ledger_entry SET claims = 1 WHERE sequence = 2",
		"the job of a claim is changed": "UPDATE ledger_entry SET job = 'j9' WHERE sequence = 2",
		"a claim of the job is added":   "INSERT INTO ledger_entry SELECT account, ledger, 3, token, 'new', metadata, entry, position + 1, claims, mac FROM ledger_entry WHERE sequence = 2",
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
				s, ctx := NewStore(open(t)), t.Context()
				tok := Token{ID: "t", Ledger: "l"}
				must(t, s.generateOne(ctx, tok, []byte("generated")))
				for _, job := range []string{"j1", "j2"} {
					_, err := s.claimOne(ctx, 1, Claim{Token: tok, JobID: job})
					must(t, err)
				}
				must(t, s.db.Run(ctx, "test", change))
				entries := relaytest.Must(s.EntriesOf(ctx, 1, "t"))(t)
				_, claimed := s.claimOne(ctx, 1, Claim{Token: tok, JobID: "new"})
				annotated := s.Annotate(ctx, 1, Annotation{Authenticator: authenticator(tok), Token: tok, JobID: "new", Metadata: []byte("{}"), Entry: []byte("m")})
				must(t, s.db.Run(ctx, "test", "DELETE FROM ledger_token"))
				generated := s.generateOne(ctx, tok, []byte("generated"))
				for _, err := range []error{claimed, annotated, generated} {
					if _, ok := errors.AsType[*Mismatch](err); !ok {
						t.Errorf("got error %v, want a *Mismatch", err)
					}
				}
				relaytest.Equal(t, "the entries", relaytest.Must(s.EntriesOf(ctx, 1, "t"))(t), entries)
			})
		})
	}
}

// claimOne claims a single token.
func (s *Store) claimOne(ctx context.Context, acct relay.AccountID, c Claim) (ClaimResult, error) {
	c.Authenticator, c.Entry = authenticator(c.Token), numbered
	results, err := s.Claim(ctx, acct, []Claim{c})
	if err != nil {
		return "", err
	}
	return results[0], nil
}

// authenticator returns the authenticator for the ledger of t in account 1.
func authenticator(t Token) Authenticator {
	a, err := NewAuthenticator(Place{Account: 1, Ledger: t.Ledger}, []byte("the signing key"))
	if err != nil {
		panic(err)
	}
	return a
}

func (s *Store) generateOne(ctx context.Context, t Token, entry []byte) error {
	return s.Generate(ctx, 1, t, entry, authenticator(t))
}

// numbered returns the entry of the claim with a number.
func numbered(number int64) ([]byte, error) { return fmt.Appendf(nil, "<%d>", number), nil }
