package influx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"

	"github.com/penstock/penstock/relay/iot"
)

// maxAnswer bounds an answer to a query.
const maxAnswer = 256 << 20

// statement is one InfluxQL statement; strings in it are named $name and bound
// by the server, so that none of them can end the statement.
type statement struct {
	q, db, rp string
	params    map[string]any
}

// series is one series of an answer.
type series struct {
	Name    string              `json:"name"`
	Tags    map[string]string   `json:"tags"`
	Values  [][]json.RawMessage `json:"values"`
	Partial bool                `json:"partial"`
}

type results struct {
	Error   string `json:"error"`
	Results []struct {
		Error   string   `json:"error"`
		Series  []series `json:"series"`
		Partial bool     `json:"partial"`
	} `json:"results"`
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

// influxQLs runs statements that semicolons separate. It posts: they may be
// longer than a server takes in an address.
func (s *Store) influxQLs(ctx context.Context, st statement) ([][]series, error) {
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
			return nil, fmt.Errorf("parameters: %w", err)
		}
		form.Set("params", string(params))
	}
	var found results
	herr := s.http.DoPostRequest(ctx, s.opts.URL+"query", strings.NewReader(form.Encode()), formType, func(r *http.Response) error {
		defer func() { _ = r.Body.Close() }()
		return json.NewDecoder(io.LimitReader(r.Body, maxAnswer)).Decode(&found)
	})
	if herr != nil {
		return nil, herr
	}
	return found.series()
}

func formType(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }

// series returns the series of each statement. Errors of a statement come with
// status 200; a database that is gone is what 404 is to a write.
func (r results) series() ([][]series, error) {
	out := make([][]series, len(r.Results))
	for i, one := range r.Results {
		if r.Error == "" {
			r.Error = one.Error
		}
		for _, found := range one.Series {
			if found.Partial || one.Partial {
				return nil, errors.New("the server cut the answer short, see its max-row-limit")
			}
		}
		out[i] = one.Series
	}
	switch {
	case strings.HasPrefix(r.Error, "database not found"):
		return nil, &Error{Op: "query", Status: http.StatusNotFound, Reason: r.Error, paused: true}
	case r.Error != "":
		return nil, &httpapi.Error{StatusCode: http.StatusInternalServerError, Message: r.Error}
	}
	return out, nil
}

// readInfluxQL asks for the newest points of each series of the device: the
// tag device_id and the time keep the server to the blocks that matter. With
// the limit on each series none that belongs to the newest is missed, also not
// where sensors share a time.
func (s *Store) readInfluxQL(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	db, rp := s.database()
	found, err := s.influxQL(ctx, statement{
		db: db, rp: rp,
		params: whose(q),
		q: "SELECT value, text FROM " + names(q.Types) + " WHERE account = $account AND device_id = $device" +
			bounds(q) + " GROUP BY * ORDER BY time DESC LIMIT " + strconv.Itoa(q.Limit),
	})
	if err != nil {
		return nil, s.failed("query", err)
	}
	var points []iot.Point
	for _, sr := range found {
		p := pointOf(q.Account, sr.Name, func(tag string) string { return sr.Tags[tag] })
		for _, row := range sr.Values {
			if err := fill(&p, row); err != nil {
				return nil, s.failed("query", err)
			}
			points = append(points, p)
		}
	}
	return points, nil
}

// whose binds the strings that a query for a device has.
func whose(q iot.Query) map[string]any {
	return map[string]any{"account": q.Account.String(), "device": clean(q.DeviceID)}
}

// fill sets time and value from a row: time, value, text.
func fill(p *iot.Point, row []json.RawMessage) error {
	if len(row) != 3 {
		return fmt.Errorf("a row of %d columns", len(row))
	}
	var (
		ns    int64
		value *float64
		text  *string
	)
	if err := errors.Join(json.Unmarshal(row[0], &ns), json.Unmarshal(row[1], &value), json.Unmarshal(row[2], &text)); err != nil {
		return fmt.Errorf("a row: %w", err)
	}
	p.Time, p.Value, p.Text, p.IsText = time.Unix(0, ns).UTC(), 0, "", value == nil
	switch {
	case value != nil:
		p.Value = *value
	case text != nil:
		p.Text = unclean(*text)
	}
	return nil
}

// bounds is the part of the condition about time, in nanoseconds.
func bounds(q iot.Query) string {
	return " AND time >= " + strconv.FormatInt(q.From.UnixNano(), 10) +
		" AND time <= " + strconv.FormatInt(q.To.UnixNano(), 10)
}

// names lists measurements; none means all.
func names(types []string) string {
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
