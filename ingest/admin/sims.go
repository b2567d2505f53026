package admin

import (
	"context"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/usage"
)

// simJSON is a SIM without its PINs and PUKs.
type simJSON struct {
	ICCID          sim.ICCID       `json:"iccid"`
	Account        relay.AccountID `json:"account"`
	AccountName    string          `json:"account_name"`
	IMSI           string          `json:"imsi"`
	MSISDN         string          `json:"msisdn"`
	State          sim.State       `json:"state"`
	RequestedState sim.State       `json:"requested_state"`
	JobID          string          `json:"job_id"` // the job in progress; "" if there is none
	Services       []string        `json:"services"`
	PoolID         string          `json:"pool_id"`
	SubscriberID   string          `json:"subscriber_id"`
	Limit          limitJSON       `json:"limit"`
	MonthBytes     int64           `json:"month_bytes"` // the usage in the calendar month in UTC
}

// limitJSON is a monthly limit, in bytes; 0 means none.
type limitJSON struct {
	Monthly int64           `json:"monthly"`
	Warning int64           `json:"warning"`
	Cap     sim.LimitAction `json:"cap"`
}

func limitOf(l sim.Limit) limitJSON {
	if l.Action == "" {
		l.Action = sim.NoAction
	}
	return limitJSON{l.Monthly, l.Warning, l.Action}
}

func simOf(f sim.FoundSIM, names map[relay.AccountID]string, bytes int64) simJSON {
	view := simJSON{
		ICCID: f.ICCID, Account: f.Account, AccountName: names[f.Account], IMSI: f.IMSI, MSISDN: f.MSISDN, State: f.State, RequestedState: f.RequestedState,
		JobID: f.Job, Services: []string{}, PoolID: f.Pool, SubscriberID: f.Subscriber, Limit: limitOf(f.Limit), MonthBytes: bytes,
	}
	if f.Service4G {
		view.Services = append(view.Services, "4g")
	}
	if f.Service5G {
		view.Services = append(view.Services, "5g")
	}
	return view
}

// maxSIMs is the maximum number of SIMs on a page.
const maxSIMs = 500

// listSIMs lists SIMs of one or all accounts, by account and ICCID.
func (s *Surface) listSIMs(c *fiber.Ctx, sel *selection) error {
	limit := min(sel.limit(), maxSIMs)
	f := sim.Search{
		Account: sel.account(), Text: strings.TrimPrefix(strings.TrimSpace(sel.text("q")), "+"), State: oneOf(sel, "state", sim.States()...), Pool: sel.text("pool"),
		Limit: limit + 1,
	}
	parseCursor(sel, &f.After.ICCID, &f.After.Account)
	names, found, err := findWithNames(s, sel, f, s.SIMs.Find)
	if err != nil {
		return err
	}
	found, nextCursor := trimPage(found, limit, func(f sim.FoundSIM) string { return formatCursor("%d %s", f.Account, f.ICCID) })
	bytes, err := s.monthBytes(c.UserContext(), found)
	if err != nil {
		return err
	}
	views := make([]simJSON, len(found))
	for i, f := range found {
		views[i] = simOf(f, names, bytes[i])
	}
	return sendPage(c, views, nextCursor)
}

// monthBytes returns the usage of each SIM in this month.
func (s *Surface) monthBytes(ctx context.Context, found []sim.FoundSIM) ([]int64, error) {
	subjects, indices := make(map[relay.AccountID][]usage.Subject), make(map[relay.AccountID][]int)
	for i, f := range found {
		subjects[f.Account] = append(subjects[f.Account], usage.Subject{Scope: usage.OfSIM, ID: string(f.ICCID), Month: usage.MonthOf(s.Now())})
		indices[f.Account] = append(indices[f.Account], i)
	}
	bytes := make([]int64, len(found))
	for acct, simsOfAccount := range subjects {
		totals, err := s.Usage.Totals(ctx, acct, simsOfAccount)
		if err != nil {
			return nil, err
		}
		for n, t := range totals {
			bytes[indices[acct][n]] = t.Bytes
		}
	}
	return bytes, nil
}

// simDetailJSON is a SIM with its usage in the last months.
type simDetailJSON struct {
	simJSON
	Recipients []string    `json:"recipients"` // of notices about the limit
	Pool       *poolJSON   `json:"pool"`       // null if the SIM has no pool
	Months     []monthJSON `json:"months"`     // oldest first
}

type poolJSON struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Limit      limitJSON `json:"limit"`
	MonthBytes int64     `json:"month_bytes"`
}

type monthJSON struct {
	Month string `json:"month"` // for example 2026-11
	Bytes int64  `json:"bytes"`
}

// monthsShown is the number of months with usage in an answer, including the current one.
const monthsShown = 12

func (s *Surface) getSIM(c *fiber.Ctx, sel *selection) error {
	ctx := c.UserContext()
	acct, found, err := s.simOfRequest(c, sel)
	if err != nil {
		return err
	}
	names, err := s.accountNames(ctx)
	if err != nil {
		return err
	}
	now := s.Now().UTC()
	thisMonth := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	subjects := make([]usage.Subject, monthsShown)
	for i := range subjects {
		subjects[i] = usage.Subject{Scope: usage.OfSIM, ID: string(found.ICCID), Month: usage.MonthOf(thisMonth.AddDate(0, i-monthsShown+1, 0))}
	}
	if found.Pool != "" {
		subjects = append(subjects, usage.Subject{Scope: usage.OfPool, ID: found.Pool, Month: usage.MonthOf(now)})
	}
	totals, err := s.Usage.Totals(ctx, acct, subjects)
	if err != nil {
		return err
	}
	view := simDetailJSON{
		simJSON:    simOf(sim.FoundSIM{Account: acct, SIM: found}, names, totals[monthsShown-1].Bytes),
		Recipients: httpd.Each(found.Recipients, func(r sim.Recipient) string { return r.Email }), Months: make([]monthJSON, monthsShown),
	}
	for i := range view.Months {
		view.Months[i] = monthJSON{subjects[i].Month.String(), totals[i].Bytes}
	}
	if found.Pool != "" {
		pool, err := s.Pools.Get(ctx, acct, found.Pool)
		if err != nil && relay.KindOf(err) != relay.KindNotFound {
			return err
		}
		view.Pool = &poolJSON{found.Pool, pool.Name, limitOf(pool.Limit), totals[monthsShown].Bytes}
	}
	return c.JSON(fiber.Map{"data": view})
}

// simOfRequest returns the SIM of a request with its account. The account may be missing if only one
// account has the ICCID.
func (s *Surface) simOfRequest(c *fiber.Ctx, sel *selection) (relay.AccountID, sim.SIM, error) {
	acct := sel.account()
	if err := sel.Err(); err != nil {
		return 0, sim.SIM{}, err
	}
	iccid, err := sim.ParseICCID(params.Path(c, "iccid"))
	if err != nil {
		return 0, sim.SIM{}, relay.Errorf(relay.KindNotFound, "%w", err)
	}
	return findOwned(c.UserContext(), s.Accounts, acct, func(acct relay.AccountID) (sim.SIM, error) { return s.SIMs.Get(c.UserContext(), acct, iccid) })
}

// usageStepJSON is the usage of a type in an hour or a day.
type usageStepJSON struct {
	At       string `json:"at"`
	Type     string `json:"type"`
	Bytes    int64  `json:"bytes"`
	Duration int64  `json:"duration"` // seconds
	Records  int64  `json:"records"`
}

const (
	defaultUsageRange = 30 * 24 * time.Hour  // the default range
	maxUsageRange     = 366 * 24 * time.Hour // the longest range
	maxHourlyRange    = 4 * 24 * time.Hour   // the longest range in steps of an hour; longer ranges have steps of a day
)

// simUsage answers with the usage of a SIM by hour or by day.
func (s *Surface) simUsage(c *fiber.Ctx, sel *selection) error {
	span := usage.Span{From: sel.timestamp("from"), To: sel.timestamp("to")}
	if span.To.IsZero() {
		span.To = s.Now().UTC()
	}
	if span.From.IsZero() {
		span.From = span.To.Add(-defaultUsageRange)
	}
	if d := span.To.Sub(span.From); sel.Problems["from"] == nil && sel.Problems["to"] == nil && (d <= 0 || d > maxUsageRange) {
		sel.Add("to", "The to must be after from, by at most 366 days.")
	}
	acct, sim, err := s.simOfRequest(c, sel)
	if err != nil {
		return err
	}
	step := 24 * time.Hour
	if span.To.Sub(span.From) <= maxHourlyRange {
		step = time.Hour
	}
	span.From = span.From.Truncate(step)
	sums, err := s.Usage.IntervalSums(c.UserContext(), acct, string(sim.ICCID), span, step)
	if err != nil {
		return err
	}
	views := httpd.Each(sums, func(s usage.IntervalSum) usageStepJSON {
		return usageStepJSON{formatTime(s.Start), s.Type, s.Bytes, s.Duration, s.Records}
	})
	return c.JSON(fiber.Map{"data": views, "meta": fiber.Map{"from": formatTime(span.From), "to": formatTime(span.To), "step": int(step.Seconds())}})
}
