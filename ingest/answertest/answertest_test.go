package answertest

import (
	"fmt"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// recorder is a testing.TB that records the failures.
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
		"the prefix is there":      {func(t testing.TB) { HasPrefix(t, "answer", text, "422 ") }, nil},
		"another prefix":           {func(t testing.TB) { HasPrefix(t, "answer", text, "200 ") }, []string{"answer does not begin with \"200 \":\n422 invalid"}},
		"all parts are there":      {func(t testing.TB) { Contains(t, "answer", text, "422", "valid") }, nil},
		"two of three are missing": {func(t testing.TB) { Contains(t, "answer", text, "a1", "in", "b1") }, []string{"answer lacks \"a1\":\n422 invalid", "answer lacks \"b1\":\n422 invalid"}},
		"no part is there":         {func(t testing.TB) { NotContains(t, "answer", text, "200", "secret") }, nil},
		"one of two is there":      {func(t testing.TB) { NotContains(t, "answer", text, "200", "invalid") }, []string{"answer contains \"invalid\":\n422 invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			tc.assert(r)
			relaytest.Equal(t, "the failures", r.failures, tc.want)
		})
	}
}
