package admin

import (
	"maps"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/replay"
)

// DryRun is the answer to a dry run.
type DryRun struct {
	replay.DryRun
	Rules bool       `json:"rules"`          // rules would evaluate the frames
	Away  []awayJSON `json:"away,omitempty"` // gateways without an answer
}

// dryRun answers a replay request with dry_run set. It previews frames but only counts messages;
// explainRelay explains a single message.
func (s *Surface) dryRun(c *fiber.Ctx, intakes []*intake.Intake, f event.Filter, rules bool, limit int, otherGateways []gateway.Gateway) error {
	if err := httpd.AdmitTo(c, httpd.Searches, principalOf(c).SearchAccount()); err != nil {
		return err
	}
	answer := DryRun{Rules: rules, DryRun: replay.DryRun{ChangedEvents: []replay.PreviewedEvent{}}}
	for _, i := range intakes {
		var part replay.DryRun
		var err error
		if i.Kind() == event.Uplink {
			part, err = replay.Preview(c.UserContext(), s.Inspector, f, limit, s.Now)
		} else {
			var end intake.SearchEnd
			part.Count, end, err = i.Count(c.UserContext(), f, time.Now().Add(maxSearchTime))
			part.SearchedTo = end.Time
		}
		if err != nil {
			return err
		}
		answer.Join(part, limit)
	}
	parts, awayGateways := forwardToAll[DryRun](c, s.Peers, otherGateways)
	for _, node := range slices.Sorted(maps.Keys(parts)) {
		answer.Join(parts[node].DryRun, limit)
	}
	answer.SearchedTo, answer.Away = answer.SearchedTo.UTC(), awayGateways
	return c.JSON(answer)
}
