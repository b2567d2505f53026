package devices

import (
	"context"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/sqlstore"
)

const (
	scanDecoders      = `SELECT account, doc FROM decoder WHERE (account, id) > ($1, $2) ORDER BY account, id LIMIT $3`
	scanDecodersOfOne = `SELECT account, doc FROM decoder WHERE account = $4 AND (account, id) > ($1, $2) ORDER BY account, id LIMIT $3`
)

// ScanDecoders returns decoders after one, by account and id.
func (s *Store) ScanDecoders(ctx context.Context, acct account.ID, after iot.DecoderRef, limit int) ([]iot.FoundDecoder, error) {
	query, args := scanDecoders, []any{after.Account, after.ID, limit}
	if acct != 0 {
		query, args = scanDecodersOfOne, append(args, acct)
	}
	return sqlstore.List(ctx, s.db, "decoders", query, sqlstore.Into(func(d *iot.FoundDecoder) []any {
		return []any{&d.Account, sqlstore.JSON(&d.Decoder)}
	}), args...)
}
