package admin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/admin/traffic"
)

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
