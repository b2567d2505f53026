package iot

import (
	"cmp"
	"context"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Ownership is a devEUI or MAC address claimed by an account, with the account's device.
type Ownership struct {
	Identifier string          `json:"identifier"`
	Account    relay.AccountID `json:"account"`
	DeviceID   string          `json:"device_id"`
}

// Ownerships returns a page of the ownerships of all accounts with identifiers that begin with prefix,
// by identifier. It also returns the cursor of the next page, which is empty on the last page. The
// prefix may be in any case and contain colons, hyphens and blanks.
//
// It returns relay.KindInvalid for a prefix or a cursor that is not hexadecimal.
func (s *Service) Ownerships(ctx context.Context, prefix, cursor string, limit int) ([]Ownership, string, error) {
	limit = cmp.Or(limit, 100)
	prefix = strings.ToLower(strings.NewReplacer(":", "", "-", "", " ", "").Replace(prefix))
	if !isHex(prefix) {
		return nil, "", relay.Invalid("q", "The q must be the beginning of a device EUI or MAC address.")
	}
	if !isHex(cursor) {
		return nil, "", relay.Invalid("cursor", "This is not a cursor of this list.")
	}
	ownerships, err := s.store.Ownerships(ctx, prefix, cursor, limit+1)
	if err != nil || len(ownerships) <= limit {
		return ownerships, "", err
	}
	return ownerships[:limit], ownerships[limit-1].Identifier, nil
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }

// ReleaseOwnership deletes the claim of an identifier. The next account that sends a frame with the
// identifier, or creates a device with the identifier, claims it. The device and the readings of the
// former owner stay. The device still gets the frames of its account, but these frames do not claim the identifier
// again.
//
// It returns relay.KindNotFound if no account has claimed the identifier.
func (s *Service) ReleaseOwnership(ctx context.Context, identifier string) (Ownership, error) {
	identifier, _ = NormalizeIdentifier(identifier)
	return s.store.ReleaseOwnership(ctx, identifier)
}

func ownershipFields(o *Ownership) []any { return []any{&o.Identifier, &o.Account, &o.DeviceID} }

// Ownerships lists up to limit ownerships of all accounts with identifiers that begin with prefix and
// come after cursor, by identifier. Identifiers have only hexadecimal digits, which come before "g" in
// each collation.
func (s *Store) Ownerships(ctx context.Context, prefix, cursor string, limit int) ([]Ownership, error) {
	const query = `
		SELECT device_claim.identifier, device_claim.account, device.id
		FROM device_claim
		JOIN device ON device.account = device_claim.account AND device.identifier = device_claim.identifier
		WHERE device_claim.identifier >= $1
		  AND device_claim.identifier < $2
		  AND device_claim.identifier > $3
		ORDER BY device_claim.identifier
		LIMIT $4`
	return db.List(ctx, s.db, "claims", query, ownershipFields, prefix, prefix+"g", cursor, limit)
}

// ReleaseOwnership deletes the ownership of an identifier and returns it. The device stays. It returns
// relay.KindNotFound if there is no such ownership.
func (s *Store) ReleaseOwnership(ctx context.Context, identifier string) (Ownership, error) {
	const query = `
		SELECT device_claim.identifier, device_claim.account, device.id
		FROM device_claim
		JOIN device ON device.account = device_claim.account AND device.identifier = device_claim.identifier
		WHERE device_claim.identifier = $1`
	label := "claim " + identifier
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (Ownership, error) {
		owner, err := db.One(ctx, tx, label, query, ownershipFields, identifier)
		if err != nil {
			return owner, err
		}
		// Another gateway may have released the claim since it was read.
		return owner, db.MustChange(ctx, tx, label, "DELETE FROM device_claim WHERE identifier = $1 AND account = $2", identifier, owner.Account)
	})
}
