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

func requestOf(j job.Job) (r Request, err error) {
	if json.Unmarshal(j.Input, &r) != nil {
		err = job.Fail("The request cannot be read.")
	}
	return r, err
}

// RunCDR writes a file of CDRs.
func (s *Service) RunCDR(ctx context.Context, j job.Job) (any, error) {
	r, err := requestOf(j)
	if err != nil {
		return nil, err
	}
	n, err := s.deps.Files.Make(ctx, j.ID, func(ctx context.Context, writer io.Writer) (n int64, err error) {
		w := csv.NewWriter(writer)
		err = w.Write(cdr.UseHeader())
		if err == nil {
			err = s.readRequested(ctx, j.Account, r, func(u cdr.Use) error { n++; return w.Write(u.Row()) })
		}
		w.Flush()
		return n, errors.Join(err, w.Error())
	})
	return jobResult{n}, err
}

// readRequested calls do with the requested records: all records by start time, or the records of
// a subscriber SIM by SIM.
func (s *Service) readRequested(ctx context.Context, acct relay.AccountID, r Request, do func(cdr.Use) error) error {
	if r.Subscriber == "" {
		return s.readRecords(ctx, acct, "", r.span(), do)
	}
	for lastICCID := sim.ICCID(""); ; {
		iccids, err := s.deps.SIMs.Scan(ctx, acct, sim.Scope{Subscriber: r.Subscriber}, lastICCID, pageSize)
		if err != nil || len(iccids) == 0 {
			return err
		}
		for _, iccid := range iccids {
			if err := s.readRecords(ctx, acct, iccid, r.span(), do); err != nil {
				return err
			}
		}
		lastICCID = iccids[len(iccids)-1]
	}
}

// readRecords calls do with the records of a SIM, or of all SIMs if iccid is empty.
func (s *Service) readRecords(ctx context.Context, acct relay.AccountID, iccid sim.ICCID, span Span, do func(cdr.Use) error) error {
	var cursor Cursor
	for {
		page, err := s.deps.Records.Read(ctx, acct, iccid, span, cursor, s.deps.Page)
		if err != nil {
			return err
		}
		for _, record := range page {
			if err := do(record.Use); err != nil {
				return err
			}
		}
		if len(page) < s.deps.Page {
			return nil
		}
		cursor = page[len(page)-1].Cursor
	}
}

// RunReport creates a report of the usage of each SIM.
func (s *Service) RunReport(ctx context.Context, j job.Job) (any, error) {
	r, err := requestOf(j)
	if err != nil {
		return nil, err
	}
	n, err := s.deps.Exports.Do(ctx, j.ID, func(ctx context.Context) (n int64, err error) {
		if err := s.deps.Records.Begin(ctx, j.ID, j.CreatedAt); err != nil {
			return 0, err
		}
		companies := make(map[string]string)
		err = s.deps.Records.Sums(ctx, j.Account, r.span(), func(sums []Sum) error {
			rows, err := s.newRows(ctx, j.Account, sums, companies)
			if err != nil {
				return err
			}
			n += int64(len(rows))
			return s.deps.Records.Add(ctx, j.ID, rows)
		})
		return n, err
	})
	return jobResult{n}, err
}

// newRows returns the rows of a report for sums. companies caches the companies of subscribers.
func (s *Service) newRows(ctx context.Context, acct relay.AccountID, sums []Sum, companies map[string]string) ([]Row, error) {
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
		name, cached := companies[id]
		if !cached && id != "" {
			subscriber, err := s.deps.Subscribers.Get(ctx, acct, id)
			if err != nil && relay.KindOf(err) != relay.KindNotFound {
				return nil, err
			}
			if len(companies) >= maxCompanies {
				clear(companies)
			}
			name = subscriber.CompanyName
			companies[id] = name
		}
		rows[i] = Row{ICCID: sum.ICCID, Subscriber: id, Company: name, Bytes: sum.Bytes}
	}
	return rows, nil
}

// maxCompanies is the maximum number of names cached for a report.
const maxCompanies = 10_000
