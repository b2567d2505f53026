package iot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// A program is suspended after maxOverruns consecutive calls that exceeded a limit of
// time or memory, or once such calls took maxOverrun in total.
const (
	maxOverruns = 5
	maxOverrun  = time.Second
)

// suspension is the time for which a suspended program is not run. The next call then decides
// whether it is suspended again.
const suspension = 10 * time.Minute

// slowCall is the average call time from which frames wait for those of other
// accounts.
const slowCall = 20 * time.Millisecond

// program is a compiled source with its run-time statistics. It is kept until the
// source changes, not replaced when other records change.
type program struct {
	codec, source string
	raw           bool
	decoder       decoders.Decoder
	lastUsed      time.Time // by a batch; guarded by programs.mu

	mu       sync.Mutex
	mean     time.Duration // moving average of a call
	overruns int           // consecutive
	lost     time.Duration // in consecutive overruns
	until    time.Time     // end of the last suspension; zero after a successful call
	hasRun   bool
}

// suspended returns why the program is suspended, "" if it is not.
func (p *program) suspended(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !now.Before(p.until) {
		return ""
	}
	return fmt.Sprintf("is suspended until %s, or until its source is changed: it exceeded its limits %d times in succession", p.until.UTC().Format(time.RFC3339), p.overruns)
}

// load returns the moving average of the time of a call, and how many of the last calls
// exceeded a limit.
func (p *program) load() (mean time.Duration, overruns int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mean, p.overruns
}

// recordCall records the duration of a call and reports whether it suspends the
// program. An overrun that started before a suspension does not extend it.
func (p *program) recordCall(now time.Time, took time.Duration, overrun bool) (suspends bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean += (took - p.mean) / 4; !p.hasRun {
		p.mean, p.hasRun = took, true
	}
	if !overrun {
		p.overruns, p.lost, p.until = 0, 0, time.Time{}
		return false
	}
	p.overruns++
	p.lost += took
	if now.Before(p.until) || p.overruns < maxOverruns && p.lost < maxOverrun {
		return false
	}
	p.until = now.Add(suspension)
	return true
}

func (s *Service) newProgram(d Decoder) (*program, error) {
	codec, err := s.compile(d.Codec, d.Source, d.UseRawPayload)
	if err != nil {
		return nil, err
	}
	return &program{codec: d.Codec, source: d.Source, raw: d.UseRawPayload, decoder: codec}, nil
}

// programs holds the programs of an account by decoder. All versions of its records
// share them, so that concurrent batches count overruns together.
type programs struct {
	mu        sync.Mutex
	byDecoder map[string]*program
}

func newPrograms() *programs { return &programs{byDecoder: make(map[string]*program)} }

// reuse returns the existing program of a decoder if its codec, source and payload format are the same.
// Otherwise it stores and returns the new one, which may be nil.
func (ps *programs) reuse(d Decoder, fresh *program, now time.Time) *program {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.byDecoder[d.ID]; p != nil && p.codec == d.Codec && p.source == d.Source && p.raw == d.UseRawPayload {
		p.lastUsed = now
		return p
	}
	if fresh != nil {
		fresh.lastUsed = now
		ps.byDecoder[d.ID] = fresh
	}
	return fresh
}

// sweep removes programs that no batch has used for the duration of a suspension,
// except suspended ones.
func (ps *programs) sweep(now time.Time) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	maps.DeleteFunc(ps.byDecoder, func(_ string, p *program) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return now.Sub(p.lastUsed) > suspension && !p.until.After(now)
	})
}

// program returns the existing program of a decoder, or compiles it.
func (s *Service) program(ps *programs, d Decoder) (*program, error) {
	if p := ps.reuse(d, nil, s.options.Now()); p != nil {
		return p, nil
	}
	p, err := s.newProgram(d)
	if err != nil {
		return nil, err
	}
	return ps.reuse(d, p, s.options.Now()), nil
}

// Codecs counts suspended codecs of all accounts.
type Codecs struct {
	Suspended   int   // at the moment
	Suspensions int64 // since the start
}

// Codecs returns the counts of suspended codecs.
func (s *Service) Codecs() Codecs {
	now, codecs := s.options.Now(), Codecs{Suspensions: s.suspensions.Load()}
	s.accounts.mu.Lock()
	accounts := slices.Collect(maps.Values(s.accounts.accounts))
	s.accounts.mu.Unlock()
	for _, a := range accounts {
		a.programs.mu.Lock()
		for _, p := range a.programs.byDecoder {
			if p.suspended(now) != "" {
				codecs.Suspended++
			}
		}
		a.programs.mu.Unlock()
	}
	return codecs
}

// run decodes a frame and returns the time of the codec. If the codec takes batches, run
// also decodes those of the following frames that have the same codec, until the budget is
// used. It sets the field decoded of each. An error means that the codec could not be run.
func (s *Service) run(ctx context.Context, w *work, following []*work, budget time.Duration) (took time.Duration, err error) {
	program := w.device.decoder.program
	batch, ok := program.decoder.(decoders.BatchDecoder)
	if !ok {
		started := s.options.Now()
		result, err := program.decoder.Decode(w.decoderInput())
		took = s.options.Now().Sub(started)
		w.decoded = &decoders.Decoded{Result: result, Err: err, Took: took}
		return took, nil
	}
	group := []*work{w}
	frames := []*decoders.Frame{w.decoderInput()}
	for _, f := range following {
		if f.device.decoder.program == program && f.NoDefer == w.NoDefer && f.decoded == nil {
			group, frames = append(group, f), append(frames, f.decoderInput())
		}
	}
	decoded, err := batch.DecodeBatch(ctx, int64(w.Account), frames, budget)
	if err != nil {
		return 0, err
	}
	for i := range decoded {
		if !decoded[i].Skipped {
			group[i].decoded = &decoded[i]
			took += decoded[i].Took
		}
	}
	return took, nil
}

// recordRun records the duration of the call that decoded a frame with its program, and logs
// a suspension.
func (s *Service) recordRun(w *work) {
	now, c := s.options.Now(), w.device.decoder
	if !w.preview && c.program.recordCall(now, w.decoded.Took, w.decoded.LimitExceeded) {
		s.suspensions.Add(1)
		s.options.Logger.Error("decoder suspended: its codec keeps exceeding its limits",
			"account", w.Account, "decoder", c.ID, "until", now.Add(suspension).UTC())
	}
}

// Limits on the decoding time of one batch: accountTime is the time of one account
// after which its frames wait for those of other accounts, batchTime the total
// after which waiting frames are deferred. A running call is not interrupted.
const (
	accountTime = 100 * time.Millisecond
	batchTime   = time.Second
)

// scheduler shares the decoding time of one batch among accounts and devices.
type scheduler struct {
	spent     map[relay.AccountID]time.Duration
	total     time.Duration
	queues    []*accountQueue
	byAccount map[relay.AccountID]*accountQueue
}

// accountQueue holds the waiting frames of an account by device, which take turns:
// each device's first frame comes before any device's second.
type accountQueue struct {
	acct    relay.AccountID
	devices [][]*work
	index   map[*cachedDevice]int
}

// enqueue queues a frame that must wait, and reports whether it does: its codec is
// slow, or its account or the batch has used up its time.
func (s *scheduler) enqueue(w *work) bool {
	if mean, _ := w.device.decoder.program.load(); mean < slowCall && s.spent[w.Account] < accountTime && s.total < batchTime {
		return false
	}
	q := s.byAccount[w.Account]
	if q == nil {
		if s.byAccount == nil {
			s.byAccount = make(map[relay.AccountID]*accountQueue)
		}
		q = &accountQueue{acct: w.Account, index: make(map[*cachedDevice]int)}
		s.byAccount[w.Account], s.queues = q, append(s.queues, q)
	}
	i, found := q.index[w.device]
	if !found {
		i = len(q.devices)
		q.index[w.device], q.devices = i, append(q.devices, nil)
	}
	q.devices[i] = append(q.devices[i], w)
	return true
}

// budget is the time that is left before frames of the account must wait; 0 means no limit.
func (s *scheduler) budget(w *work) time.Duration {
	if w.NoDefer {
		return 0
	}
	return max(time.Nanosecond, min(accountTime-s.spent[w.Account], batchTime-s.total))
}

// next removes the next frame from the queues: that of the device waiting longest,
// in the account that has used the least time. It returns nil if none waits.
func (s *scheduler) next() *work {
	if len(s.queues) == 0 {
		return nil
	}
	leastUsed := 0
	for i, q := range s.queues {
		if s.spent[q.acct] < s.spent[s.queues[leastUsed].acct] {
			leastUsed = i
		}
	}
	q := s.queues[leastUsed]
	frames := q.devices[0]
	if q.devices = q.devices[1:]; len(frames) > 1 {
		q.devices = append(q.devices, frames[1:])
	}
	if len(q.devices) == 0 {
		s.queues = append(s.queues[:leastUsed:leastUsed], s.queues[leastUsed+1:]...)
	}
	return frames[0]
}
