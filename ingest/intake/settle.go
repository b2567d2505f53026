package intake

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// settle brings items to an end: processed, or set aside. It returns an error
// only when ctx is done.
func (i *Intake) settle(ctx context.Context, t turn, items []Item) error {
	if len(items) == 0 {
		return ctx.Err()
	}
	pause := firstPause
	for try := 1; ; try++ {
		now := turn{inTheWorks(t.earlier)}
		marks, err := i.process(ctx, items)
		switch {
		case err == nil:
			return i.judge(ctx, now, items, marks)
		case ctx.Err() != nil:
			return ctx.Err()
		case relay.KindOf(err) == relay.KindUnavailable:
			i.waits(err)
		case len(items) > 1:
			return i.settleApart(ctx, t, items)
		case try >= i.options.Patience:
			i.logger.Error("entry set aside", "event", items[0].ID, "error", err)
			return i.end(ctx, 1, []event.Mark{setAside(items[0], err)})
		}
		if err := sleep(ctx, max(pause, retryAfter(err))); err != nil {
			return err
		}
		pause = min(2*pause, longPause)
	}
}

// settleApart halves a batch until the item that fails stands alone.
func (i *Intake) settleApart(ctx context.Context, t turn, items []Item) error {
	half := len(items) / 2
	if err := i.settle(ctx, t, items[:half]); err != nil {
		return err
	}
	return i.settle(ctx, t, items[half:])
}

// process calls the processor and turns a panic into an error.
func (i *Intake) process(ctx context.Context, items []Item) (marks []event.Mark, err error) {
	defer func() {
		if p := recover(); p != nil {
			i.logger.Error("processor panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	return i.processor.Process(ctx, items)
}

// end records what became of n items. Nothing waits for a back end any more.
func (i *Intake) end(ctx context.Context, n int, marks []event.Mark) error {
	if err := i.mark(ctx, marks); err != nil {
		return err
	}
	i.processed.Add(uint64(n))
	i.trouble.Store(nil)
	return nil
}

// mark records marks, however long that takes.
func (i *Intake) mark(ctx context.Context, marks []event.Mark) error {
	if len(marks) == 0 {
		return nil
	}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := i.marks.Set(ctx, i.kind, marks)
		if err == nil {
			i.setAside.Add(uint64(len(marks)))
			return nil
		}
		i.waits(err)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// waits remembers why nothing moves and says so once.
func (i *Intake) waits(err error) {
	if i.trouble.Swap(&err) == nil {
		i.logger.Warn("processing waits for a back end", "error", err)
	}
}

func setAside(it Item, err error) event.Mark {
	return event.Mark{
		ID: it.ID, Seq: it.Seq, State: event.Quarantined, Reason: Reason(err.Error()),
		Account: it.Entry.Account, Source: it.Entry.Source,
	}
}

// maxReason is how long a reason may be, in bytes: it is kept beside its record.
const maxReason = 2000

// Reason cuts the text of a reason to what a mark may hold, and makes it text.
func Reason(s string) string {
	if len(s) > maxReason {
		s = s[:maxReason] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// retryAfter is how long a back end asked to be left alone.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](err); ok {
		return min(e.RetryAfter(), time.Minute)
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
