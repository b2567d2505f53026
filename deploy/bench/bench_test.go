package main

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestOnlyMustNameAPart(t *testing.T) {
	chosen, err := selected("sims")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of parts", len(chosen), 1)
	chosen, err = selected("")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of parts without a name", len(chosen), len(parts()))
	_, err = selected("frame")
	if err == nil || !strings.Contains(err.Error(), "frames, overload, rules, scripts, relayed, idle, sims, sends, console") {
		t.Errorf("selecting an unknown part: error %v, want the names of all parts", err)
	}
}

func TestRatiosAreComparedRoundByRound(t *testing.T) {
	rounds := func(counts ...int64) (s subject) {
		for _, n := range counts {
			s.rounds = append(s.rounds, outcome{count: n, done: time.Second})
		}
		return s
	}
	s, otherSubject := rounds(10, 40, 90), rounds(10, 20, 30)
	relaytest.Equal(t, "the median", s.median(outcome.doneRate), 40)
	relaytest.Equal(t, "the median of the ratios", s.ratio(&otherSubject, outcome.doneRate), 2)
}

func TestFramesDifferInNumberDeviceAndTime(t *testing.T) {
	s := &sender{target: &target{base: time.Unix(0, 0)}, devices: 10, firstDevice: 0x100}
	for n, want := range map[int64][]string{
		3:  {`-000000000003"`, `"devEui":"a840416b2c000103"`, `"fCnt":0,`, `00:00:00.000003Z`},
		25: {`-000000000025"`, `"devEui":"a840416b2c000105"`, `"fCnt":2,`, `00:00:00.000025Z`},
	} {
		for _, text := range want {
			if body := s.body(n); !strings.Contains(body, text) {
				t.Errorf("frame %d is %s, want it to contain %s", n, body, text)
			}
		}
	}
}
