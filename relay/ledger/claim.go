package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
)

// EventClaimed is the type of the event that notifies an account of claims.
const EventClaimed = "token.claimed"

type claimInput struct {
	Tokens []string `json:"tokens"` // the texts of the tokens
}

// ClaimOutcome is the result of the claim of one token.
type ClaimOutcome struct {
	Token   string `json:"token"`
	Claimed bool   `json:"claimed"`
	// Error is the reason why the token was not claimed; nil if it was claimed.
	Error *string `json:"error"`
}

// Claim creates a job that claims tokens, once each, and returns its id. The outcomes are the
// result of the job and are sent to the account's callback URL. The job claims no token if one of
// them has expired or has no claims left.
//
// Claim returns relay.KindInvalid if one of the tokens is not a token of the account, or the
// private token is wrong.
func (s *Service) Claim(ctx context.Context, acct relay.AccountID, token string, tokens []string, private string) (string, error) {
	texts, err := uniqueTokens(token, tokens)
	if err != nil {
		return "", err
	}
	for _, text := range texts {
		if _, err := s.checkCredential(ctx, acct, Credential{Token: text, Private: private}); err != nil {
			return "", err
		}
	}
	id := s.newJobID()
	return id, s.submit(ctx, acct, id, KindClaim, claimInput{Tokens: texts})
}

// runClaim claims all tokens of a job or none. A repeated run claims no token again.
func (s *Service) runClaim(ctx context.Context, j job.Job) (any, error) {
	var input claimInput
	if err := s.openInput(ctx, j, &input); err != nil {
		return nil, err
	}
	requests := make([]Claim, len(input.Tokens))
	var ledgerIDs []string
	for i, text := range input.Tokens {
		t, err := s.token(ctx, j.Account, TokenID(text))
		if err != nil {
			return nil, err
		}
		a, err := s.authenticator(ctx, Place{j.Account, t.Ledger})
		if err != nil {
			return nil, err
		}
		now := s.deps.Now()
		entry := func(number int64) ([]byte, error) {
			return newLeaf(Claimed, now, map[string]any{"token": t.ID, "job": j.ID, "claim": number})
		}
		requests[i] = Claim{Token: t, JobID: j.ID, Now: now, Entry: entry, Authenticator: a}
		if !slices.Contains(ledgerIDs, t.Ledger) {
			ledgerIDs = append(ledgerIDs, t.Ledger)
		}
	}
	for _, id := range ledgerIDs { // no entry may follow an entry that cannot be signed
		if err := s.signPending(ctx, j.Account, id); err != nil {
			return nil, err
		}
	}
	results, err := s.deps.Store.Claim(ctx, j.Account, requests)
	if err != nil {
		return nil, s.alarmMismatch(err)
	}
	for _, id := range ledgerIDs {
		if err := s.signPending(ctx, j.Account, id); err != nil {
			return nil, err
		}
	}
	if s.deps.Events == nil {
		return results, nil
	}
	// The id of the event derives from the job's id, so that the event is sent once.
	return results, s.deps.Events.Notify(ctx, j.Account, outbox.Event{
		ID: "claim-" + j.ID, Type: EventClaimed, CreatedAt: s.deps.Now().UTC(), About: j.ID,
		Data: map[string]any{"job_id": j.ID, "claims": outcomes(input.Tokens, results)},
	})
}

// signPending signs the unsigned entries of a ledger if it is declared.
func (s *Service) signPending(ctx context.Context, acct relay.AccountID, id string) error {
	l, err := s.Ledger(ctx, acct, id)
	if err == nil {
		_, err = s.signEntries(ctx, acct, l)
	}
	if relay.KindOf(err) == relay.KindNotFound {
		return nil
	}
	return err
}

func outcomes(texts []string, results []ClaimResult) []ClaimOutcome {
	list := make([]ClaimOutcome, len(texts))
	for i, text := range texts {
		list[i] = ClaimOutcome{Token: text}
		result := ClaimExhausted
		if i < len(results) {
			result = results[i]
		}
		switch result {
		case ClaimCounted:
			list[i].Claimed = true
		case ClaimExpired:
			list[i].Error = new("The token has expired.")
		case ClaimWithheld:
			list[i].Error = new("Another of the tokens was refused.")
		default:
			list[i].Error = new("The token has no claims left.")
		}
	}
	return list
}

// Claim is one claim of one token by one job.
type Claim struct {
	Token         Token // its Claimed is ignored
	JobID         string
	Now           time.Time
	Entry         func(number int64) ([]byte, error) // returns the entry of the claim with this number
	Authenticator Authenticator
}

// ClaimResult is the result of a claim.
type ClaimResult string

// The results of claims.
const (
	ClaimCounted   ClaimResult = "claimed"
	ClaimExhausted ClaimResult = "exhausted"
	ClaimExpired   ClaimResult = "expired"
	ClaimWithheld  ClaimResult = "withheld" // another claim of the job was refused
)
