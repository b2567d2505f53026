package sim

import (
	"context"

	"github.com/penstock/penstock/relay/account"
)

// Register makes a subscriber. required names what must be given, see Required.
func (s *Service) Register(ctx context.Context, acct account.ID, who Subscriber, required []string) (Subscriber, error) {
	if err := who.Check(required); err != nil {
		return who, err
	}
	who.ID = s.newID()
	return who, s.Subscribers.Put(ctx, acct, who)
}

// Subscriber returns a subscriber; the refusal NoSubscriber if the account has
// none with the id.
func (s *Service) Subscriber(ctx context.Context, acct account.ID, id string) (Subscriber, error) {
	who, err := s.Subscribers.Get(ctx, acct, id)
	return who, Missing(err, NoSubscriber())
}

// ListSubscribers returns a page of the account's subscribers and how many there
// are.
func (s *Service) ListSubscribers(ctx context.Context, acct account.ID, q Query) ([]Subscriber, int, error) {
	return s.Subscribers.List(ctx, acct, q)
}

// SubscriberSIMs returns a page of a subscriber's SIMs and how many there are.
func (s *Service) SubscriberSIMs(ctx context.Context, acct account.ID, id string, q Query) ([]SIM, int, error) {
	if _, err := s.Subscriber(ctx, acct, id); err != nil {
		return nil, 0, err
	}
	return s.SIMs.List(ctx, acct, Scope{Subscriber: id}, q)
}
