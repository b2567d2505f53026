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

// runJob runs a job and stores its outcome, as the queue does.
func (f *fixture) runJob(s *Service, id string) job.Job {
	f.t.Helper()
	j := f.jobs[id]
	run := s.RunCDR
	if j.Kind == ReportKind {
		run = s.RunReport
	}
	result, err := run(f.t.Context(), j)
	if reason, ok := job.Reason(err); ok {
		j.State, j.Error = job.Failed, reason
	} else if err == nil {
		j.State = job.Completed
		j.Result, err = json.Marshal(result)
		if err != nil {
			f.t.Fatal(err)
		}
	}
	f.jobs[id] = j
	return j
}

// addRecords adds five records of three SIMs.
func (f *fixture) addRecords() {
	f.sims["A"], f.sims["B"], f.sims["C"] = sim.SIM{Subscriber: "s1"}, sim.SIM{Subscriber: "s2"}, sim.SIM{}
	f.subscribers["s1"], f.subscribers["s2"], f.subscribers["s3"] = sim.Subscriber{CompanyName: "Acme"}, sim.Subscriber{}, sim.Subscriber{CompanyName: "Idle"}
	f.takeRecords(use("1", "A", atHour(3, 0), 1), use("2", "B", atHour(2, 0), 2), use("3", "C", atHour(2, 0), 4), use("4", "A", atHour(1, 0), 8), use("5", "A", atHour(30, 0), 16))
}

func november(end time.Time) Request { return Request{Start: atHour(1, 0), End: end} }

func TestInvalidAndEmptyRequestsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		request Request
		kind    relay.Kind
		field   string
		text    string
	}{
		"end before the start":         {Request{Start: atHour(2, 0), End: atHour(1, 0)}, relay.KindInvalid, "end_time", "The end time must be a date after start time."},
		"end equal to the start":       {Request{Start: atHour(2, 0), End: atHour(2, 0)}, relay.KindInvalid, "end_time", "The end time must be a date after start time."},
		"more than 31 days":            {november(atHour(1, 0).Add(MaxSpan + time.Second)), relay.KindInvalid, "end_time", "The end time must be at most 31 days after start time."},
		"unknown subscriber":           {Request{Start: atHour(1, 0), End: atHour(9, 0), Subscriber: "s9"}, relay.KindInvalid, "subscriber_id", "The selected subscriber id is invalid."},
		"time without records":         {Request{Start: atHour(4, 0), End: atHour(9, 0)}, relay.KindNotFound, "", ""},
		"subscriber without SIMs":      {Request{Start: atHour(1, 0), End: atHour(9, 0), Subscriber: "s3"}, relay.KindNotFound, "", ""},
		"subscriber without usage":     {Request{Start: atHour(3, 0), End: atHour(9, 0), Subscriber: "s2"}, relay.KindNotFound, "", ""},
		"name longer than the limit":   {Request{Start: atHour(1, 0), End: atHour(9, 0), Name: strings.Repeat("é", 256)}, relay.KindInvalid, "name", "The name must be at most 255 characters."},
		"name as long as the limit":    {Request{Start: atHour(4, 0), End: atHour(9, 0), Name: strings.Repeat("é", 255)}, relay.KindNotFound, "", ""},
		"end at the start of a record": {Request{Start: atHour(9, 0), End: atHour(30, 0)}, relay.KindNotFound, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.addRecords()
			_, err := f.service().RequestCDR(t.Context(), 1, tc.request)
			relaytest.Equal(t, "the kind of error", relay.KindOf(err), tc.kind)
			if tc.field != "" {
				relaytest.Equal(t, "the fields with problems", relay.FieldsOf(err), map[string][]string{tc.field: {tc.text}})
			}
			if len(f.jobs) != 0 {
				t.Errorf("got %d jobs, want 0", len(f.jobs))
			}
			if tc.request.Subscriber != "" {
				return
			}
			_, err = f.service().RequestUsage(t.Context(), 1, tc.request) // a report may be empty
			if tc.kind == relay.KindInvalid && relay.KindOf(err) != tc.kind || tc.kind == relay.KindNotFound && err != nil {
				t.Errorf("RequestUsage: error %v, want kind %v only if the request is invalid", err, relay.KindInvalid)
			}
		})
	}
}

func TestACDRFileHasTheRecordsOfItsTime(t *testing.T) {
	for name, tc := range map[string]struct {
		request Request
		want    string
	}{
		"all records by time":     {november(atHour(30, 0)), "4 A, 2 B, 3 C, 1 A"},
		"records of a subscriber": {Request{Start: atHour(1, 0), End: atHour(30, 1), Subscriber: "s1"}, "4 A, 1 A, 5 A"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.addRecords()
			s := f.service()
			id, err := s.RequestCDR(t.Context(), 1, tc.request)
			if err != nil || !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(id) {
				t.Fatalf("RequestCDR: id %q, error %v", id, err)
			}
			if _, err := s.CDR(t.Context(), 1, id); !errors.Is(err, ErrNotCompleted) {
				t.Errorf("CDR of a queued job: error %v, want %v", err, ErrNotCompleted)
			}
			j := f.jobs[id]
			relaytest.Equal(t, "list, kind and retention of the job", []any{j.List, j.Kind, j.Retention}, []any{"mno", CDRKind, jobRetention})
			f.broken = "make"
			f.runJob(s, id)
			f.runJob(s, id)
			file, err := s.CDR(t.Context(), 1, id)
			if err != nil || !strings.HasPrefix(file.Name, "cdr-20261101-2026113") {
				t.Fatalf("CDR: file name %q, error %v", file.Name, err)
			}
			text, err := io.ReadAll(file)
			if err != nil || int64(len(text)) != file.Size {
				t.Fatalf("read %d bytes, error %v; want %d", len(text), err, file.Size)
			}
			header, lines, _ := strings.Cut(string(text), "\n")
			var got []string
			for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
				cell := strings.Split(line, ",")
				got = append(got, cell[0]+" "+cell[1])
			}
			if header != "id,iccid,start_time,type,bytes,duration" || strings.Join(got, ", ") != tc.want {
				t.Errorf("header %s and records %q, want records %s", header, got, tc.want)
			}
		})
	}
}

func TestAReportHasTheUsageOfEachSIM(t *testing.T) {
	f := newFixture(t)
	f.addRecords()
	s := f.service()
	request := november(atHour(30, 0))
	request.Name = "November"
	id, err := s.RequestUsage(t.Context(), 1, request)
	relaytest.NoError(t, err)
	if _, err := s.Usage(t.Context(), 1, id, 0, 10); !errors.Is(err, ErrNotCompleted) {
		t.Errorf("Usage of a queued job: error %v, want %v", err, ErrNotCompleted)
	}
	j := f.runJob(s, id)
	relaytest.Equal(t, "name and result of the job", []string{j.Name, string(j.Result)}, []string{"November", `{"count":3}`})
	f.runJob(s, id) // repeated jobs do not add rows
	want := []Row{{"C", "", "", 4}, {"A", "s1", "Acme", 9}, {"B", "s2", "", 2}}
	got, err := s.Usage(t.Context(), 1, id, 0, 10)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the report", got, Report{Span{atHour(1, 0), atHour(30, 0)}, want, 3})
	got, err = s.Usage(t.Context(), 1, id, 2, 1)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the rows of the last page", got.Rows, want[2:])
	relaytest.Equal(t, "the total", got.Total, 3)
}

func TestUnavailableFilesAndReportsAreNotFound(t *testing.T) {
	f := newFixture(t)
	f.addRecords()
	s := f.service()
	file, err1 := s.RequestCDR(t.Context(), 1, november(atHour(30, 0)))
	report, err2 := s.RequestUsage(t.Context(), 1, november(atHour(30, 0)))
	relaytest.NoError(t, errors.Join(err1, err2))
	f.runJob(s, file)
	f.runJob(s, report)
	usage := func(id string) error { _, err := s.Usage(t.Context(), 1, id, 0, 1); return err }
	_, foreign := s.CDR(t.Context(), 2, file)
	_, reportAsFile := s.CDR(t.Context(), 1, report)
	_, unknown := s.CDR(t.Context(), 1, "none")
	delete(f.files, file)
	_, deleted := s.CDR(t.Context(), 1, file)
	fileAsReport := usage(file)
	f.clock.Advance(ReportLifetime)
	for name, err := range map[string]error{
		"file of another account": foreign, "report as a file": reportAsFile, "unknown job": unknown, "deleted file": deleted, "file as a report": fileAsReport,
		"expired report": usage(report),
	} {
		if relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("%s: error %v, want kind not found", name, err)
		}
	}
}

func TestAnInvalidJobInputIsAnError(t *testing.T) {
	f := newFixture(t)
	f.addRecords()
	s := f.service()
	if _, err := s.RunReport(t.Context(), job.Job{Input: json.RawMessage(`7`)}); err == nil {
		t.Error("RunReport accepted an invalid input")
	}
}
