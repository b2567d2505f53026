package main

import (
	"context"
	"fmt"
	"strings"
)

// aimGrowth is how far rates may differ from those of the smallest size.
const aimGrowth = 0.20

// extent is a number of devices that send, and of accounts that they belong to.
type extent struct{ devices, accounts int }

// sizes are compared, each with the first one of its row.
func sizes() [][]extent {
	return [][]extent{
		{{10, 1}, {1000, 1}, {100_000, 1}},
		{{10_000, 1}, {10_000, 100}, {10_000, 10_000}},
	}
}

// grown are the rounds of one size.
type grown struct {
	extent
	rounds []frameRound
}

// measureGrowth measures frames of few and of many devices and accounts, in turns.
func measureGrowth(ctx context.Context, p *peers, s settings, r *report) error {
	for _, row := range sizes() {
		found, err := p.grow(ctx, row, s, r)
		if err != nil {
			return err
		}
		r.grown = append(r.grown, found)
	}
	return nil
}

// grow measures the sizes of a row on one gateway.
func (p *peers) grow(ctx context.Context, row []extent, s settings, r *report) ([]grown, error) {
	p.accounts = growthAccounts(row)
	defer func() { p.accounts = "" }()
	d, err := p.daemon(ctx, s)
	if err != nil {
		return nil, err
	}
	defer d.stop()
	found := make([]grown, len(row))
	var sent int64
	for round := range s.rounds + 1 {
		for i, one := range row {
			at := s
			at.devices, at.accounts = one.devices, one.accounts
			if one.accounts > 1 { // a device belongs to one account; and frames create 100,000 in one at most
				at.firstDevice = int64(i) << 20
			}
			if round == 0 { // devices are imported
				l := newLoad(d.addr, d.token, at)
				l.first = sent
				if err := l.send(ctx, int64(one.devices)); err != nil {
					return nil, err
				}
				sent += int64(one.devices)
				if err := d.stored(ctx, sent); err != nil {
					return nil, err
				}
				continue
			}
			f, err := d.round(ctx, at, sent)
			if err != nil {
				return nil, err
			}
			sent += f.count
			found[i].extent, found[i].rounds = one, append(found[i].rounds, f)
		}
	}
	stored, err := d.countPoints(ctx)
	if err != nil {
		return nil, err
	}
	r.reconcile("frames of many sizes", sent, stored, d.quarantined())
	return found, nil
}

// growthToken is the token of the n-th account.
func growthToken(n int64) string { return fmt.Sprintf("growth-token-%06d", n) }

// growthAccounts are the accounts of the inventory for a row of sizes.
func growthAccounts(row []extent) string {
	most := 0
	for _, one := range row {
		most = max(most, one.accounts)
	}
	if most == 1 {
		return ""
	}
	var b strings.Builder
	for n := range most {
		fmt.Fprintf(&b, "  - {name: growth%d, tokens: [{token: %s, scopes: [webhook]}], locations: [{id: imported, name: Imported, imported: true}], "+
			"decoders: [{id: bench, name: Bench, type: lorawan, codec: cayenne_lpp, useRawPayload: true, "+
			"sensors: [{sensor_type_id: temperature, key: temperature_1}, {sensor_type_id: humidity, key: relative_humidity_2}]}]}\n", n, growthToken(int64(n)))
	}
	return b.String()
}

// printGrown prints a row for each size, beside the first of its kind.
func (r *report) printGrown(row func(cells ...any)) {
	if len(r.grown) == 0 {
		return
	}
	defer row()
	row("devices", "accounts", "accepted", "of the first", "stored", "of the first", "µs of CPU, stores included", "of the first", "of the gateway", "of InfluxDB", "aim")
	for _, all := range r.grown {
		for i, one := range all {
			beside := func(of func(frameRound) float64) string { return ratio(ratios(one.rounds, of, all[0].rounds, of)) }
			limit := ""
			if i > 0 {
				limit = fmt.Sprintf("within %.0f %%", 100*aimGrowth)
			}
			row(one.devices, one.accounts,
				rate(median(one.rounds, frameRound.rate)), beside(frameRound.rate),
				rate(median(one.rounds, frameRound.storedRate)), beside(frameRound.storedRate),
				number(median(one.rounds, frameRound.allMicros)), beside(frameRound.allMicros),
				number(median(one.rounds, frameRound.ownMicros)), number(median(one.rounds, frameRound.influxMicros)), limit)
		}
	}
}
