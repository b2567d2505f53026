package usage

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sim"
)

// orderOf decodes the input of a job.
func orderOf(j job.Job) (o order, err error) {
	if err := json.Unmarshal(j.Input, &o); err != nil {
		return o, job.Fail("The request cannot be read.")
	}
	return o, nil
}

// RunCDR writes a file of CDRs.
func (s *Service) RunCDR(ctx context.Context, j job.Job) (any, error) {
	o, err := orderOf(j)
	if err != nil {
		return nil, err
	}
	n, err := s.deps.Files.Make(ctx, j.ID, func(ctx context.Context, writer io.Writer) (n int64, err error) {
		w := csv.NewWriter(writer)
		err = w.Write(cdr.UseHeader())
		if err == nil {
			err = s.each(ctx, j.Account, o, func(u cdr.Use) error { n++; return w.Write(u.Row()) })
		}
		w.Flush()
		return n, errors.Join(err, w.Error())
	})
	return counted{n}, err
}

// each passes on the records of an order: all in the order of their starts, or
// those of a subscriber SIM by SIM.
func (s *Service) each(ctx context.Context, acct relay.AccountID, o order, do func(cdr.Use) error) error {
	if o.Subscriber == "" {
		return s.eachOf(ctx, acct, "", o.span(), do)
	}
	for lastICCID := sim.ICCID(""); ; {
		iccids, err := s.deps.SIMs.Scan(ctx, acct, sim.Scope{Subscriber: o.Subscriber}, lastICCID, pageSize)
		if err != nil || len(iccids) == 0 {
			return err
		}
		for _, iccid := range iccids {
			if err := s.eachOf(ctx, acct, iccid, o.span(), do); err != nil {
				return err
			}
		}
		lastICCID = iccids[len(iccids)-1]
	}
}

// eachOf passes on the records of a SIM, or of all if iccid is empty.
func (s *Service) eachOf(ctx context.Context, acct relay.AccountID, iccid sim.ICCID, span Span, do func(cdr.Use) error) error {
	var cursor Cursor
	for {
		page, err := s.deps.Records.Read(ctx, acct, iccid, span, cursor, s.opts.Page)
		if err != nil {
			return err
		}
		for _, k := range page {
			if err := do(k.Use); err != nil {
				return err
			}
		}
		if len(page) < s.opts.Page {
			return nil
		}
		cursor = page[len(page)-1].Cursor
	}
}

// RunReport adds up what each SIM used.
func (s *Service) RunReport(ctx context.Context, j job.Job) (any, error) {
	o, err := orderOf(j)
	if err != nil {
		return nil, err
	}
	n, err := s.deps.Exports.Do(ctx, j.ID, func(ctx context.Context) (n int64, err error) {
		if err := s.deps.Reports.Begin(ctx, j.ID, j.CreatedAt); err != nil {
			return 0, err
		}
		companies := make(map[string]string)
		err = s.deps.Records.Sums(ctx, j.Account, o.span(), func(sums []Sum) error {
			rows, err := s.rows(ctx, j.Account, sums, companies)
			if err != nil {
				return err
			}
			n += int64(len(rows))
			return s.deps.Reports.Add(ctx, j.ID, rows)
		})
		return n, err
	})
	return counted{n}, err
}

// rows adds the subscribers of the SIMs. companies caches the subscribers' names.
func (s *Service) rows(ctx context.Context, acct relay.AccountID, sums []Sum, companies map[string]string) ([]Row, error) {
	iccids := make([]sim.ICCID, len(sums))
	for i, sum := range sums {
		iccids[i] = sim.ICCID(sum.ICCID)
	}
	sims, err := s.deps.SIMs.GetMany(ctx, acct, iccids)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(sums))
	for i, sum := range sums {
		id := sims[iccids[i]].Subscriber
		name, known := companies[id]
		if !known && id != "" {
			found, err := s.deps.Subscribers.Get(ctx, acct, id)
			if err != nil && relay.KindOf(err) != relay.KindNotFound {
				return nil, err
			}
			if len(companies) >= maxCompanies {
				clear(companies)
			}
			name = found.CompanyName
			companies[id] = name
		}
		rows[i] = Row{ICCID: sum.ICCID, Subscriber: id, Company: name, Bytes: sum.Bytes}
	}
	return rows, nil
}

// maxCompanies is the maximum number of names cached for a report.
const maxCompanies = 10_000
