package answertest

import (
	"fmt"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// recorder is a test that records the failures.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func TestFailuresNameThePart(t *testing.T) {
	const text = "422 invalid"
	for name, tc := range map[string]struct {
		assert func(testing.TB)
		want   []string
	}{
		"the prefix is there":      {func(t testing.TB) { Begins(t, "it", text, "422 ") }, nil},
		"another prefix":           {func(t testing.TB) { Begins(t, "it", text, "200 ") }, []string{"it does not begin with \"200 \":\n422 invalid"}},
		"all parts are there":      {func(t testing.TB) { Contains(t, "it", text, "422", "valid") }, nil},
		"two of three are missing": {func(t testing.TB) { Contains(t, "it", text, "a1", "in", "b1") }, []string{"it lacks \"a1\":\n422 invalid", "it lacks \"b1\":\n422 invalid"}},
		"no part is there":         {func(t testing.TB) { Lacks(t, "it", text, "200", "secret") }, nil},
		"one of two is there":      {func(t testing.TB) { Lacks(t, "it", text, "200", "invalid") }, []string{"it contains \"invalid\":\n422 invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			tc.assert(r)
			relaytest.Equal(t, "the failures", r.failures, tc.want)
		})
	}
}
