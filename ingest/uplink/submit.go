package uplink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// identifierHeader names the device of a submission in its journalled entry.
const identifierHeader = "device"

// Submit takes what a customer adds to a device, as netserver.ParseSubmission
// reads it, by the way that frames take: it is journalled, shows among the
// events and can be replayed. It returns the sensors updated, none when it could
// only be journalled; relay.KindUnavailable when the journal does not take it.
func (s *Surface) Submit(ctx context.Context, acct account.ID, path, identifier string, body []byte) ([]iot.Record, error) {
	entry := intake.Entry{
		Account: acct, Source: string(netserver.Submission), Path: path, ContentType: "application/json",
		Headers: map[string]string{identifierHeader: identifier}, Body: body, Waiter: relay.NewID(time.Now()),
	}
	result := s.waiters.add(entry.Waiter)
	defer s.waiters.remove(entry.Waiter)
	_, err := s.intake.Accept(ctx, &entry)
	switch {
	case errors.Is(err, intake.ErrTooLarge):
		return nil, httpd.ErrBodyTooLarge
	case err != nil:
		s.logger.Error("readings not accepted", "account", acct, "error", err)
		return nil, relay.Errorf(relay.KindUnavailable, "readings of %s: %w", identifier, err)
	}
	return s.updated(ctx, result), nil
}

// submitted reads the frames of a journalled submission.
func submitted(e *intake.Entry) ([]decoders.Frame, error) {
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
