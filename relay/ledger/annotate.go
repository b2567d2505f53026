package ledger

import (
	"context"
	"encoding/json"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
)

type annotation struct {
	Token    string          `json:"token"` // the text
	Metadata json.RawMessage `json:"metadata"`
}

// Annotate has metadata, a JSON object, appended to a token and returns the job
// that does.
//
// It returns Invalid if the token is not the account's, the metadata is no
// object, or the ledger keeps none.
func (s *Service) Annotate(ctx context.Context, acct relay.AccountID, text string, metadata json.RawMessage) (string, error) {
	p := relay.Problems{}
	if text == "" {
		p.Add("token", "The token field is required.")
	}
	if metadata == nil {
		p.Add("metadata", "The metadata field is required.")
	}
	checkObject(p, "metadata", metadata)
	if err := p.Err(); err != nil {
		return "", err
	}
	t, err := s.token(ctx, acct, TokenID(text))
	if relay.KindOf(err) == relay.KindNotFound {
		return "", errInvalidToken()
	}
	if err != nil {
		return "", err
	}
	l, err := s.Ledger(ctx, acct, t.Ledger)
	if relay.KindOf(err) == relay.KindNotFound || err == nil && !l.Metadata {
		return "", relay.Invalid("metadata", "The ledger keeps no metadata.")
	}
	if err != nil {
		return "", err
	}
	id := s.newJobID()
	return id, s.submit(ctx, acct, id, KindAnnotate, annotation{Token: text, Metadata: metadata})
}

// runAnnotate appends the metadata, once for this job.
func (s *Service) runAnnotate(ctx context.Context, j job.Job) (any, error) {
	var input annotation
	if err := s.input(ctx, j, &input); err != nil {
		return nil, err
	}
	t, err := s.token(ctx, j.Account, TokenID(input.Token))
	if err != nil {
		return nil, err
	}
	a, err := s.authenticator(ctx, Place{j.Account, t.Ledger})
	if err != nil {
		return nil, err
	}
	if err := s.signByID(ctx, j.Account, t.Ledger); err != nil { // no entry follows one that cannot be signed
		return nil, err
	}
	metadata, err := canonical(input.Metadata)
	if err != nil {
		return nil, err
	}
	entry, err := newLeaf(Annotated, s.deps.Now(), map[string]any{"token": t.ID, "job": j.ID, "metadata": input.Metadata})
	if err != nil {
		return nil, err
	}
	err = s.deps.Store.Annotate(ctx, j.Account, Annotation{Token: t, JobID: j.ID, Metadata: metadata, Entry: entry, Authenticator: a})
	if err != nil {
		return nil, s.mismatch(err)
	}
	return nil, s.signByID(ctx, j.Account, t.Ledger)
}

// Annotation is metadata that one job appends to one token.
type Annotation struct {
	Token    Token // only what never changes is examined
	JobID    string
	Metadata []byte // a JSON object
	Entry    []byte

	Authenticator Authenticator
}
