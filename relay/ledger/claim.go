package ledger

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
)

// EventClaimed is the type of the event that notifies an account of claims.
const EventClaimed = "token.claimed"

// claims is the input of a job that claims.
type claims struct {
	Tokens []string `json:"tokens"` // their texts
}

// ClaimOutcome is the result of the claim of one token.
type ClaimOutcome struct {
	Token   string `json:"token"`
	Claimed bool   `json:"claimed"`
	// Error says why it was not claimed; nil if it was.
	Error *string `json:"error"`
}

// Claim creates a job that claims tokens, once each, and returns its id. The outcome of
// each is in the job's result and is sent to the account's callback.
//
// It returns Invalid if a token is not the account's or the private token is
// wrong. Nothing is claimed then, nor if one of them has expired or has no claims
// left.
func (s *Service) Claim(ctx context.Context, acct relay.AccountID, first string, more []string, private string) (string, error) {
	texts, err := several(first, more)
	if err != nil {
		return "", err
	}
	for _, text := range texts {
		if _, err := s.known(ctx, acct, Credential{Token: text, Private: private}); err != nil {
			return "", err
		}
	}
	id := s.newJobID()
	return id, s.submit(ctx, acct, id, KindClaim, claims{Tokens: texts})
}

// runClaim claims the tokens, all or none, once for this job.
func (s *Service) runClaim(ctx context.Context, j job.Job) (any, error) {
	var in claims
	if err := s.input(ctx, j, &in); err != nil {
		return nil, err
	}
	all := make([]Claim, len(in.Tokens))
	var touched []string
	for i, text := range in.Tokens {
		t, err := s.token(ctx, j.Account, TokenID(text))
		if err != nil {
			return nil, err
		}
		if all[i], err = s.claimOf(ctx, j, t); err != nil {
			return nil, err
		}
		if !slices.Contains(touched, t.Ledger) {
			touched = append(touched, t.Ledger)
		}
	}
	for _, id := range touched { // no entry follows one that cannot be signed
		if err := s.signByID(ctx, j.Account, id); err != nil {
			return nil, err
		}
	}
	results, err := s.deps.Store.Claim(ctx, j.Account, all)
	if err != nil {
		return nil, s.mismatch(err)
	}
	for _, id := range touched {
		if err := s.signByID(ctx, j.Account, id); err != nil {
			return nil, err
		}
	}
	return results, s.notify(ctx, j, outcomes(in.Tokens, results))
}

func (s *Service) claimOf(ctx context.Context, j job.Job, t Token) (Claim, error) {
	a, err := s.authenticator(ctx, Place{j.Account, t.Ledger})
	if err != nil {
		return Claim{}, err
	}
	now := s.deps.Now()
	// The claim's number is known where it is counted: it replaces this one.
	const number = "-987654321"
	entry, err := newLeaf(Claimed, now, map[string]any{"token": t.ID, "job": j.ID, "claim": json.Number(number)})
	before, after, _ := strings.Cut(string(entry), number)
	return Claim{Token: t, JobID: j.ID, Now: now, Before: before, After: after, Authenticator: a}, err
}

// signByID signs the entries of a ledger unless its declaration is gone.
func (s *Service) signByID(ctx context.Context, acct relay.AccountID, id string) error {
	l, err := s.Ledger(ctx, acct, id)
	if err == nil {
		_, err = s.signEntries(ctx, acct, l)
	}
	if relay.KindOf(err) == relay.KindNotFound {
		return nil
	}
	return err
}

// notify sends the outcomes to the account's callback. The id derives from the job's,
// so that they are sent once.
func (s *Service) notify(ctx context.Context, j job.Job, all []ClaimOutcome) error {
	if s.deps.Events == nil {
		return nil
	}
	return s.deps.Events.Notify(ctx, j.Account, outbox.Event{
		ID: "claim-" + j.ID, Type: EventClaimed, CreatedAt: s.deps.Now().UTC(), About: j.ID,
		Data: map[string]any{"job_id": j.ID, "claims": all},
	})
}

// outcomes puts results into words.
func outcomes(texts []string, results []ClaimResult) []ClaimOutcome {
	all := make([]ClaimOutcome, len(texts))
	for i, text := range texts {
		all[i] = ClaimOutcome{Token: text}
		result := ClaimExhausted
		if i < len(results) {
			result = results[i]
		}
		switch result {
		case ClaimCounted:
			all[i].Claimed = true
		case ClaimExpired:
			all[i].Error = new("The token has expired.")
		case ClaimWithheld:
			all[i].Error = new("Another of the tokens was refused.")
		default:
			all[i].Error = new("The token has no claims left.")
		}
	}
	return all
}
