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
	// ByAccount lists devices by account, then in order of creation.
	ByAccount DeviceOrder = "account"
	// SilentFirst lists devices that were never heard first, then those that have
	// been silent longest.
	SilentFirst DeviceOrder = "silent"
)

// DeviceFilter selects devices of one or all accounts; empty fields select all.
type DeviceFilter struct {
	Account relay.AccountID
	// Text is a part of a device's identifier or name, in any case. Devices of the
	// accounts in Named match as well.
	Text  string
	Named []relay.AccountID
	// Decoder is the id of the device's decoder.
	Decoder string
	// Alarmed selects devices with a raised alarm.
	Alarmed bool
	Order   DeviceOrder
	Limit   int // of the page; 0 means 100
	Cursor  string
}

// Ref names a device, or another record, of an account.
type Ref struct {
	Account relay.AccountID
	ID      string
}

func (r Ref) compare(otherRef Ref) int {
	return cmp.Or(cmp.Compare(r.Account, otherRef.Account), cmp.Compare(r.ID, otherRef.ID))
}

// FoundDevice is a device of a list, and its account.
type FoundDevice struct {
	Account relay.AccountID
	Device
	Alarms int // raised and not cleared
}

// maxRanked is the largest number of devices that one list may order by their silence.
const maxRanked = 200_000

const scanChunk = 1000

// FindDevices returns a page of devices with the time that each was heard, and the
// cursor of the next page, empty on the last one.
//
// It returns Invalid for a cursor of another list, and if more devices match than can
// be ordered by their silence.
func (s *Service) FindDevices(ctx context.Context, f DeviceFilter) ([]FoundDevice, string, error) {
	f.Limit = cmp.Or(f.Limit, 100)
	place, err := parseDevicePlace(f.Cursor)
	if err != nil {
		return nil, "", err
	}
	var page []devicePlace
	if f.Order == SilentFirst {
		page, err = s.silent(ctx, &f, place)
	} else {
		page, err = s.scanned(ctx, &f, place.Ref, f.Limit+1)
	}
	if err != nil {
		return nil, "", err
	}
	cursor := ""
	if len(page) > f.Limit {
		page = page[:f.Limit]
		cursor = page[f.Limit-1].String()
	}
	found, err := s.found(ctx, page, f.Order != SilentFirst)
	return found, cursor, err
}

// scanned returns up to limit of the devices that match, by account and id.
func (s *Service) scanned(ctx context.Context, f *DeviceFilter, ref Ref, limit int) (places []devicePlace, err error) {
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
			if places = append(places, devicePlace{Ref: Ref{d.Account, d.ID}}); len(places) == limit {
				return places, nil
			}
		}
		if len(chunk) < scanChunk {
			return places, nil
		}
		ref = Ref{chunk[len(chunk)-1].Account, chunk[len(chunk)-1].ID}
	}
}

func (s *Service) silent(ctx context.Context, f *DeviceFilter, place devicePlace) ([]devicePlace, error) {
	places, err := s.scanned(ctx, f, Ref{}, maxRanked+1)
	if err != nil {
		return nil, err
	}
	if len(places) > maxRanked {
		return nil, relay.Invalid("order", fmt.Sprintf("More than %d devices match; name an account or search for a text to order them by silence.", maxRanked))
	}
	for i := 0; i < len(places); {
		end := i
		for end < len(places) && end-i < scanChunk && places[end].Account == places[i].Account {
			end++
		}
		if err := s.rank(ctx, places[i:end]); err != nil {
			return nil, err
		}
		i = end
	}
	slices.SortFunc(places, devicePlace.compare)
	if f.Cursor != "" {
		i, same := slices.BinarySearchFunc(places, place, devicePlace.compare)
		if same {
			i++
		}
		places = places[i:]
	}
	return places[:min(len(places), f.Limit+1)], nil
}

func (s *Service) rank(ctx context.Context, places []devicePlace) error {
	heard, err := s.heardLast(ctx, places[0].Account, idsOf(places))
	for i := range places {
		places[i].heard = heard[places[i].ID]
	}
	return err
}

func idsOf(places []devicePlace) []string {
	ids := make([]string, len(places))
	for i := range places {
		ids[i] = places[i].ID
	}
	return ids
}

// found loads the devices of a page. A device that was deleted meanwhile is left out.
func (s *Service) found(ctx context.Context, page []devicePlace, rank bool) ([]FoundDevice, error) {
	found := make([]FoundDevice, 0, len(page))
	if len(page) == 0 {
		return found, nil
	}
	byAccount := make(map[relay.AccountID][]devicePlace)
	refs := make([]Ref, len(page))
	for i, p := range page {
		byAccount[p.Account], refs[i] = append(byAccount[p.Account], p), p.Ref
	}
	alarms, err := s.store.RaisedAlarms(ctx, refs)
	if err != nil {
		return nil, err
	}
	loaded := make(map[Ref]FoundDevice, len(page))
	for acct, places := range byAccount {
		if rank {
			if err := s.rank(ctx, places); err != nil {
				return nil, err
			}
		}
		devices, err := s.DevicesByID(ctx, acct, idsOf(places))
		if err != nil {
			return nil, err
		}
		for _, p := range places {
			if d, ok := devices[p.ID]; ok {
				d.LastSeen = p.heard
				loaded[p.Ref] = FoundDevice{Account: acct, Device: d, Alarms: alarms[p.Ref]}
			}
		}
	}
	for _, ref := range refs {
		if d, ok := loaded[ref]; ok {
			found = append(found, d)
		}
	}
	return found, nil
}

type devicePlace struct {
	heard time.Time
	Ref
}

func (p devicePlace) compare(otherDevicePlace devicePlace) int {
	return cmp.Or(p.heard.Compare(otherDevicePlace.heard), p.Ref.compare(otherDevicePlace.Ref))
}

// String returns the place as a cursor.
func (p devicePlace) String() string {
	var heard int64
	if !p.heard.IsZero() {
		heard = p.heard.UnixNano()
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %s", heard, p.Account, p.ID))
}

// parseDevicePlace reads a cursor; the empty one is the beginning.
func parseDevicePlace(cursor string) (p devicePlace, err error) {
	if cursor == "" {
		return p, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.SplitN(string(b), " ", 3)
	if err == nil && len(parts) == 3 {
		heard, err1 := strconv.ParseInt(parts[0], 10, 64)
		acct, err2 := strconv.ParseInt(parts[1], 10, 64)
		if err1 == nil && err2 == nil {
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
	ref := Ref{acct, id}
	counts, err := s.store.RaisedAlarms(ctx, []Ref{ref})
	return counts[ref], err
}

// recordsAfter selects the records behind one in the order of account and id, of an account,
// 0 for all accounts.
func recordsAfter(acct relay.AccountID, ref Ref) (w db.Where) {
	w.AndSet("account = ?", acct)
	w.And("(account, id) > (?, ?)", ref.Account, ref.ID)
	return w
}

// ScanDevices returns up to limit devices of an account, 0 for all accounts, behind ref in
// the order of account and id; with alarmed set, those with a raised alarm.
func (s *Store) ScanDevices(ctx context.Context, acct relay.AccountID, ref Ref, alarmed bool, limit int) ([]FoundDevice, error) {
	w := recordsAfter(acct, ref)
	if alarmed {
		w.And("EXISTS (SELECT 1 FROM alarm WHERE alarm.account = device.account AND alarm.device = device.id AND alarm.state = 'raised')")
	}
	fields := func(d *FoundDevice) []any { return []any{&d.Account, db.JSON(&d.Device)} }
	return db.Page(ctx, s.db, "devices", "SELECT account, doc FROM device", &w, "account, id", limit, fields)
}

// ScanDecoders returns up to limit decoders of an account, 0 for all accounts, behind ref in
// the order of account and id.
func (s *Store) ScanDecoders(ctx context.Context, acct relay.AccountID, ref Ref, limit int) ([]FoundDecoder, error) {
	w := recordsAfter(acct, ref)
	fields := func(d *FoundDecoder) []any { return []any{&d.Account, db.JSON(&d.Decoder)} }
	return db.Page(ctx, s.db, "decoders", "SELECT account, doc FROM decoder", &w, "account, id", limit, fields)
}

// raisedAlarms has a subquery for each device. In a join, PostgreSQL reads all raised alarms
// first if it estimates that there are none.
const raisedAlarms = `
	SELECT n, (
		SELECT count(*)
		FROM alarm
		WHERE alarm.account = batch.account
		  AND alarm.device = batch.device
		  AND alarm.state = 'raised')
	FROM batch`

// RaisedAlarms counts the raised alarms of devices. It omits devices that have none.
func (s *Store) RaisedAlarms(ctx context.Context, devices []Ref) (map[Ref]int, error) {
	batch := db.BatchOf("account, device", devices, func(d *Ref) []any { return []any{d.Account, d.ID} })
	counts, err := db.Map[int, int](ctx, s.db, "alarms of devices", raisedAlarms, batch)
	raised := make(map[Ref]int, len(counts))
	for n, count := range counts {
		if count > 0 {
			raised[devices[n-1]] = count
		}
	}
	return raised, err
}

// DeviceCount is how many devices an account has, and how many of them are silent.
type DeviceCount struct{ Devices, Silent int }

// CountDevices counts the devices of each account. A device is silent if it was neither
// heard nor created since a time.
func (s *Service) CountDevices(ctx context.Context, since time.Time) (map[relay.AccountID]DeviceCount, error) {
	counts := make(map[relay.AccountID]DeviceCount)
	for ref := (Ref{}); ; {
		chunk, err := s.store.ScanDevices(ctx, 0, ref, false, scanChunk)
		if err != nil {
			return nil, err
		}
		ids := make(map[relay.AccountID][]string)
		for i := range chunk {
			ids[chunk[i].Account] = append(ids[chunk[i].Account], chunk[i].ID)
		}
		heardAt := make(map[Ref]time.Time, len(chunk))
		for acct := range ids {
			heard, err := s.heardLast(ctx, acct, ids[acct])
			if err != nil {
				return nil, err
			}
			for id, t := range heard {
				heardAt[Ref{acct, id}] = t
			}
		}
		for i := range chunk {
			d := &chunk[i]
			count := counts[d.Account]
			count.Devices++
			if heardAt[Ref{d.Account, d.ID}].Before(since) && d.CreatedAt.Before(since) {
				count.Silent++
			}
			counts[d.Account] = count
		}
		if len(chunk) < scanChunk {
			return counts, nil
		}
		last := &chunk[len(chunk)-1]
		ref = Ref{last.Account, last.ID}
	}
}
