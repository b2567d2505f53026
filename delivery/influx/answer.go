package influx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"
)

// answer is a response to InfluxQL statements.
type answer struct {
	Error   string
	Results []struct { // one for each statement
		Error   string
		Series  []series
		Partial bool
	}
}

// series is one series of a response.
type series struct {
	Name    string
	Tags    map[string]string
	Values  []row
	Partial bool
}

// row holds the columns of a row: json.Number, string, bool or nil.
type row []any

// readSeries returns the series of each statement of a response in JSON. A missing
// database is treated like the 404 of a write.
func readSeries(body []byte) ([][]series, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var response answer
	if err := decoder.Decode(&response); err != nil {
		return nil, fmt.Errorf("the answer to a query: %w", err)
	}
	found := make([][]series, len(response.Results))
	message, truncated := response.Error, false
	for i, result := range response.Results {
		if message == "" {
			message = result.Error // with status 200
		}
		truncated = truncated || result.Partial
		for _, s := range result.Series {
			truncated = truncated || s.Partial
		}
		found[i] = result.Series
	}
	if err := responseError(message, truncated); err != nil {
		return nil, err
	}
	return found, nil
}

// responseError returns the error that a response contains: a statement's error,
// or that the server truncated the rows.
func responseError(message string, truncated bool) error {
	switch {
	case truncated:
		return errors.New("the server truncated the answer, see its max-row-limit")
	case strings.HasPrefix(message, "database not found"):
		return &Error{Op: "query", Status: http.StatusNotFound, Reason: message, paused: true}
	case message != "":
		return &httpapi.Error{StatusCode: http.StatusInternalServerError, Message: message}
	}
	return nil
}

// eachRow calls each with every row, its time and its series.
func eachRow(found []series, visit func(s *series, t time.Time, r row) error) error {
	for i := range found {
		for _, r := range found[i].Values {
			t, err := r.time()
			if err == nil {
				err = visit(&found[i], t, r)
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
	text, _ := r[0].(json.Number)
	ns, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("a row whose time is %#v", r[0])
	}
	return time.Unix(0, ns).UTC(), nil
}

// number returns a numeric column, which may be null.
func (r row) number(column int) (value float64, null bool, err error) {
	if r[column] == nil {
		return 0, true, nil
	}
	text, _ := r[column].(json.Number)
	value, err = text.Float64()
	if err != nil {
		return 0, false, fmt.Errorf("a row with %#v for a number", r[column])
	}
	return value, false, nil
}
