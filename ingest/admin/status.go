package admin

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/admin/traffic"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
)

// statusJSON is the status of this gateway, from its memory: it is answered while back ends
// are down.
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
	// StoredBytes are the bytes of each kind of records; empty until they were measured.
	StoredBytes map[string]int64 `json:"stored_bytes"`
	Gateways    []gatewayJSON    `json:"gateways"`
	// GatewaysError is the reason why the other gateways are not listed.
	GatewaysError string `json:"gateways_error"`
}

// backendStatusJSON is the status of a back end, with the start of that status.
type backendStatusJSON struct {
	Name     string `json:"name"`
	Note     string `json:"note"`
	Status   string `json:"status"` // ok, or down
	Since    string `json:"since"`
	Optional bool   `json:"optional"`
	Error    string `json:"error"`
	// The last error since the start, also of one that works again.
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
	Waiting     string `json:"waiting"` // the back end's error that processing waits for
	Bytes       int64  `json:"bytes"`
	Gaps        int    `json:"gaps"`
}

// carrierJSON is a carrier with its binds. Bound reports whether one of them is established;
// it is null for a carrier without binds.
type carrierJSON struct {
	Name     string     `json:"name"`
	Bound    *bool      `json:"bound"`
	Binds    []bindJSON `json:"binds"`
	Messages int64      `json:"messages"`
	Receipts int64      `json:"receipts"`
	Waiting  int        `json:"waiting"`
	Accepted int        `json:"accepted"`
	Rejected int        `json:"rejected"`
	Unknown  int        `json:"unknown"`
}

// bindJSON is a bind of a carrier. The counters are since the start.
type bindJSON struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Addr     string `json:"addr"`
	Bound    bool   `json:"bound"`
	Since    string `json:"since"`
	Error    string `json:"error"`
	Messages int64  `json:"messages"`
	Receipts int64  `json:"receipts"`
}

// Program has the properties of the gateway itself.
type Program struct {
	Version string
	// Queue, Stored, Binds and Sending read what the metrics count.
	Queue   func() Deliveries
	Stored  func() map[string]int64
	Binds   func() []Bind // those of a carrier stand together
	Sending func() []Sending
}

// status answers 200 whatever is down: it is for those who look for the fault.
func (s *Surface) status(c *fiber.Ctx) error {
	states := s.watch.check(c.UserContext())
	view := statusJSON{
		At: formatTime(s.Now()), Node: s.Node, Version: s.Program.Version, StartedAt: formatTime(s.startedAt), Ready: ready(states),
		Carriers: s.carriers(), StoredBytes: map[string]int64{}, Gateways: []gatewayJSON{},
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
	view.Journals = httpd.Each(s.Intakes, func(in *intake.Intake) journalJSON {
		st := in.Status()
		return journalJSON{
			Kind: string(in.Kind()), Accepted: st.Accepted, Processed: st.Processed, Quarantined: st.Quarantined, Deferred: st.Deferred,
			Lag: st.Lag, Waiting: st.Waiting, Bytes: st.Journal.Bytes, Gaps: st.Journal.Gaps,
		}
	})
	if s.Program.Stored != nil {
		if sizes := s.Program.Stored(); sizes != nil {
			view.StoredBytes = sizes
		}
	}
	if s.Program.Queue != nil {
		view.Queue = s.Program.Queue()
	}
	// The registry of gateways is in the database, which may be what is down.
	if views, err := s.gateways(c.UserContext()); err != nil {
		view.GatewaysError = err.Error()
	} else {
		view.Gateways = views
	}
	return c.JSON(fiber.Map{"data": view})
}

// ready reports whether every back end that the gateway needs works.
func ready(states []BackendState) bool {
	return !slices.ContainsFunc(states, func(b BackendState) bool { return b.Err != nil && !b.Optional })
}

// carriers joins what is known of a carrier's binds and of what is sent to it.
func (s *Surface) carriers() []carrierJSON {
	carriers := []carrierJSON{}
	places := map[string]int{}
	named := func(name string) *carrierJSON {
		i, known := places[name]
		if !known {
			i = len(carriers)
			places[name], carriers = i, append(carriers, carrierJSON{Name: name, Binds: []bindJSON{}})
		}
		return &carriers[i]
	}
	if s.Program.Binds != nil {
		for _, b := range s.Program.Binds() {
			c := named(b.Carrier)
			c.Bound = new(b.Bound || c.Bound != nil && *c.Bound)
			c.Messages += b.Messages
			c.Receipts += b.Receipts
			c.Binds = append(c.Binds, bindJSON{
				Name: b.Name, Type: b.Type, Addr: b.Addr, Bound: b.Bound, Since: formatTime(b.Since), Error: b.Error, Messages: b.Messages, Receipts: b.Receipts,
			})
		}
	}
	if s.Program.Sending != nil {
		for _, n := range s.Program.Sending() {
			c := named(n.Carrier)
			c.Waiting, c.Accepted, c.Rejected, c.Unknown = n.Waiting, n.Accepted, n.Rejected, n.Unknown
		}
	}
	return carriers
}

// trafficJSON is the traffic of this gateway over a range, in steps.
type trafficJSON struct {
	Node   string       `json:"node"`
	From   string       `json:"from"` // the begin of the first step
	Step   int          `json:"step"` // in seconds
	Series []seriesJSON `json:"series"`
}

// seriesJSON is one thing that was counted: a value for each step, null where the
// gateway did not run.
type seriesJSON struct {
	Name   string    `json:"name"`
	Values []*uint64 `json:"values"`
}

// getTraffic answers with what this gateway counted in the last hour, by minute,
// or the last day, by five minutes.
func (s *Surface) getTraffic(c *fiber.Ctx, sel *selection) error {
	lastIndex, step := 60, 1
	if oneOf(sel, "range", "hour", "day") == "day" {
		lastIndex, step = traffic.Minutes, 5
	}
	if err := sel.Err(); err != nil {
		return err
	}
	view := trafficJSON{Node: s.Node, From: formatTime(s.Now()), Step: step * 60, Series: []seriesJSON{}}
	if s.Traffic != nil {
		chart := s.Traffic.Read(s.Now(), lastIndex, step)
		view.From = formatTime(chart.From)
		for i, series := range s.Traffic.Series() {
			view.Series = append(view.Series, seriesJSON{Name: series.Name, Values: chart.Values[i]})
		}
	}
	return c.JSON(fiber.Map{"data": view})
}
