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

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// maxAnswer is the maximum size of a response to a query.
const maxAnswer = 256 << 20

// statement is one InfluxQL statement; its strings are parameters named $name
// and bound by the server, so that none of them can end the statement.
type statement struct {
	q, db, rp string
	params    map[string]any
}

// statement returns a statement on the database and retention policy of the bucket.
func (s *Store) statement(params map[string]any, q string) statement {
	db, rp := s.database()
	return statement{q: q, db: db, rp: rp, params: params}
}

// influxQL runs one statement.
func (s *Store) influxQL(ctx context.Context, st statement) ([]series, error) {
	found, err := s.influxQLs(ctx, st)
	switch {
	case err != nil:
		return nil, err
	case len(found) != 1:
		return nil, errors.New("an answer without a result")
	}
	return found[0], nil
}

// influxQLs runs statements separated by semicolons. It uses POST, because they
// may exceed the length limit of a URL.
func (s *Store) influxQLs(ctx context.Context, st statement) ([][]series, error) {
	answer, err := s.ask(ctx, st, "application/json")
	if err != nil {
		return nil, err
	}
	return readSeries(answer.body)
}

// queryResponse is a response in the requested format or in JSON.
type queryResponse struct {
	form string // the media type
	body []byte
}

func (s *Store) ask(ctx context.Context, st statement, accept string) (queryResponse, error) {
	var response queryResponse
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
			return response, fmt.Errorf("parameters: %w", err)
		}
		form.Set("params", string(params))
	}
	head := func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept", accept)
	}
	herr := s.http.DoPostRequest(ctx, s.opts.URL+"query", strings.NewReader(form.Encode()), head, func(r *http.Response) (err error) {
		defer func() { _ = r.Body.Close() }()
		response.form = r.Header.Get("Content-Type")
		body := bytes.NewBuffer(make([]byte, 0, 16<<10))
		_, err = body.ReadFrom(io.LimitReader(r.Body, maxAnswer))
		response.body = body.Bytes()
		return err
	})
	if herr != nil {
		return response, herr
	}
	return response, nil
}

// readInfluxQL queries the newest points of each series of the device. The tag
// device_id and the time limit the blocks that the server reads. The limit per
// series misses none of the newest points, even if sensors share a time.
func (s *Store) readInfluxQL(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	text := "SELECT value, text FROM " + measurementList(q.Types) + " WHERE account = $account AND device_id = $device" +
		timeCondition(q) + " GROUP BY * ORDER BY time DESC LIMIT " + strconv.Itoa(q.Limit)
	got, err := s.ask(ctx, s.statement(deviceParams(q), text), msgpackType)
	if err != nil {
		return nil, s.wrapError("query", err)
	}
	read := readPoints
	if got.form == msgpackType {
		read = readMsgpack
	}
	points, err := read(q.Account, got.body)
	if err != nil {
		return nil, s.wrapError("query", err)
	}
	return points, nil
}

// readPoints returns the points of a JSON response, sent by servers that support
// no other format.
func readPoints(acct relay.AccountID, body []byte) ([]iot.Point, error) {
	found, err := readSeries(body)
	if err != nil {
		return nil, err
	}
	var points []iot.Point
	for _, sr := range slices.Concat(found...) {
		p := pointOf(acct, sr.Name, func(tag string) string { return sr.Tags[tag] })
		points = slices.Grow(points, len(sr.Values))
		for _, row := range sr.Values {
			if err := setValue(&p, row); err != nil {
				return nil, err
			}
			points = append(points, p)
		}
	}
	return points, nil
}

// deviceParams returns the parameters of a query for a device.
func deviceParams(q iot.Query) map[string]any {
	return map[string]any{"account": q.Account.String(), "device": clean(q.DeviceID)}
}

// tagIn returns the parameters and the condition that select some values of a tag in an
// account.
func tagIn(acct relay.AccountID, tag string, values []string) (params map[string]any, condition string) {
	params = map[string]any{"account": acct.String()}
	tests := make([]string, len(values))
	for i, v := range values {
		name := "v" + strconv.Itoa(i)
		params[name] = clean(v)
		tests[i] = tag + " = $" + name
	}
	return params, strings.Join(tests, " OR ")
}

// setValue sets time and value from a row: time, value, text.
func setValue(p *iot.Point, r row) error {
	if len(r) != 3 {
		return fmt.Errorf("a row of %d columns", len(r))
	}
	t, err := r.time()
	if err != nil {
		return err
	}
	value, null, err := r.number(1)
	if err != nil {
		return err
	}
	p.Time, p.Value, p.Text, p.IsText = t, value, "", null
	if null {
		text, _ := r[2].(string)
		p.Text = unclean(text)
	}
	return nil
}

// timeCondition returns the time condition, in nanoseconds.
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

// quoteName quotes an identifier of InfluxQL.
func quoteName(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
