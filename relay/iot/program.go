package iot

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// A program is suspended after maxOverruns consecutive calls that exceeded a limit of time or memory,
// or after consecutive calls of this kind took maxOverrunTime in total.
const (
	maxOverruns    = 5
	maxOverrunTime = time.Second
)

// suspension is the time for which a suspended program is not run. The next call decides whether the
// program is suspended again.
const suspension = 10 * time.Minute

// slowCall is the average duration of a call from which on a program is slow: its frames wait for
// frames of other accounts.
const slowCall = 20 * time.Millisecond

// program is a compiled codec of a decoder with its run-time statistics. It is replaced only when the
// decoder's codec, source or payload format changes.
type program struct {
	codecName, source string
	rawPayload        bool
	codec             decoders.Decoder
	lastUsed          time.Time // last use by a batch; guarded by programs.mu

	mu          sync.Mutex
	mean        time.Duration // moving average of the duration of a call
	overruns    int           // number of consecutive overruns
	overrunTime time.Duration // total time of consecutive overruns
	resumesAt   time.Time     // end of the last suspension; zero after a successful call
	hasRun      bool
}

// suspensionReason returns the reason why the program is suspended, or "".
func (p *program) suspensionReason(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !now.Before(p.resumesAt) {
		return ""
	}
	return fmt.Sprintf("is suspended until %s, or until its source is changed: it exceeded its limits %d times in succession", p.resumesAt.UTC().Format(time.RFC3339), p.overruns)
}

// stats returns the moving average of the duration of a call, and the number of consecutive last calls
// that exceeded a limit.
func (p *program) stats() (mean time.Duration, overruns int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mean, p.overruns
}

// recordCall records the duration of a call and reports whether it suspends the program. An overrun
// that started before a suspension does not extend it.
func (p *program) recordCall(now time.Time, took time.Duration, overrun bool) (suspends bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean += (took - p.mean) / 4; !p.hasRun {
		p.mean, p.hasRun = took, true
	}
	if !overrun {
		p.overruns, p.overrunTime, p.resumesAt = 0, 0, time.Time{}
		return false
	}
	p.overruns++
	p.overrunTime += took
	if now.Before(p.resumesAt) || p.overruns < maxOverruns && p.overrunTime < maxOverrunTime {
		return false
	}
	p.resumesAt = now.Add(suspension)
	return true
}

func (s *Service) newProgram(d Decoder) (*program, error) {
	codec, err := s.compile(d.Codec, d.Source, d.UseRawPayload)
	if err != nil {
		return nil, err
	}
	return &program{codecName: d.Codec, source: d.Source, rawPayload: d.UseRawPayload, codec: codec}, nil
}

// programs holds the programs of an account by decoder. All versions of the account's cache
// share them, so that concurrent batches count overruns together.
type programs struct {
	mu        sync.Mutex
	byDecoder map[string]*program
}

// reuse returns the existing program of a decoder if its codec, source and payload format are the
// same. Otherwise it stores and returns newProgram, which may be nil.
func (ps *programs) reuse(d Decoder, newProgram *program, now time.Time) *program {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.byDecoder[d.ID]
	if p == nil || p.codecName != d.Codec || p.source != d.Source || p.rawPayload != d.UseRawPayload {
		if p = newProgram; p == nil {
			return nil
		}
		ps.byDecoder[d.ID] = p
	}
	p.lastUsed = now
	return p
}

// sweep removes programs that no batch has used for longer than a suspension, except suspended
// programs.
func (ps *programs) sweep(now time.Time) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	maps.DeleteFunc(ps.byDecoder, func(_ string, p *program) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return now.Sub(p.lastUsed) > suspension && !p.resumesAt.After(now)
	})
}

// program returns the existing program of a decoder or compiles it.
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

// Codecs counts the suspensions of codecs of all accounts.
type Codecs struct {
	Suspended   int   // number of suspended codecs
	Suspensions int64 // number of suspensions since the start
}

// Codecs returns the counts of suspended codecs and of suspensions.
func (s *Service) Codecs() Codecs {
	now, codecs := s.options.Now(), Codecs{Suspensions: s.suspensions.Load()}
	s.records.mu.Lock()
	defer s.records.mu.Unlock()
	for _, a := range s.records.accounts {
		a.programs.mu.Lock()
		for _, p := range a.programs.byDecoder {
			if p.suspensionReason(now) != "" {
				codecs.Suspended++
			}
		}
		a.programs.mu.Unlock()
	}
	return codecs
}

// runProgram decodes a frame and returns the time that the codec took. If the codec decodes batches, it
// also decodes the following frames with the same program, until the budget is used up. runProgram
// sets the field decoded of each decoded frame. An error means that the codec could not be
// run.
func (s *Service) runProgram(ctx context.Context, w *workItem, following []*workItem, budget time.Duration) (took time.Duration, err error) {
	program := w.device.decoder.program
	batchDecoder, ok := program.codec.(decoders.BatchDecoder)
	if !ok {
		started := s.options.Now()
		result, err := program.codec.Decode(w.decoderInput())
		took = s.options.Now().Sub(started)
		w.decoded = &decoders.Decoded{Result: result, Err: err, CPUTime: took}
		return took, nil
	}
	group := []*workItem{w}
	frames := []*decoders.Frame{w.decoderInput()}
	for _, candidate := range following {
		if candidate.device.decoder.program == program && candidate.DecodeNow == w.DecodeNow && candidate.decoded == nil {
			group, frames = append(group, candidate), append(frames, candidate.decoderInput())
		}
	}
	decoded, err := batchDecoder.DecodeBatch(ctx, int64(w.Account), frames, budget)
	if err != nil {
		return 0, err
	}
	for i := range decoded {
		if !decoded[i].Skipped {
			group[i].decoded = &decoded[i]
			took += decoded[i].CPUTime
		}
	}
	return took, nil
}

// recordCall records the duration of the call that decoded a frame, and logs a suspension.
func (s *Service) recordCall(w *workItem) {
	now, c := s.options.Now(), w.device.decoder
	if !w.preview && c.program.recordCall(now, w.decoded.CPUTime, w.decoded.LimitExceeded) {
		s.suspensions.Add(1)
		s.options.Logger.Error("decoder suspended: its codec keeps exceeding its limits",
			"account", w.Account, "decoder", c.ID, "until", now.Add(suspension).UTC())
	}
}

// Limits of the decoding time of a batch. After accountTime, frames of an account wait for frames of
// other accounts. After batchTime in total, waiting frames are deferred. A running call is not
// interrupted.
const (
	accountTime = 100 * time.Millisecond
	batchTime   = time.Second
)

// scheduler shares the decoding time of one batch among accounts and devices.
type scheduler struct {
	spent     map[relay.AccountID]time.Duration
	total     time.Duration // decoding time of all accounts
	queues    []*accountQueue
	byAccount map[relay.AccountID]*accountQueue
}

// accountQueue has the waiting frames of an account by device. Devices take turns: the first frame of
// each device comes before the second frame of any device.
type accountQueue struct {
	acct    relay.AccountID
	devices [][]*workItem
	index   map[*cachedDevice]int
}

// enqueue queues a frame and returns true if its codec is slow, or if the time of its account or of the
// batch is used up.
func (s *scheduler) enqueue(w *workItem) bool {
	if mean, _ := w.device.decoder.program.stats(); mean < slowCall && s.spent[w.Account] < accountTime && s.total < batchTime {
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

// budget returns the decoding time that the account of a frame has left before its frames must wait; 0
// means no limit.
func (s *scheduler) budget(w *workItem) time.Duration {
	if w.DecodeNow {
		return 0
	}
	return max(time.Nanosecond, min(accountTime-s.spent[w.Account], batchTime-s.total))
}

// dequeue removes and returns the next frame. It selects the account that has used the least time, and
// of this account the device that has waited longest. It returns nil if no frame waits.
func (s *scheduler) dequeue() *workItem {
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
