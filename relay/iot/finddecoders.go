package iot

import (
	"cmp"
	"context"

	"github.com/penstock/penstock/relay/account"
)

// DecoderRef names a decoder of an account.
type DecoderRef struct {
	Account account.ID
	ID      string
}

// FoundDecoder is a decoder of a list, and its account.
type FoundDecoder struct {
	Account account.ID
	Decoder
}

// FindDecoders returns a page of the decoders of an account, 0 for all accounts, by
// account and id, and the cursor of the next page, empty on the last one. A limit of 0
// means 100. It returns Invalid for a cursor of another list.
func (s *Service) FindDecoders(ctx context.Context, acct account.ID, cursor string, limit int) ([]FoundDecoder, string, error) {
	limit = cmp.Or(limit, 100)
	from, err := parseDevicePlace(cursor)
	if err != nil {
		return nil, "", err
	}
	found, err := s.store.ScanDecoders(ctx, acct, DecoderRef(from.DeviceRef), limit+1)
	if err != nil || len(found) <= limit {
		return found, "", err
	}
	last := found[limit-1]
	return found[:limit], devicePlace{DeviceRef: DeviceRef{last.Account, last.ID}}.String(), nil
}
