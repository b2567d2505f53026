package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/job"
)

// The kinds of job.
const (
	KindGenerate job.Kind = "token.generate"
	KindClaim    job.Kind = "token.claim"
	KindAnnotate job.Kind = "token.metadata"
)

// Runners returns the runners of the jobs, by kind.
func (s *Service) Runners() map[job.Kind]job.Runner {
	return map[job.Kind]job.Runner{
		KindGenerate: s.runGenerate,
		KindClaim:    s.runClaim,
		KindAnnotate: s.runAnnotate,
	}
}

func (s *Service) newJobID() string { return relay.NewID(s.deps.Now()) }

// sealedInput is the stored form of a job's input, which is sealed because it contains texts of
// tokens.
type sealedInput struct {
	Sealed []byte `json:"sealed"`
}

func (s *Service) submit(ctx context.Context, acct relay.AccountID, id string, kind job.Kind, input any) error {
	plain, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("job %s: encode: %w", id, err)
	}
	sealed, err := s.deps.Vault.Seal(ctx, acct, plain, inputSubject(kind, id))
	if err != nil {
		return err
	}
	b, err := json.Marshal(sealedInput{sealed})
	if err != nil {
		return fmt.Errorf("job %s: encode: %w", id, err)
	}
	return s.deps.Submit.Submit(ctx, job.Job{
		ID: id, Account: acct, Kind: kind, Input: b, CreatedAt: s.deps.Now(), Retention: jobRetention,
	})
}

// inputSubject returns the subject with which the input of a job is sealed. It includes the kind,
// because the input of one kind of job is also valid JSON for another kind.
func inputSubject(kind job.Kind, id string) string { return "job " + id + " " + string(kind) }

func (s *Service) openInput(ctx context.Context, j job.Job, input any) error {
	var sealed sealedInput
	if err := json.Unmarshal(j.Input, &sealed); err != nil {
		return fmt.Errorf("job %s: input: %w", j.ID, err)
	}
	plain, err := s.deps.Vault.Open(ctx, j.Account, sealed.Sealed, inputSubject(j.Kind, j.ID))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(plain, input); err != nil {
		return fmt.Errorf("job %s: input: %w", j.ID, err)
	}
	return nil
}

// Status is the state of a token's job. If the job is completed, either Claims or Token is set.
type Status struct {
	State  job.State
	Error  string // reason for the failure
	Claims []ClaimOutcome
	Token  *Details
}

// Details describes a token in the result of the job that generated or annotated it.
type Details struct {
	Token
	Text       string
	LedgerHash string
	Private    string // the private token, until privateRetention after the request
}

// Job returns the status of a token's job; relay.KindNotFound if the account does not have the job.
func (s *Service) Job(ctx context.Context, acct relay.AccountID, id string) (Status, error) {
	j, err := s.deps.Jobs.Get(ctx, acct, id)
	if err != nil {
		return Status{}, err
	}
	if !strings.HasPrefix(string(j.Kind), "token.") {
		return Status{}, relay.Errorf(relay.KindNotFound, "job %s: not a token job", id)
	}
	st := Status{State: j.State}
	switch j.State {
	case job.Completed:
		err = s.addResult(ctx, j, &st)
	case job.Failed:
		st.Error = j.Error
	}
	return st, err
}

func (s *Service) addResult(ctx context.Context, j job.Job, st *Status) error {
	if j.Kind == KindClaim {
		var input claimInput
		if err := s.openInput(ctx, j, &input); err != nil {
			return err
		}
		var results []ClaimResult
		if err := json.Unmarshal(j.Result, &results); err != nil {
			return fmt.Errorf("job %s: result: %w", j.ID, err)
		}
		st.Claims = outcomes(input.Tokens, results)
		return nil
	}
	var input struct {
		Token string `json:"token"`
	}
	if err := s.openInput(ctx, j, &input); err != nil {
		return err
	}
	t, err := s.token(ctx, j.Account, TokenID(input.Token))
	if err != nil {
		return err
	}
	if t.Appended, err = s.appendedMetadata(ctx, j.Account, t); err != nil {
		return err
	}
	l, err := s.Ledger(ctx, j.Account, t.Ledger)
	if err != nil {
		return err
	}
	st.Token = &Details{Token: t, Text: input.Token, LedgerHash: l.Hash}
	if j.Kind != KindGenerate {
		return nil
	}
	sealed, err := s.deps.Store.Private(ctx, j.Account, j.ID)
	if err != nil { // not found after privateRetention
		return db.IgnoreNotFound(err)
	}
	private, err := s.deps.Vault.Open(ctx, j.Account, sealed, "private token of "+j.ID)
	st.Token.Private = string(private)
	return err
}

type annotation struct {
	Token    string          `json:"token"` // the text
	Metadata json.RawMessage `json:"metadata"`
}

// Annotate creates a job that appends metadata, a JSON object, to a token, and returns the job's id.
//
// It returns relay.KindInvalid if the account does not have the token, the metadata is not an
// object, or the ledger does not store metadata.
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
		return "", relay.Invalid("metadata", "The ledger does not store metadata.")
	}
	if err != nil {
		return "", err
	}
	id := s.newJobID()
	return id, s.submit(ctx, acct, id, KindAnnotate, annotation{Token: text, Metadata: metadata})
}

func (s *Service) runAnnotate(ctx context.Context, j job.Job) (any, error) {
	var input annotation
	if err := s.openInput(ctx, j, &input); err != nil {
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
	if err := s.signPending(ctx, j.Account, t.Ledger); err != nil { // no entry may follow one that cannot be signed
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
		return nil, s.alarmMismatch(err)
	}
	return nil, s.signPending(ctx, j.Account, t.Ledger)
}

// Annotation is metadata that one job appends to one token.
type Annotation struct {
	Token    Token // its Claimed is ignored
	JobID    string
	Metadata []byte // a JSON object
	Entry    []byte

	Authenticator Authenticator
}
