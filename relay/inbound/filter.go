package inbound

import (
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/condition"
)

// A relay's filter is a condition on the messages that it takes: originator,
// text, time of day (condition.CompileFilter). It is an extension. A message
// that does not meet it goes to the next relay that its number has.

// CheckFilter refuses a filter that does not compile or costs too much; the
// empty one is none.
func CheckFilter(source string) error {
	if source == "" {
		return nil
	}
	_, err := condition.CompileFilter(source)
	return err
}

// validateFilter is CheckFilter with the field named.
func validateFilter(source string) error {
	if err := CheckFilter(source); err != nil {
		return relay.Invalid("filter", fmt.Sprintf("The filter is not valid: %v.", err))
	}
	return nil
}

// holds reports whether a message meets the route's filter. The hours and days
// are those of its receipt, so that a replay decides as the first time.
func (r *Route) holds(m *Message, zone *time.Location) (bool, error) {
	if r.filter == nil {
		return true, nil
	}
	return r.filter.Holds(condition.Message{
		Originator: m.From, Destination: m.To, Text: m.Body(), Coding: int(m.Coding), Network: network(view{m, zone}), At: m.ReceivedAt.In(zone),
	})
}
