package influx

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"

	"github.com/penstock/penstock/decoders/jsonbody"
)

// results is the parsed JSON of a response.
type results struct {
	err string
	all []result
}

// result is the result of one statement.
type result struct {
	err     string
	series  []series
	partial bool
}

// series is one series of a response. Its rows are valid as long as the
// response's bytes.
type series struct {
	name    string
	tags    map[string]string
	rows    []row
	partial bool
}

// row holds the columns of a row.
type row []jsonbody.Value

// readResults parses a response. Members of an unexpected kind are ignored;
// invalid JSON is an error.
func readResults(body []byte) (results, error) {
	r := jsonbody.New(body)
	var out results
	var key []byte
	if r.Kind() != jsonbody.Object {
		return out, errors.New("an answer that is no object")
	}
	for ok := r.Object(); ok && r.Next(&key); {
		switch string(key) {
		case "error":
			out.err, _ = r.Value().Text()
		case "results":
			for ok := r.Array(); ok && r.More(); {
				out.all = append(out.all, readResult(&r))
			}
		default:
			r.Skip()
		}
	}
	if err := r.Close(); err != nil {
		return out, fmt.Errorf("an answer: %w", err)
	}
	return out, nil
}

func readResult(r *jsonbody.Reader) (out result) {
	var key []byte
	for ok := r.Object(); ok && r.Next(&key); {
		switch string(key) {
		case "error":
			out.err, _ = r.Value().Text()
		case "partial":
			out.partial, _ = r.Value().Bool()
		case "series":
			for ok := r.Array(); ok && r.More(); {
				out.series = append(out.series, readSeries(r))
			}
		default:
			r.Skip()
		}
	}
	return out
}

func readSeries(r *jsonbody.Reader) (out series) {
	var key []byte
	for ok := r.Object(); ok && r.Next(&key); {
		switch string(key) {
		case "name":
			out.name = r.Value().String()
		case "tags":
			out.tags = make(map[string]string)
			for ok := r.Object(); ok && r.Next(&key); {
				name := string(key)
				out.tags[name] = r.Value().String()
			}
		case "partial":
			out.partial, _ = r.Value().Bool()
		case "values":
			out.rows = readRows(r)
		default:
			r.Skip()
		}
	}
	return out
}

// readRows parses rows with few large allocations.
func readRows(r *jsonbody.Reader) []row {
	var rows []row
	var columns []jsonbody.Value
	for ok := r.Array(); ok && r.More(); {
		start := len(columns)
		for ok := r.Array(); ok && r.More(); {
			columns = append(columns, r.Value())
		}
		rows = append(rows, columns[start:len(columns):len(columns)])
	}
	return rows
}

// series returns the series of each statement. Errors of a statement have status
// 200; a missing database is treated like the 404 of a write.
func (r results) series() ([][]series, error) {
	out := make([][]series, len(r.all))
	truncated := false
	for i, one := range r.all {
		if r.err == "" {
			r.err = one.err
		}
		truncated = truncated || slices.ContainsFunc(one.series, func(found series) bool { return found.partial || one.partial })
		out[i] = one.series
	}
	if err := responseError(r.err, truncated); err != nil {
		return nil, err
	}
	return out, nil
}

// responseError returns the error that a response contains: a statement's error,
// or that the server truncated the rows.
func responseError(message string, truncated bool) error {
	switch {
	case truncated:
		return errors.New("the server cut the answer short, see its max-row-limit")
	case strings.HasPrefix(message, "database not found"):
		return &Error{Op: "query", Status: http.StatusNotFound, Reason: message, paused: true}
	case message != "":
		return &httpapi.Error{StatusCode: http.StatusInternalServerError, Message: message}
	}
	return nil
}

// eachRow calls each with every row, its time and its series.
func eachRow(all []series, each func(of *series, at time.Time, r row) error) error {
	for i := range all {
		for _, r := range all[i].rows {
			at, err := r.time()
			if err == nil {
				err = each(&all[i], at, r)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// time returns the first column of a row, in nanoseconds.
func (r row) time() (time.Time, error) {
	if len(r) < 2 {
		return time.Time{}, fmt.Errorf("a row of %d columns", len(r))
	}
	ns, err := strconv.ParseInt(string(r[0].Raw()), 10, 64)
	if err != nil || r[0].Kind != jsonbody.Number {
		return time.Time{}, fmt.Errorf("a row whose time is %q", r[0].Raw())
	}
	return time.Unix(0, ns).UTC(), nil
}

// number returns a numeric column, which may be null.
func (r row) number(column int) (value float64, null bool, err error) {
	v := r[column]
	if v.Kind == jsonbody.Null {
		return 0, true, nil
	}
	value, ok := v.Float()
	if !ok || v.Kind != jsonbody.Number {
		return 0, false, fmt.Errorf("a row with %q for a number", v.Raw())
	}
	return value, false, nil
}
