package usage

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
)

// run does a job as the queue does.
func (w *fixture) run(s *Service, id string) job.Job {
	w.t.Helper()
	j := w.jobs[id]
	run := s.RunCDR
	if j.Kind == ReportKind {
		run = s.RunReport
	}
	result, err := run(w.t.Context(), j)
	if reason, ok := job.Reason(err); ok {
		j.State, j.Error = job.Failed, reason
	} else if err == nil {
		j.State = job.Completed
		j.Result, err = json.Marshal(result)
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.jobs[id] = j
	return j
}

// fill has five records of three SIMs.
func (w *fixture) fill() {
	w.sims["A"], w.sims["B"], w.sims["C"] = sim.SIM{Subscriber: "s1"}, sim.SIM{Subscriber: "s2"}, sim.SIM{}
	w.subscribers["s1"], w.subscribers["s2"], w.subscribers["s3"] = sim.Subscriber{CompanyName: "Acme"}, sim.Subscriber{}, sim.Subscriber{CompanyName: "Idle"}
	w.take(use("1", "A", at(3, 0), 1), use("2", "B", at(2, 0), 2), use("3", "C", at(2, 0), 4), use("4", "A", at(1, 0), 8), use("5", "A", at(30, 0), 16))
}

func november(to time.Time) Request { return Request{Start: at(1, 0), End: to} }

func TestWhatIsAskedForWrongly(t *testing.T) {
	for name, tc := range map[string]struct {
		ask   Request
		kind  relay.Kind
		field string
		text  string
	}{
		"an end before the start":     {Request{Start: at(2, 0), End: at(1, 0)}, relay.KindInvalid, "end_time", "The end time must be a date after start time."},
		"an end at the start":         {Request{Start: at(2, 0), End: at(2, 0)}, relay.KindInvalid, "end_time", "The end time must be a date after start time."},
		"more than 31 days":           {november(at(1, 0).Add(MaxSpan + time.Second)), relay.KindInvalid, "end_time", "The end time must be at most 31 days after start time."},
		"nobody's subscriber":         {Request{Start: at(1, 0), End: at(9, 0), Subscriber: "s9"}, relay.KindInvalid, "subscriber_id", "The selected subscriber id is invalid."},
		"a time without records":      {Request{Start: at(4, 0), End: at(9, 0)}, relay.KindNotFound, "", ""},
		"a subscriber without SIMs":   {Request{Start: at(1, 0), End: at(9, 0), Subscriber: "s3"}, relay.KindNotFound, "", ""},
		"a subscriber without usage":  {Request{Start: at(3, 0), End: at(9, 0), Subscriber: "s2"}, relay.KindNotFound, "", ""},
		"a name that is too long":     {Request{Start: at(1, 0), End: at(9, 0), Name: strings.Repeat("é", 256)}, relay.KindInvalid, "name", "The name must be at most 255 characters."},
		"a name as long as may be":    {Request{Start: at(4, 0), End: at(9, 0), Name: strings.Repeat("é", 255)}, relay.KindNotFound, "", ""},
		"records that start too late": {Request{Start: at(9, 0), End: at(30, 0)}, relay.KindNotFound, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.fill()
			_, err := w.service().RequestCDR(t.Context(), 1, tc.ask)
			relaytest.Equal(t, "the kind of error", relay.KindOf(err), tc.kind)
			if tc.field != "" {
				relaytest.Equal(t, "the fields with problems", relay.FieldsOf(err), map[string][]string{tc.field: {tc.text}})
			}
			if len(w.jobs) != 0 {
				t.Error("a job was made")
			}
			if tc.ask.Subscriber != "" {
				return
			}
			_, err = w.service().RequestUsage(t.Context(), 1, tc.ask) // may be empty
			if tc.kind == relay.KindInvalid && relay.KindOf(err) != tc.kind || tc.kind == relay.KindNotFound && err != nil {
				t.Errorf("report: %v", err)
			}
		})
	}
}

func TestACDRFileHasTheRecordsOfItsTime(t *testing.T) {
	for name, tc := range map[string]struct {
		ask  Request
		want string
	}{
		"all, by time":          {november(at(30, 0)), "4 A, 2 B, 3 C, 1 A"},
		"those of a subscriber": {Request{Start: at(1, 0), End: at(30, 1), Subscriber: "s1"}, "4 A, 1 A, 5 A"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.fill()
			s := w.service()
			id, err := s.RequestCDR(t.Context(), 1, tc.ask)
			if err != nil || !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(id) {
				t.Fatal(id, err)
			}
			if _, err := s.CDR(t.Context(), 1, id); !errors.Is(err, ErrNotCompleted) {
				t.Error(err)
			}
			j := w.jobs[id]
			relaytest.Equal(t, "list, kind and retention of the job", []any{j.List, j.Kind, j.Keep}, []any{"mno", CDRKind, jobLife})
			w.broken = "make"
			w.run(s, id)
			w.run(s, id)
			f, err := s.CDR(t.Context(), 1, id)
			if err != nil || !strings.HasPrefix(f.Name, "cdr-20261101-2026113") {
				t.Fatal(f.Name, err)
			}
			text, err := io.ReadAll(f)
			if err != nil || int64(len(text)) != f.Size {
				t.Fatal(err)
			}
			head, rest, _ := strings.Cut(string(text), "\n")
			var got []string
			for _, line := range strings.Split(strings.TrimSpace(rest), "\n") {
				cell := strings.Split(line, ",")
				got = append(got, cell[0]+" "+cell[1])
			}
			if head != "id,iccid,start_time,type,bytes,duration" || strings.Join(got, ", ") != tc.want {
				t.Errorf("%s: %q", head, got)
			}
		})
	}
}

func TestAReportAddsUpBySubscriber(t *testing.T) {
	w := newFixture(t)
	w.fill()
	s := w.service()
	ask := november(at(30, 0))
	ask.Name = "November"
	id, err := s.RequestUsage(t.Context(), 1, ask)
	relaytest.NoError(t, err)
	if _, err := s.Usage(t.Context(), 1, id, 0, 10); !errors.Is(err, ErrNotCompleted) {
		t.Error(err)
	}
	j := w.run(s, id)
	relaytest.Equal(t, "name and result of the job", []string{j.Name, string(j.Result)}, []string{"November", `{"count":3}`})
	w.run(s, id) // again
	want := []Row{{"C", "", "", 4}, {"A", "s1", "Acme", 9}, {"B", "s2", "", 2}}
	got, err := s.Usage(t.Context(), 1, id, 0, 10)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the report", got, Report{Span{at(1, 0), at(30, 0)}, want, 3})
	got, err = s.Usage(t.Context(), 1, id, 2, 1)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the rows of the last page", got.Rows, want[2:])
	relaytest.Equal(t, "the total", got.Total, 3)
}

func TestWhatCannotBeHandedOut(t *testing.T) {
	w := newFixture(t)
	w.fill()
	s := w.service()
	file, err1 := s.RequestCDR(t.Context(), 1, november(at(30, 0)))
	report, err2 := s.RequestUsage(t.Context(), 1, november(at(30, 0)))
	relaytest.NoError(t, errors.Join(err1, err2))
	w.run(s, file)
	w.run(s, report)
	usage := func(id string) error { _, err := s.Usage(t.Context(), 1, id, 0, 1); return err }
	_, foreign := s.CDR(t.Context(), 2, file)
	_, confused := s.CDR(t.Context(), 1, report)
	_, none := s.CDR(t.Context(), 1, "none")
	delete(w.files, file)
	_, removed := s.CDR(t.Context(), 1, file)
	also := usage(file)
	w.clock.Advance(ReportLife)
	for name, err := range map[string]error{
		"another account's": foreign, "a report as a file": confused, "no job": none, "a file that is gone": removed, "a file as a report": also,
		"after 30 days": usage(report),
	} {
		if relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMistakesOfTheProgramAreErrors(t *testing.T) {
	w := newFixture(t)
	w.fill()
	s := w.service()
	if _, err := s.RunReport(t.Context(), job.Job{Input: json.RawMessage(`7`)}); err == nil {
		t.Error("an input that is none")
	}
}
