package rule

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestARollbackInTheNextMinuteReleasesNoActions(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 59, 0, time.UTC)
	s := &Service{o: Options{ActionsPerFrame: 10, ActionsPerMinute: 3, Now: func() time.Time { return now }}}
	failing, nextMinute := s.newBudget(1), s.newBudget(1)
	granted, err := failing.grant(&Occurrence{Record: "a"}, 3)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the actions of the first frame", granted, 3)

	now = now.Add(time.Second)
	granted, err = nextMinute.grant(&Occurrence{Record: "b"}, 3)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the actions of the next minute", granted, 3)
	failing.rollback()
	granted, _ = nextMinute.grant(&Occurrence{Record: "c"}, 3)
	relaytest.Equal(t, "the actions beyond the limit", granted, 0)
}
