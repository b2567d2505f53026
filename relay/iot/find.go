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
)

// DeviceOrder is how a list of devices is ordered.
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

// matches reports whether a device is selected. What SQL selects is not looked at
// again.
func (f *DeviceFilter) matches(acct relay.AccountID, d *Device) bool {
	if f.Decoder != "" && d.DecoderID != f.Decoder {
		return false
	}
	if f.Text == "" || slices.Contains(f.Named, acct) {
		return true
	}
	text := strings.ToLower(strings.TrimSpace(f.Text))
	normal, _ := NormalizeIdentifier(f.Text)
	return strings.Contains(strings.ToLower(d.Identifier), text) || strings.Contains(strings.ToLower(d.Name), text) || d.Identifier == normal || d.ID == f.Text
}

// Ref names a device, or another record, of an account.
type Ref struct {
	Account relay.AccountID
	ID      string
}

// compare orders records by account and id.
func (r Ref) compare(other Ref) int {
	return cmp.Or(cmp.Compare(r.Account, other.Account), cmp.Compare(r.ID, other.ID))
}

// FoundDevice is a device of a list, and its account.
type FoundDevice struct {
	Account relay.AccountID
	Device
	Alarms int // raised and not cleared
}

// maxRanked is how many devices one list may order by their silence.
const maxRanked = 200_000

// scanChunk is how many devices are read at a time.
const scanChunk = 1000

// FindDevices returns a page of devices with the time that each was heard, and the
// cursor of the next page, empty on the last one.
//
// It returns Invalid for a cursor of another list, and if more devices match than can
// be ordered by their silence.
func (s *Service) FindDevices(ctx context.Context, f DeviceFilter) ([]FoundDevice, string, error) {
	f.Limit = cmp.Or(f.Limit, 100)
	from, err := parseDevicePlace(f.Cursor)
	if err != nil {
		return nil, "", err
	}
	var page []devicePlace
	if f.Order == SilentFirst {
		page, err = s.silent(ctx, &f, from)
	} else {
		page, err = s.scanned(ctx, &f, from.Ref, f.Limit+1)
	}
	if err != nil {
		return nil, "", err
	}
	next := ""
	if len(page) > f.Limit {
		page = page[:f.Limit]
		next = page[f.Limit-1].String()
	}
	found, err := s.found(ctx, page, f.Order != SilentFirst)
	return found, next, err
}

// scanned returns up to most of the devices that match, by account and id.
func (s *Service) scanned(ctx context.Context, f *DeviceFilter, after Ref, most int) (out []devicePlace, err error) {
	for {
		chunk, err := s.store.ScanDevices(ctx, f.Account, after, f.Alarmed, scanChunk)
		if err != nil {
			return nil, err
		}
		for i := range chunk {
			if d := &chunk[i]; f.matches(d.Account, &d.Device) {
				if out = append(out, devicePlace{Ref: Ref{d.Account, d.ID}}); len(out) == most {
					return out, nil
				}
			}
		}
		if len(chunk) < scanChunk {
			return out, nil
		}
		after = Ref{chunk[len(chunk)-1].Account, chunk[len(chunk)-1].ID}
	}
}

// silent returns the devices after a place in the order of their silence, one more
// than a page.
func (s *Service) silent(ctx context.Context, f *DeviceFilter, from devicePlace) ([]devicePlace, error) {
	all, err := s.scanned(ctx, f, Ref{}, maxRanked+1)
	if err != nil {
		return nil, err
	}
	if len(all) > maxRanked {
		return nil, relay.Invalid("order", fmt.Sprintf("More than %d devices match; name an account or search for a text to order them by silence.", maxRanked))
	}
	for i := 0; i < len(all); {
		end := i
		for end < len(all) && end-i < scanChunk && all[end].Account == all[i].Account {
			end++
		}
		if err := s.rank(ctx, all[i:end]); err != nil {
			return nil, err
		}
		i = end
	}
	slices.SortFunc(all, devicePlace.compare)
	if f.Cursor != "" {
		at, same := slices.BinarySearchFunc(all, from, devicePlace.compare)
		if same {
			at++
		}
		all = all[at:]
	}
	return all[:min(len(all), f.Limit+1)], nil
}

// rank sets when devices of one account were heard.
func (s *Service) rank(ctx context.Context, some []devicePlace) error {
	heard, err := s.heardLast(ctx, some[0].Account, idsOf(some))
	for i := range some {
		some[i].heard = heard[some[i].ID]
	}
	return err
}

func idsOf(some []devicePlace) []string {
	ids := make([]string, len(some))
	for i := range some {
		ids[i] = some[i].ID
	}
	return ids
}

// found loads the devices of a page. A device that was deleted meanwhile is left out.
func (s *Service) found(ctx context.Context, page []devicePlace, rank bool) ([]FoundDevice, error) {
	out := make([]FoundDevice, 0, len(page))
	if len(page) == 0 {
		return out, nil
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
	for acct, some := range byAccount {
		if rank {
			if err := s.rank(ctx, some); err != nil {
				return nil, err
			}
		}
		devices, err := s.DevicesByID(ctx, acct, idsOf(some))
		if err != nil {
			return nil, err
		}
		for _, p := range some {
			if d, there := devices[p.ID]; there {
				d.LastSeen = p.heard
				loaded[p.Ref] = FoundDevice{Account: acct, Device: d, Alarms: alarms[p.Ref]}
			}
		}
	}
	for _, ref := range refs {
		if d, there := loaded[ref]; there {
			out = append(out, d)
		}
	}
	return out, nil
}

// devicePlace is a place in a list of devices; heard is zero in the order of accounts.
type devicePlace struct {
	heard time.Time
	Ref
}

// compare orders places by the time of the last contact, then by account and id.
func (p devicePlace) compare(other devicePlace) int {
	return cmp.Or(p.heard.Compare(other.heard), p.Ref.compare(other.Ref))
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

// RadioDetail returns how much radio data of frames is stored.
func (s *Service) RadioDetail() RadioDetail { return s.options.Radio }

// Radio returns battery, signal and position from the last frames of devices, by
// device id, without devices that have no radio data of the last year. It returns
// relay.KindUnavailable if the reading store does not answer.
func (s *Service) Radio(ctx context.Context, acct relay.AccountID, ids []string) (map[string]RadioData, error) {
	out, err := s.readings.Radio(ctx, acct, ids, s.options.Now().Add(-radioWindow))
	if err != nil {
		return nil, relay.Errorf(relay.KindUnavailable, "iot: radio data: %w", err)
	}
	return out, nil
}

// radioWindow is how far back radio data is read, and RadioFrames of how many frames of
// a device: a battery is not reported with every frame.
const (
	radioWindow = 366 * 24 * time.Hour
	RadioFrames = 20
)

// Complete sets the values that u lacks to those of an earlier uplink. The time is
// that of the first.
func (u *RadioData) Complete(earlier RadioData) {
	if u.DeviceID == "" {
		*u = earlier
		return
	}
	if u.RSSI == nil && u.SNR == nil && u.Gateways == nil {
		u.RSSI, u.SNR, u.Gateways = earlier.RSSI, earlier.SNR, earlier.Gateways
	}
	if u.Battery == nil {
		u.Battery = earlier.Battery
	}
	if u.Latitude == nil || u.Longitude == nil {
		u.Latitude, u.Longitude = earlier.Latitude, earlier.Longitude
	}
}
