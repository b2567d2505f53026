package httpd

import (
	"cmp"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
)

// Kind is a kind of traffic. Each kind has its own limits.
type Kind int

// The kinds of traffic. Health checks, metrics, the console and the documentation have no limit.
const (
	API      Kind = iota // REST and SOAP
	Webhooks             // journalled traffic: webhooks, carriers, call records
	Operator             // the admin API; only the memory of bodies is limited
	Searches             // operations of REST and the admin API that read many records
	Exports              // downloads of files and ledgers
	kinds
)

// String returns the name of the kind in metrics and logs.
func (k Kind) String() string {
	return [kinds]string{"api", "webhooks", "operator", "searches", "exports"}[k]
}

// deadline returns the time limit of a request after its body has arrived. The admin API has a
// long limit because it applies inventories, replays events and recovers.
func (k Kind) deadline() time.Duration {
	return [kinds]time.Duration{time.Minute, 30 * time.Second, time.Hour, 30 * time.Second, 10 * time.Minute}[k]
}

// The maximum numbers of concurrent searches and exports, and the maximum wait for a slot. All
// viewers together count as one account, and so do all other staff.
const (
	defaultSearches = 8
	maxExports      = 32
	searchWait      = 5 * time.Second
)

// RequestLimit is the limit of the concurrent requests of a kind.
type RequestLimit struct {
	Requests int
	Bytes    int64 // the memory of bodies
}

// LimitOptions configures Limits; the zero value works.
type LimitOptions struct {
	Webhooks RequestLimit // 0 means 512 requests, 32 MiB
	API      RequestLimit // 0 means 256 requests, 64 MiB
	// Searches is the maximum number of concurrent searches; 0 means 8.
	Searches int
	// AccountShare is the maximum share of an account in each limit, in percent; 0 means 50.
	AccountShare int
	// Wait is the time for which a request waits for a slot before it is refused; 0 means
	// 250 ms.
	Wait time.Duration
	// Connections is the maximum number of open connections; 0 means 10,000.
	Connections int
	// Unauthenticated is the maximum memory in bytes of bodies that are read before
	// authentication; 0 means 32 MiB.
	Unauthenticated int64
	Logger          *slog.Logger // nil means slog.Default
}

// Limits limits the concurrent requests, the memory of their bodies, and the connections. It refuses
// excess requests with 503 and Retry-After before anything is stored, and closes excess
// connections.
type Limits struct {
	kinds                  [kinds]*slots
	unauthenticated        budget
	refusedUnauthenticated atomic.Uint64 // requests refused because of LimitOptions.Unauthenticated
	connections            int
	evicted                atomic.Uint64 // connections that were closed in favour of new ones
	unserved               atomic.Uint64 // new connections that were refused
	logger                 *slog.Logger
	lastLogged             atomic.Int64 // the time of the last log line, in Unix seconds
	sinceLogged            atomic.Int64 // the number of refusals since lastLogged
}

// NewLimits returns Limits with the options o.
func NewLimits(o LimitOptions) *Limits {
	share, wait := cmp.Or(o.AccountShare, 50), cmp.Or(o.Wait, 250*time.Millisecond)
	slotsOf := func(b RequestLimit, requests int, bytes int64) *slots {
		return newSlots(RequestLimit{cmp.Or(b.Requests, requests), cmp.Or(b.Bytes, bytes)}, share, wait)
	}
	l := &Limits{
		unauthenticated: budget{limit: cmp.Or(o.Unauthenticated, 32<<20)}, connections: cmp.Or(o.Connections, 10_000), logger: o.Logger,
	}
	l.kinds[API] = slotsOf(o.API, 256, 64<<20)
	l.kinds[Webhooks] = slotsOf(o.Webhooks, 512, 32<<20)
	l.kinds[Operator] = newSlots(RequestLimit{Bytes: 64 << 20}, 100, wait)
	l.kinds[Searches] = newSlots(RequestLimit{Requests: cmp.Or(o.Searches, defaultSearches)}, share, searchWait)
	l.kinds[Exports] = newSlots(RequestLimit{Requests: maxExports}, share, searchWait)
	return l
}

// ErrOverloaded means that a request was refused because of a limit.
var ErrOverloaded = errors.Join(
	fiber.NewError(fiber.StatusServiceUnavailable, unavailableMessage),
	relay.Errorf(relay.KindUnavailable, "too many requests at once"),
)

// Admit acquires a slot of a kind for a request of an account until the handler returns, for
// surfaces with their own authentication. The error is ErrOverloaded.
func Admit(c *fiber.Ctx, k Kind, acct relay.AccountID) error {
	s := stateOf(c)
	if s == nil {
		return nil // an app that was not created by New
	}
	if s.admitted {
		return nil
	}
	s.enter(k)
	s.account = acct
	return s.acquire(c)
}

// errTooMany means that the limit of concurrent searches or exports is reached.
var errTooMany = errors.Join(
	fiber.NewError(fiber.StatusServiceUnavailable, "Too many searches or exports run at the same time. Please try again later."),
	relay.Errorf(relay.KindUnavailable, "too many searches or exports run at the same time: try again later"),
)

// Search is a handler that admits an account's request as a search.
func Search(c *fiber.Ctx) error { return admitOther(c, Searches) }

// Export is a handler that admits an account's request as an export.
func Export(c *fiber.Ctx) error { return admitOther(c, Exports) }

func admitOther(c *fiber.Ctx, k Kind) error {
	acct := AccountOf(c)
	if principal := PrincipalOf(c); principal.Role != "" {
		acct = principal.SearchAccount()
	}
	if err := AdmitTo(c, k, acct); err != nil {
		return err
	}
	return c.Next()
}

// AdmitTo acquires a slot for searches or exports for an authenticated request until the answer is
// written.
func AdmitTo(c *fiber.Ctx, k Kind, acct relay.AccountID) error {
	s := stateOf(c)
	if s == nil || s.releaseExtra != nil {
		return nil
	}
	slots := s.limits.kinds[k]
	if reason := slots.acquire(acct); reason != "" {
		c.Set(fiber.HeaderRetryAfter, retryAfter)
		s.limits.log(k.String(), reason, acct)
		return errTooMany
	}
	s.releaseExtra = func() { slots.release(acct) }
	s.setDeadline(k.deadline())
	return nil
}

// Waiting releases the slot of a request. Handlers call it before they wait for a result.
func Waiting(c *fiber.Ctx) {
	if s := stateOf(c); s != nil {
		s.releaseSlot()
	}
}

func (r *requestState) acquire(c *fiber.Ctx) error {
	if reason := r.limits.kinds[r.kind].acquire(r.account); reason != "" {
		return r.refuse(c, r.kind.String(), reason)
	}
	r.admitted = true
	return nil
}

func (r *requestState) releaseSlot() {
	if r.admitted {
		r.limits.kinds[r.kind].release(r.account)
		r.admitted = false
	}
}

// refuse logs a refusal and returns ErrOverloaded.
func (r *requestState) refuse(c *fiber.Ctx, kind string, cause reason) error {
	c.Set(fiber.HeaderRetryAfter, retryAfter)
	r.limits.log(kind, cause, r.account)
	return ErrOverloaded
}

// logEvery is the minimum interval between log lines about refusals, in seconds.
const logEvery = 10

func (l *Limits) log(kind string, cause reason, acct relay.AccountID) {
	n, now, lastLogged := l.sinceLogged.Add(1), time.Now().Unix(), l.lastLogged.Load()
	if now-lastLogged < logEvery || !l.lastLogged.CompareAndSwap(lastLogged, now) {
		return
	}
	l.sinceLogged.Add(-n)
	cmp.Or(l.logger, slog.Default()).Warn("requests refused: the gateway is overloaded", "kind", kind, "reason", string(cause), "account", acct, "refused", n)
}

// LimitStats is a snapshot of Limits. The keys are names of kinds. A key of Refused is the name of
// a kind, "connections" or "unauthenticated", and a reason.
type LimitStats struct {
	InFlight, Waiting map[string]int
	Bytes             map[string]int64
	Refused           map[[2]string]uint64 // since the start
}

// Stats returns a snapshot of the limits.
func (l *Limits) Stats() LimitStats {
	stats := LimitStats{InFlight: make(map[string]int), Waiting: make(map[string]int), Bytes: make(map[string]int64), Refused: map[[2]string]uint64{
		{"connections", string(reasonEvicted)}: l.evicted.Load(), {"connections", string(reasonFull)}: l.unserved.Load(),
		{"unauthenticated", string(reasonBytes)}: l.refusedUnauthenticated.Load(),
	}}
	for k, s := range l.kinds {
		s.mu.Lock()
		name, reasons := Kind(k).String(), []reason{reasonBytes, reasonAccountBytes}
		if Kind(k) != Operator {
			reasons = append(reasons, reasonRequests, reasonAccount)
			stats.InFlight[name], stats.Waiting[name] = s.used, s.waiting
		}
		stats.Bytes[name] = s.bytes
		for _, reason := range reasons {
			stats.Refused[[2]string{name, string(reason)}] = s.refused[reason]
		}
		s.mu.Unlock()
	}
	return stats
}
