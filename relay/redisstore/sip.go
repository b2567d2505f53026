package redisstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sip"
)

// Trunks keeps where the SIP calls of accounts come from.
type Trunks struct{ db *DB }

// Trunks returns the store of trunks.
func (d *DB) Trunks() *Trunks { return &Trunks{db: d} }

// Trunks returns an account's trunks, in the order of the inventory.
func (s *Trunks) Trunks(ctx context.Context, acct account.ID) ([]sip.Trunk, error) {
	b, err := s.db.rdb.HGet(ctx, keyTrunks(), acct.String()).Bytes()
	if err = wrap("trunks", err); relay.KindOf(err) == relay.KindNotFound {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var list []sip.Trunk
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("trunks: %w", err)
	}
	return list, nil
}

// PutTrunks replaces an account's trunks.
func (s *Trunks) PutTrunks(ctx context.Context, acct account.ID, list []sip.Trunk) error {
	if len(list) == 0 {
		return wrap("trunks", s.db.rdb.HDel(ctx, keyTrunks(), acct.String()).Err())
	}
	return wrap("trunks", setField(ctx, s.db.rdb, keyTrunks(), acct.String(), list))
}
