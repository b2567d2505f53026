package rule

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// collect adds frames to the batches of rules and sends the batches that are full.
func (s *Service) collect(ctx context.Context, acct relay.AccountID, set *ruleSet, items []Item) error {
	if len(items) == 0 {
		return nil
	}
	full, err := s.deps.Transactions.Collect(ctx, acct, items)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	for _, ref := range full {
		if err := s.sendBatch(ctx, ref, set.programs[ref.RuleID]); err != nil && !errors.Is(err, errLater) {
			return err
		}
	}
	return nil
}

// errLater undoes the transaction that takes a batch, which then waits for another minute.
var errLater = errors.New("the actions of the minute are used up")

// sendBatch sends what a rule has collected, in requests of as many frames as the
// batch counts. It returns errLater if the account's limit of a minute does not allow all of
// them; the others stay collected.
func (s *Service) sendBatch(ctx context.Context, ref BatchRef, p *Program) error {
	if p == nil {
		return nil // it is disabled or deleted: another look is taken when it is due
	}
	for {
		d, b := &pendingDecision{}, s.newBudget(ref.Account)
		created, hasMore, err := s.deps.Transactions.TakeBatch(ctx, ref, p.Rule.Batch, s.o.Now(), s.deps.Deliveries.LeaseUntil(), func(occurrences []Occurrence) ([]outbox.Delivery, error) {
			b.rollback()
			d = &pendingDecision{fired: make([]firing, len(occurrences))}
			for i := range occurrences {
				occurrences[i].Rule = &p.Rule
				d.fired[i] = firing{program: p, Occurrence: occurrences[i]}
			}
			if p.Rule.Batch == (Batch{}) { // it has none any longer
				d.deliver(b)
				return d.decision.Deliveries, nil
			}
			if len(occurrences) == 0 {
				return nil, nil
			}
			deliveries := d.create(b, p, occurrences)
			if b.resetDone {
				return nil, errLater
			}
			return deliveries, nil
		})
		if err != nil {
			b.rollback()
			return fmt.Errorf("batch of rule %s: %w", ref.RuleID, err)
		}
		b.commit(len(created))
		s.conclude(ref.Account, d, created)
		if !hasMore {
			return nil
		}
	}
}

// maxDueBatches is the largest number of batches that a pass sends. It is large because
// batches of accounts at their limit stay due, and must not hide those of others.
const maxDueBatches = 1000

// sendDueBatches sends batches whose first frame has waited for long enough.
func (s *Service) sendDueBatches(ctx context.Context) error {
	due, err := s.deps.Store.DueBatches(ctx, s.o.Now(), maxDueBatches)
	if err != nil {
		return err
	}
	var errs []error
	limited := make(map[relay.AccountID]bool) // accounts that have used up the minute
	for _, ref := range due {
		if limited[ref.Account] {
			continue
		}
		p, err := s.programOf(ctx, ref)
		if err == nil && p != nil {
			err = s.sendBatch(ctx, ref, p)
		}
		if errors.Is(err, errLater) {
			limited[ref.Account] = true
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// programOf compiles the rule of a batch, also of a rule that is disabled: what it has
// collected is sent.
func (s *Service) programOf(ctx context.Context, ref BatchRef) (*Program, error) {
	r, err := s.deps.Store.Rule(ctx, ref.Account, ref.RuleID)
	if errors.Is(err, relay.ErrUnopened) {
		s.failed.add(ref.Account, ref.RuleID, err, s.o.Now())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := Compile(&r)
	if err != nil {
		s.failed.add(ref.Account, r.ID, err, s.o.Now())
		return nil, nil
	}
	return p, nil
}
