package models_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/recordstest"
)

// limits returns the maximum number of claims of each token; 0 means no limit.
func limits() []int64 { return []int64{1, 2, 0} }

func tokenOf(n int) ledger.Token {
	return ledger.Token{ID: fmt.Sprint("token-", n), Ledger: fmt.Sprint("ledger-", n%2), CreatedAt: dbtest.TimeAt(0), Limit: limits()[n]}
}

func authenticatorOf(acct relay.AccountID, n int) ledger.Authenticator {
	a, err := ledger.NewAuthenticator(ledger.Place{Account: acct, Ledger: tokenOf(n).Ledger}, []byte("the signing key"))
	if err != nil {
		panic(err)
	}
	return a
}

// modelTokens is the model of tokens: the generated tokens, and the jobs that have claimed each
// token, in order.
type modelTokens struct {
	generated [3]bool
	jobs      [3][]string
}

func (m *modelTokens) claim(job string, tokens []int) string {
	results, refused := make([]string, len(tokens)), false
	for i, n := range tokens {
		switch limit := limits()[n]; {
		case !m.generated[n]:
			return relay.KindNotFound.String()
		case slices.Contains(m.jobs[n], job):
			results[i] = string(ledger.ClaimCounted)
		case limit > 0 && int64(len(m.jobs[n])) >= limit:
			results[i], refused = string(ledger.ClaimExhausted), true
		default:
			results[i] = string(ledger.ClaimWithheld)
		}
	}
	for i, n := range tokens {
		if !refused && results[i] == string(ledger.ClaimWithheld) {
			m.jobs[n], results[i] = append(m.jobs[n], job), string(ledger.ClaimCounted)
		}
	}
	return strings.Join(results, " ")
}

func (m modelTokens) String() string {
	var b strings.Builder
	for n := range m.generated {
		if m.generated[n] {
			fmt.Fprintf(&b, "token %d: %d claims of %s; ", n, len(m.jobs[n]), strings.Join(m.jobs[n], " "))
		}
	}
	return b.String()
}

func claimModel() machine[modelTokens] {
	return machine[modelTokens]{
		begin: func(context.Context, *recordstest.Records, relay.AccountID) (modelTokens, error) {
			return modelTokens{}, nil
		},
		clone: func(c modelTokens) modelTokens {
			for n := range c.jobs {
				c.jobs[n] = slices.Clone(c.jobs[n])
			}
			return c
		},
		draw: drawClaimOp, read: readClaims, show: modelTokens.String,
	}
}

func drawClaimOp(t *rapid.T, _ modelTokens, acct relay.AccountID, now float64) op[modelTokens] {
	if n := rapid.IntRange(0, 8).Draw(t, "generate"); n < 3 {
		return newOp[modelTokens](
			fmt.Sprint("generate ", n),
			func(c *modelTokens) string { c.generated[n] = true; return "" },
			func(ctx context.Context, r *recordstest.Records) (string, error) {
				return "", r.Ledgers.Generate(ctx, acct, tokenOf(n), []byte("generated"), authenticatorOf(acct, n))
			},
		)
	}
	// The low bits of the number select the tokens, so that a job always claims the same tokens.
	job := rapid.IntRange(1, 7).Draw(t, "tokens") + 8*rapid.IntRange(0, 4).Draw(t, "job")
	var tokens []int
	var claims []ledger.Claim
	id := fmt.Sprint("job-", job)
	for n := range 3 {
		if job&(1<<n) != 0 {
			tokens = append(tokens, n)
			entry := func(number int64) ([]byte, error) { return fmt.Appendf(nil, "%s %d.", id, number), nil }
			claims = append(claims, ledger.Claim{Token: tokenOf(n), JobID: id, Now: dbtest.TimeAt(now), Entry: entry, Authenticator: authenticatorOf(acct, n)})
		}
	}
	return newOp[modelTokens](
		fmt.Sprintf("%s claims %v", id, tokens),
		func(c *modelTokens) string { return c.claim(id, tokens) },
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			results, err := r.Ledgers.Claim(ctx, acct, claims)
			words := make([]string, len(results))
			for i := range results {
				words[i] = string(results[i])
			}
			return kindOf(strings.Join(words, " "), err)
		},
	)
}

// readClaims reads the number of claims of each token and the jobs in its entries.
func readClaims(ctx context.Context, r *recordstest.Records, _ modelTokens, acct relay.AccountID) (string, error) {
	var c modelTokens
	for n := range c.generated {
		t, err := r.Ledgers.Token(ctx, acct, tokenOf(n).ID)
		if relay.KindOf(err) == relay.KindNotFound {
			continue
		}
		if err != nil {
			return "", err
		}
		c.generated[n] = true
		sequences, err := r.Ledgers.EntriesOf(ctx, acct, t.ID)
		if err != nil {
			return "", err
		}
		entries, err := r.Ledgers.Entries(ctx, acct, t.Ledger, sequences)
		if err != nil {
			return "", err
		}
		for i, e := range entries[1:] { // the first is the generation
			job, number, _ := strings.Cut(string(e), " ")
			if number != fmt.Sprintf("%d.", i+1) {
				return "", fmt.Errorf("token %d: entry %d is %q", n, i+1, e)
			}
			c.jobs[n] = append(c.jobs[n], job)
		}
		if t.Claimed != int64(len(c.jobs[n])) {
			return "", fmt.Errorf("token %d: %d claims, %d entries", n, t.Claimed, len(c.jobs[n]))
		}
	}
	return c.String(), nil
}
