package iot

import (
	"cmp"
	"context"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Claim is a devEUI or MAC address that belongs to an account, with the account's device.
type Claim struct {
	Identifier string
	Account    relay.AccountID
	DeviceID   string
}

// Claims returns a page of the claims of all accounts whose identifier begins with
// prefix, by identifier, and the cursor of the next page, empty on the last one. A prefix
// is written in any case, with or without colons, hyphens and blanks.
//
// It returns Invalid for a prefix or a cursor that is not hexadecimal.
func (s *Service) Claims(ctx context.Context, prefix, cursor string, limit int) ([]Claim, string, error) {
	limit = cmp.Or(limit, 100)
	prefix = strings.ToLower(strings.NewReplacer(":", "", "-", "", " ", "").Replace(prefix))
	if !isHex(prefix) {
		return nil, "", relay.Invalid("q", "The q must be the beginning of a device EUI or MAC address.")
	}
	if !isHex(cursor) {
		return nil, "", relay.Invalid("cursor", "This is not a cursor of this list.")
	}
	claims, err := s.store.Claims(ctx, prefix, cursor, limit+1)
	if err != nil || len(claims) <= limit {
		return claims, "", err
	}
	return claims[:limit], claims[limit-1].Identifier, nil
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }

// ReleaseClaim lets the next account that sends a frame with the identifier, or creates
// its device, claim it. The device of the present holder stays with its readings and goes
// on receiving what its account sends, but it does not claim the identifier again: a
// holder that sends on cannot forestall the owner.
//
// It returns NotFound if no account has claimed the identifier.
func (s *Service) ReleaseClaim(ctx context.Context, identifier string) (Claim, error) {
	identifier, _ = NormalizeIdentifier(identifier)
	return s.store.ReleaseClaim(ctx, identifier)
}

func claimFields(c *Claim) []any { return []any{&c.Identifier, &c.Account, &c.DeviceID} }

// Claims lists up to limit claims of all accounts whose identifier begins with prefix and
// comes behind cursor, by identifier. Identifiers have only hexadecimal digits, which stand
// before "g" in every collation.
func (s *Store) Claims(ctx context.Context, prefix, cursor string, limit int) ([]Claim, error) {
	const query = `
		SELECT device_claim.identifier, device_claim.account, device.id
		FROM device_claim
		JOIN device ON device.account = device_claim.account AND device.identifier = device_claim.identifier
		WHERE device_claim.identifier >= $1
		  AND device_claim.identifier < $2
		  AND device_claim.identifier > $3
		ORDER BY device_claim.identifier
		LIMIT $4`
	return db.List(ctx, s.db, "claims", query, claimFields, prefix, prefix+"g", cursor, limit)
}

// ReleaseClaim deletes the claim of an identifier and returns it; its device stays. It
// returns relay.KindNotFound if there is none.
func (s *Store) ReleaseClaim(ctx context.Context, identifier string) (Claim, error) {
	const query = `
		SELECT device_claim.identifier, device_claim.account, device.id
		FROM device_claim
		JOIN device ON device.account = device_claim.account AND device.identifier = device_claim.identifier
		WHERE device_claim.identifier = $1`
	label := "claim " + identifier
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (Claim, error) {
		claim, err := db.One(ctx, tx, label, query, claimFields, identifier)
		if err != nil {
			return claim, err
		}
		// Another gateway may have released it since it was read.
		return claim, db.MustChange(ctx, tx, label, "DELETE FROM device_claim WHERE identifier = $1 AND account = $2", identifier, claim.Account)
	})
}
