package admin

import (
	"maps"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/admin/traffic"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
)

// statusJSON is the status of this gateway, which is available while back ends are down.
type statusJSON struct {
	At        string              `json:"at"`
	Node      string              `json:"node"`
	Version   string              `json:"version"`
	StartedAt string              `json:"started_at"`
	Ready     bool                `json:"ready"`
	Backends  []backendStatusJSON `json:"backends"`
	Journals  []journalJSON       `json:"journals"`
	Queue     Deliveries          `json:"queue"`
	Carriers  []carrierJSON       `json:"carriers"`
	// StoredBytes has the disk usage by kind of record. It is empty until the first
	// measurement.
	StoredBytes map[string]int64 `json:"stored_bytes"`
	Gateways    []gatewayJSON    `json:"gateways"`
	// GatewaysError is the reason why the other gateways are not listed.
	GatewaysError string `json:"gateways_error"`
}

// backendStatusJSON is the status of a back end.
type backendStatusJSON struct {
	Name     string `json:"name"`
	Note     string `json:"note"`
	Status   string `json:"status"` // ok, or down
	Since    string `json:"since"`  // the start of the status
	Optional bool   `json:"optional"`
	Error    string `json:"error"`
	// LastError is the last error since the start, even if the back end works now.
	LastError   string  `json:"last_error"`
	LastErrorAt *string `json:"last_error_at"`
}

// journalJSON is the journal of a kind of traffic. The counters are since the start.
type journalJSON struct {
	Kind        string `json:"kind"`
	Accepted    uint64 `json:"accepted"`
	Processed   uint64 `json:"processed"`
	Quarantined uint64 `json:"quarantined"`
	Deferred    uint64 `json:"deferred"`
	Lag         uint64 `json:"lag"`
	Waiting     string `json:"waiting"` // the error that blocks processing
	Bytes       int64  `json:"bytes"`
	Gaps        int    `json:"gaps"`
}

// carrierJSON is a carrier with its binds. Bound reports whether a bind is established; it is null
// for a carrier without binds.
type carrierJSON struct {
	Name     string `json:"name"`
	Bound    *bool  `json:"bound"`
	Binds    []Bind `json:"binds"`
	Messages int64  `json:"messages"`
	Receipts int64  `json:"receipts"`
	Waiting  int    `json:"waiting"`
	Accepted int    `json:"accepted"`
	Rejected int    `json:"rejected"`
	Unknown  int    `json:"unknown"`
}

// Program has the version of the gateway and the sources of its metrics.
type Program struct {
	Version string
	Queue   func() Deliveries
	Stored  func() map[string]int64 // nil until the first measurement
	Binds   func() []Bind           // grouped by carrier
	Sending func() []Sending
}

// status answers 200 even if back ends are down, so that an operator can find the fault.
func (s *Surface) status(c *fiber.Ctx) error {
	states := s.watch.check(c.UserContext())
	view := statusJSON{
		At: formatTime(s.Now()), Node: s.Node, Version: s.Program.Version, StartedAt: formatTime(s.startedAt), Ready: isReady(states),
		Queue: s.Program.Queue(), Carriers: s.carriers(), StoredBytes: map[string]int64{}, Gateways: []gatewayJSON{},
	}
	view.Backends = httpd.Each(states, func(b BackendState) backendStatusJSON {
		view := backendStatusJSON{Name: b.Name, Note: b.Note, Status: "ok", Since: formatTime(b.Since), Optional: b.Optional, LastErrorAt: formatTimeOrNil(b.LastErrAt)}
		if b.Err != nil {
			view.Status, view.Error = "down", b.Err.Error()
		}
		if b.LastErr != nil {
			view.LastError = b.LastErr.Error()
		}
		return view
	})
	view.Journals = httpd.Each(s.Intakes, func(i *intake.Intake) journalJSON {
		st := i.Status()
		return journalJSON{
			Kind: string(i.Kind()), Accepted: st.Accepted, Processed: st.Processed, Quarantined: st.Quarantined, Deferred: st.Deferred,
			Lag: st.Lag, Waiting: st.Outage, Bytes: st.Journal.Bytes, Gaps: st.Journal.Gaps,
		}
	})
	maps.Copy(view.StoredBytes, s.Program.Stored())
	// The registry of gateways is in the database, which may be down.
	if views, err := s.gateways(c.UserContext()); err != nil {
		view.GatewaysError = err.Error()
	} else {
		view.Gateways = views
	}
	return c.JSON(fiber.Map{"data": view})
}

// isReady reports whether all back ends work, except the optional ones.
func isReady(states []BackendState) bool {
	return !slices.ContainsFunc(states, func(b BackendState) bool { return b.Err != nil && !b.Optional })
}

// carriers joins the binds of each carrier with its queue of messages.
func (s *Surface) carriers() []carrierJSON {
	carriers := []carrierJSON{}
	carrierNamed := func(name string) *carrierJSON {
		i := slices.IndexFunc(carriers, func(c carrierJSON) bool { return c.Name == name })
		if i < 0 {
			i = len(carriers)
			carriers = append(carriers, carrierJSON{Name: name, Binds: []Bind{}})
		}
		return &carriers[i]
	}
	for _, b := range s.Program.Binds() {
		c := carrierNamed(b.Carrier)
		c.Bound = new(b.Bound || c.Bound != nil && *c.Bound)
		c.Messages += b.Messages
		c.Receipts += b.Receipts
		b.Since = b.Since.UTC()
		c.Binds = append(c.Binds, b)
	}
	for _, n := range s.Program.Sending() {
		c := carrierNamed(n.Carrier)
		c.Waiting, c.Accepted, c.Rejected, c.Unknown = n.Waiting, n.Accepted, n.Rejected, n.Unknown
	}
	return carriers
}

// trafficJSON is the traffic of this gateway over a range, in steps.
type trafficJSON struct {
	Node   string       `json:"node"`
	From   string       `json:"from"` // the start of the first step
	Step   int          `json:"step"` // in seconds
	Series []seriesJSON `json:"series"`
}

// seriesJSON has a value for each step; null if the gateway did not run.
type seriesJSON struct {
	Name   string    `json:"name"`
	Values []*uint64 `json:"values"`
}

// getTraffic answers with the traffic of this gateway in the last hour by minute, or in the
// last day by five minutes.
func (s *Surface) getTraffic(c *fiber.Ctx, sel *selection) error {
	minutes, step := 60, 1
	if oneOf(sel, "range", "hour", "day") == "day" {
		minutes, step = traffic.Minutes, 5
	}
	if err := sel.Err(); err != nil {
		return err
	}
	view := trafficJSON{Node: s.Node, From: formatTime(s.Now()), Step: step * 60, Series: []seriesJSON{}}
	if s.Traffic != nil {
		chart := s.Traffic.Read(s.Now(), minutes, step)
		view.From = formatTime(chart.From)
		for i, series := range s.Traffic.Series() {
			view.Series = append(view.Series, seriesJSON{Name: series.Name, Values: chart.Values[i]})
		}
	}
	return c.JSON(fiber.Map{"data": view})
}
