package uplink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// identifierHeader is the header with the device in the journal entry of a submission.
const identifierHeader = "device"

// Submit accepts readings that a customer adds to a device, in the format of
// netserver.ParseSubmission. Readings are processed like frames: they are journalled, listed as
// events, and can be replayed. Submit returns the updated sensors, or none if the readings were only
// journalled. It returns httpd.ErrBodyTooLarge if the body is too large for the journal, and a
// relay.KindUnavailable error if the journal does not accept it for another reason.
func (s *Surface) Submit(ctx context.Context, acct relay.AccountID, path, identifier string, body []byte) (iot.UpdatedSensors, error) {
	entry := intake.Entry{
		Account: acct, Source: string(netserver.Submission), Path: path, ContentType: "application/json",
		Headers: map[string]string{identifierHeader: identifier}, Body: body, Waiter: relay.NewID(time.Now()),
	}
	result := s.waiters.add(entry.Waiter)
	defer s.waiters.remove(entry.Waiter)
	_, err := s.intake.Accept(ctx, &entry)
	switch {
	case errors.Is(err, intake.ErrTooLarge):
		return iot.UpdatedSensors{}, httpd.ErrBodyTooLarge
	case err != nil:
		s.logger.ErrorContext(ctx, "readings not accepted", "account", acct, "error", err)
		return iot.UpdatedSensors{}, relay.Errorf(relay.KindUnavailable, "readings of %s: %w", identifier, err)
	}
	return s.awaitResult(ctx, result), nil
}

// parseSubmission parses the frames of a journalled submission.
func parseSubmission(e *intake.Entry) ([]decoders.Frame, error) {
	frames, faults := netserver.ParseSubmission(e.Headers[identifierHeader], e.Body)
	if len(faults) == 0 {
		return frames, nil
	}
	problems := make([]string, len(faults))
	for i, f := range faults {
		problems[i] = f.Problem
	}
	return frames, fmt.Errorf("%s", strings.Join(problems, " "))
}

// answer is the result of a post for the waiting request.
type answer struct {
	points []iot.Point
	notes  decoders.Notes
}

// waiters holds the requests that wait for the result of their post.
type waiters struct {
	mu       sync.Mutex
	channels map[string]chan answer // by the id of the request
}

func (w *waiters) add(id string) <-chan answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := make(chan answer, 1)
	w.channels[id] = ch
	return ch
}

func (w *waiters) remove(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.channels, id)
}

// notify sends the result of a post to the request with an id, if it is still waiting.
func (w *waiters) notify(id string, a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch, ok := w.channels[id]; ok {
		ch <- a
		delete(w.channels, id)
	}
}
