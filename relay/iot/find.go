package iot

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// DeviceOrder is the order of a list of devices.
type DeviceOrder string

// The orders of lists of devices.
const (
	// ByAccount lists devices by account and ID.
	ByAccount DeviceOrder = "account"
	// SilentFirst lists devices by the time of their last frame, oldest first. Devices without a
	// frame come first.
	SilentFirst DeviceOrder = "silent"
)

// DeviceFilter selects devices of one or all accounts. Empty fields select all devices.
type DeviceFilter struct {
	Account relay.AccountID
	// Text is a part of a device's identifier or name, in any case. Devices of the accounts in Named
	// match any Text.
	Text    string
	Named   []relay.AccountID
	Decoder string // ID of the device's decoder
	Alarmed bool   // selects devices with a raised alarm
	Order   DeviceOrder
	Limit   int // size of the page; 0 means 100
	Cursor  string
}

// Ref identifies a device or another record of an account.
type Ref struct {
	Account relay.AccountID
	ID      string
}

func (r Ref) compare(otherRef Ref) int {
	return cmp.Or(cmp.Compare(r.Account, otherRef.Account), cmp.Compare(r.ID, otherRef.ID))
}

// FoundDevice is a listed device with its account.
type FoundDevice struct {
	Account relay.AccountID
	Device
	Alarms int // number of raised alarms
}

// maxRanked is the largest number of devices that a list may order by silence.
const maxRanked = 200_000

const scanChunk = 1000

// FindDevices returns a page of devices with the time of their last frame. It also returns the cursor
// of the next page, which is empty on the last page.
//
// It returns relay.KindInvalid for an invalid cursor, and if more than maxRanked devices match with the
// order SilentFirst.
func (s *Service) FindDevices(ctx context.Context, f DeviceFilter) ([]FoundDevice, string, error) {
	f.Limit = cmp.Or(f.Limit, 100)
	start, err := parsePosition(f.Cursor)
	if err != nil {
		return nil, "", err
	}
	var page []position
	if f.Order == SilentFirst {
		page, err = s.scanSilent(ctx, &f, start)
	} else if page, err = s.scan(ctx, &f, start.Ref, f.Limit+1); err == nil {
		err = s.setHeard(ctx, page)
	}
	if err != nil {
		return nil, "", err
	}
	cursor := ""
	if len(page) > f.Limit {
		page = page[:f.Limit]
		cursor = page[f.Limit-1].String()
	}
	refs := make([]Ref, len(page))
	for i := range page {
		refs[i] = page[i].Ref
	}
	devices, err := s.store.DevicesWithAlarms(ctx, refs)
	if err != nil {
		return nil, "", err
	}
	found := make([]FoundDevice, 0, len(page))
	for i, d := range devices {
		if d.ID == "" || f.Alarmed && d.Alarms == 0 { // the device was deleted or changed since the scan
			continue
		}
		d.LastSeen = page[i].heard
		found = append(found, d)
	}
	return found, cursor, nil
}

// scan returns the positions of up to limit matching devices after ref, in the order of account and
// ID.
func (s *Service) scan(ctx context.Context, f *DeviceFilter, ref Ref, limit int) (positions []position, err error) {
	text := strings.ToLower(strings.TrimSpace(f.Text))
	identifier, _ := NormalizeIdentifier(f.Text)
	for {
		chunk, err := s.store.ScanDevices(ctx, f.Account, ref, f.Alarmed, scanChunk)
		if err != nil {
			return nil, err
		}
		for i := range chunk {
			d := &chunk[i]
			if f.Decoder != "" && d.DecoderID != f.Decoder {
				continue
			}
			if f.Text != "" && !slices.Contains(f.Named, d.Account) && d.Identifier != identifier && d.ID != f.Text &&
				!strings.Contains(strings.ToLower(d.Identifier), text) && !strings.Contains(strings.ToLower(d.Name), text) {
				continue
			}
			if positions = append(positions, position{Ref: Ref{d.Account, d.ID}}); len(positions) == limit {
				return positions, nil
			}
		}
		if len(chunk) < scanChunk {
			return positions, nil
		}
		ref = Ref{chunk[len(chunk)-1].Account, chunk[len(chunk)-1].ID}
	}
}

// scanSilent returns the positions of a page of matching devices, longest silent first. If there is a
// next page, it also returns the first position of that page.
func (s *Service) scanSilent(ctx context.Context, f *DeviceFilter, start position) ([]position, error) {
	positions, err := s.scan(ctx, f, Ref{}, maxRanked+1)
	if err != nil {
		return nil, err
	}
	if len(positions) > maxRanked {
		return nil, relay.Invalid("order", fmt.Sprintf("More than %d devices match; name an account or search for a text to order them by silence.", maxRanked))
	}
	for chunk := range slices.Chunk(positions, scanChunk) {
		if err := s.setHeard(ctx, chunk); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(positions, position.compare)
	if f.Cursor != "" {
		i, found := slices.BinarySearchFunc(positions, start, position.compare)
		if found {
			i++
		}
		positions = positions[i:]
	}
	return positions[:min(len(positions), f.Limit+1)], nil
}

// setHeard sets the times of the last frames of devices.
func (s *Service) setHeard(ctx context.Context, positions []position) error {
	ids := make(map[relay.AccountID][]string)
	for _, p := range positions {
		ids[p.Account] = append(ids[p.Account], p.ID)
	}
	heard := make(map[relay.AccountID]map[string]time.Time, len(ids))
	for acct := range ids {
		var err error
		if heard[acct], err = s.lastHeardTimes(ctx, acct, ids[acct]); err != nil {
			return err
		}
	}
	for i := range positions {
		positions[i].heard = heard[positions[i].Account][positions[i].ID]
	}
	return nil
}

// position is the position of a device in a list. heard orders lists by silence.
type position struct {
	heard time.Time
	Ref
}

func (p position) compare(otherPosition position) int {
	return cmp.Or(p.heard.Compare(otherPosition.heard), p.Ref.compare(otherPosition.Ref))
}

// String returns the position as a cursor.
func (p position) String() string {
	var heard int64
	if !p.heard.IsZero() {
		heard = p.heard.UnixNano()
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %s", heard, p.Account, p.ID))
}

// parsePosition parses a cursor. An empty cursor is the beginning of the list.
func parsePosition(cursor string) (p position, err error) {
	if cursor == "" {
		return p, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.SplitN(string(b), " ", 3)
	if err == nil && len(parts) == 3 {
		heard, heardErr := strconv.ParseInt(parts[0], 10, 64)
		acct, acctErr := strconv.ParseInt(parts[1], 10, 64)
		if heardErr == nil && acctErr == nil {
			if heard != 0 {
				p.heard = time.Unix(0, heard).UTC()
			}
			p.Ref = Ref{relay.AccountID(acct), parts[2]}
			return p, nil
		}
	}
	return p, relay.Invalid("cursor", "This is not a cursor of this list.")
}

// RaisedAlarms counts the raised alarms of a device.
func (s *Service) RaisedAlarms(ctx context.Context, acct relay.AccountID, id string) (int, error) {
	devices, err := s.store.DevicesWithAlarms(ctx, []Ref{{acct, id}})
	return devices[0].Alarms, err
}

// recordsAfter selects the records of an account, 0 for all accounts, after ref in the order of account
// and ID.
func recordsAfter(acct relay.AccountID, ref Ref) (conditions db.Where) {
	conditions.AndSet("account = ?", acct)
	conditions.And("(account, id) > (?, ?)", ref.Account, ref.ID)
	return conditions
}

// ScanDevices returns up to limit devices of an account, 0 for all accounts, after ref in the order of
// account and ID. If alarmed is set, it omits devices without a raised alarm.
func (s *Store) ScanDevices(ctx context.Context, acct relay.AccountID, ref Ref, alarmed bool, limit int) ([]FoundDevice, error) {
	w := recordsAfter(acct, ref)
	if alarmed {
		w.And("EXISTS (SELECT 1 FROM alarm WHERE alarm.account = device.account AND alarm.device = device.id AND alarm.state = 'raised')")
	}
	fields := func(d *FoundDevice) []any { return []any{&d.Account, db.JSON(&d.Device)} }
	return db.Page(ctx, s.db, "devices", "SELECT account, doc FROM device", &w, "account, id", limit, fields)
}

// ScanDecoders returns up to limit decoders of an account, 0 for all accounts, after ref in the order of
// account and ID.
func (s *Store) ScanDecoders(ctx context.Context, acct relay.AccountID, ref Ref, limit int) ([]FoundDecoder, error) {
	w := recordsAfter(acct, ref)
	fields := func(d *FoundDecoder) []any { return []any{&d.Account, db.JSON(&d.Decoder)} }
	return db.Page(ctx, s.db, "decoders", "SELECT account, doc FROM decoder", &w, "account, id", limit, fields)
}

// devicesWithAlarms has a subquery for each device. With a join, PostgreSQL would first read all raised
// alarms if it estimates that there are none.
const devicesWithAlarms = `
	SELECT batch.n, device.account, device.doc, (
		SELECT count(*)
		FROM alarm
		WHERE alarm.account = batch.account
		  AND alarm.device = batch.id
		  AND alarm.state = 'raised')
	FROM batch
	JOIN device ON device.account = batch.account AND device.id = batch.id`

// DevicesWithAlarms loads devices and the numbers of their raised alarms. The result for a missing
// device has no ID.
func (s *Store) DevicesWithAlarms(ctx context.Context, refs []Ref) ([]FoundDevice, error) {
	rows := db.BatchOf("account, id", refs, func(r *Ref) []any { return []any{r.Account, r.ID} })
	fields := func(d *FoundDevice) []any { return []any{&d.Account, db.JSON(&d.Device), &d.Alarms} }
	return db.Numbered(ctx, s.db, "devices", devicesWithAlarms, len(refs), fields, rows)
}

// DeviceCount has the number of devices of an account and the number of silent devices among them.
type DeviceCount struct{ Devices, Silent int }

// CountDevices counts the devices of each account. A device is silent if it was neither heard nor
// created at since or later.
func (s *Service) CountDevices(ctx context.Context, since time.Time) (map[relay.AccountID]DeviceCount, error) {
	counts := make(map[relay.AccountID]DeviceCount)
	for ref := (Ref{}); ; {
		chunk, err := s.store.ScanDevices(ctx, 0, ref, false, scanChunk)
		if err != nil {
			return nil, err
		}
		positions := make([]position, len(chunk))
		for i := range chunk {
			ref = Ref{chunk[i].Account, chunk[i].ID}
			positions[i].Ref = ref
		}
		if err := s.setHeard(ctx, positions); err != nil {
			return nil, err
		}
		for i := range chunk {
			d := &chunk[i]
			count := counts[d.Account]
			count.Devices++
			if positions[i].heard.Before(since) && d.CreatedAt.Before(since) {
				count.Silent++
			}
			counts[d.Account] = count
		}
		if len(chunk) < scanChunk {
			return counts, nil
		}
	}
}
