package influx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// maxResponse is the maximum size of a response to a query.
const maxResponse = 256 << 20

// statement is an InfluxQL statement. Its strings are parameters named $name, which the server
// binds, so that no string can end the statement.
type statement struct {
	q, db, rp string
	params    map[string]any
}

func (s *Store) statement(params map[string]any, q string) statement {
	db, rp := s.database()
	return statement{q: q, db: db, rp: rp, params: params}
}

func (s *Store) influxQL(ctx context.Context, st statement) ([]series, error) {
	results, err := s.influxQLs(ctx, st)
	switch {
	case err != nil:
		return nil, err
	case len(results) != 1:
		return nil, errors.New("the response has no result")
	}
	return results[0], nil
}

// influxQLs runs statements separated by semicolons and returns the series of each.
func (s *Store) influxQLs(ctx context.Context, st statement) ([][]series, error) {
	body, _, err := s.post(ctx, st, "application/json")
	if err != nil {
		return nil, err
	}
	return readSeries(body)
}

// post runs statements separated by semicolons and returns the body of the response and its
// media type, which is accept or JSON. It uses POST, because the statements may exceed the
// length limit of a URL.
func (s *Store) post(ctx context.Context, st statement, accept string) (body []byte, mediaType string, err error) {
	form := url.Values{"q": {st.q}, "epoch": {"ns"}}
	if st.db != "" {
		form.Set("db", st.db)
	}
	if st.rp != "" {
		form.Set("rp", st.rp)
	}
	if st.params != nil {
		params, err := json.Marshal(st.params)
		if err != nil {
			return nil, "", fmt.Errorf("parameters: %w", err)
		}
		form.Set("params", string(params))
	}
	setHeader := func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept", accept)
	}
	herr := s.http.DoPostRequest(ctx, s.opts.URL+"query", strings.NewReader(form.Encode()), setHeader, func(r *http.Response) (err error) {
		defer r.Body.Close()
		mediaType = r.Header.Get("Content-Type")
		body, err = io.ReadAll(io.LimitReader(r.Body, maxResponse))
		return err
	})
	if herr != nil {
		return nil, "", herr
	}
	return body, mediaType, nil
}

// readInfluxQL queries the newest points of each series of the device. The conditions on the
// tag device_id and the time limit the blocks that the server reads. The limit applies to
// each series, so that the newest points of all series are found.
func (s *Store) readInfluxQL(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	text := "SELECT value, text FROM " + measurementList(q.Types) + " WHERE account = $account AND device_id = $device" +
		timeCondition(q) + " GROUP BY * ORDER BY time DESC LIMIT " + strconv.Itoa(q.Limit)
	body, mediaType, err := s.post(ctx, s.statement(deviceParams(q), text), msgpackType)
	if err != nil {
		return nil, s.wrapError("query", err)
	}
	read := readPoints
	if mediaType == msgpackType {
		read = readMsgpack
	}
	points, err := read(q.Account, body)
	if err != nil {
		return nil, s.wrapError("query", err)
	}
	return points, nil
}

// readPoints returns the points of a JSON response, which servers without MessagePack send.
func readPoints(acct relay.AccountID, body []byte) ([]iot.Point, error) {
	results, err := readSeries(body)
	if err != nil {
		return nil, err
	}
	var points []iot.Point
	for _, sr := range slices.Concat(results...) {
		p := pointOf(acct, sr.Name, func(tag string) string { return sr.Tags[tag] })
		points = slices.Grow(points, len(sr.Values))
		for _, row := range sr.Values { // time, value, text
			if len(row) != 3 {
				return nil, fmt.Errorf("a row of %d columns", len(row))
			}
			if p.Time, err = row.time(); err != nil {
				return nil, err
			}
			if p.Value, p.IsText, err = row.number(1); err != nil {
				return nil, err
			}
			p.Text = ""
			if p.IsText {
				text, _ := row[2].(string)
				p.Text = unclean(text)
			}
			points = append(points, p)
		}
	}
	return points, nil
}

func deviceParams(q iot.Query) map[string]any {
	return map[string]any{"account": q.Account.String(), "device": clean(q.DeviceID)}
}

// tagIn returns the parameters and the condition that select some values of a tag in an
// account.
func tagIn(acct relay.AccountID, tag string, values []string) (params map[string]any, condition string) {
	params = map[string]any{"account": acct.String()}
	comparisons := make([]string, len(values))
	for i, v := range values {
		name := "v" + strconv.Itoa(i)
		params[name] = clean(v)
		comparisons[i] = tag + " = $" + name
	}
	return params, strings.Join(comparisons, " OR ")
}

func timeCondition(q iot.Query) string {
	return " AND time >= " + strconv.FormatInt(q.From.UnixNano(), 10) +
		" AND time <= " + strconv.FormatInt(q.To.UnixNano(), 10)
}

// measurementList lists measurements; empty means all.
func measurementList(types []string) string {
	if len(types) == 0 {
		return "/.*/"
	}
	quoted := make([]string, len(types))
	for i, t := range types {
		quoted[i] = quoteName(clean(t))
	}
	return strings.Join(quoted, ", ")
}

func quoteName(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

type queryResponse struct {
	Error   string
	Results []struct { // one for each statement
		Error   string
		Series  []series
		Partial bool
	}
}

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
	var response queryResponse
	if err := decoder.Decode(&response); err != nil {
		return nil, fmt.Errorf("response to a query: %w", err)
	}
	seriesByStatement := make([][]series, len(response.Results))
	message, truncated := response.Error, false
	for i, result := range response.Results {
		if message == "" {
			message = result.Error // although the status is 200
		}
		truncated = truncated || result.Partial
		for _, s := range result.Series {
			truncated = truncated || s.Partial
		}
		seriesByStatement[i] = result.Series
	}
	if err := responseError(message, truncated); err != nil {
		return nil, err
	}
	return seriesByStatement, nil
}

// responseError returns the error that a response contains: a statement's error,
// or that the server truncated the rows.
func responseError(message string, truncated bool) error {
	switch {
	case truncated:
		return errors.New("the server truncated the response, see its max-row-limit")
	case strings.HasPrefix(message, "database not found"):
		return &Error{Op: "query", Status: http.StatusNotFound, Reason: message}
	case message != "":
		return &httpapi.Error{StatusCode: http.StatusInternalServerError, Message: message}
	}
	return nil
}

func eachRow(rows []series, visit func(s *series, t time.Time, r row) error) error {
	for i := range rows {
		for _, r := range rows[i].Values {
			t, err := r.time()
			if err == nil {
				err = visit(&rows[i], t, r)
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
