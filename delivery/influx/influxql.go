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

	"github.com/penstock/penstock/relay/account"
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
	answer, err := s.ask(ctx, st, "application/json")
	if err != nil {
		return nil, err
	}
	found, err := readResults(answer.body)
	if err != nil {
		return nil, err
	}
	return found.series()
}

// answer is what a server says, in the form it was asked for or in JSON.
type answer struct {
	form string // the media type
	body []byte
}

func (s *Store) ask(ctx context.Context, st statement, accept string) (answer, error) {
	var out answer
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
			return out, fmt.Errorf("parameters: %w", err)
		}
		form.Set("params", string(params))
	}
	head := func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept", accept)
	}
	herr := s.http.DoPostRequest(ctx, s.opts.URL+"query", strings.NewReader(form.Encode()), head, func(r *http.Response) (err error) {
		defer func() { _ = r.Body.Close() }()
		out.form = r.Header.Get("Content-Type")
		body := bytes.NewBuffer(make([]byte, 0, 16<<10))
		_, err = body.ReadFrom(io.LimitReader(r.Body, maxAnswer))
		out.body = body.Bytes()
		return err
	})
	if herr != nil {
		return out, herr
	}
	return out, nil
}

// readInfluxQL asks for the newest points of each series of the device: the
// tag device_id and the time keep the server to the blocks that matter. With
// the limit on each series none that belongs to the newest is missed, also not
// where sensors share a time.
func (s *Store) readInfluxQL(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	db, rp := s.database()
	got, err := s.ask(ctx, statement{
		db: db, rp: rp,
		params: whose(q),
		q: "SELECT value, text FROM " + names(q.Types) + " WHERE account = $account AND device_id = $device" +
			bounds(q) + " GROUP BY * ORDER BY time DESC LIMIT " + strconv.Itoa(q.Limit),
	}, packedType)
	if err != nil {
		return nil, s.failed("query", err)
	}
	read := readPoints
	if got.form == packedType {
		read = readPacked
	}
	points, err := read(q.Account, got.body)
	if err != nil {
		return nil, s.failed("query", err)
	}
	return points, nil
}

// readPoints returns the points of an answer in JSON, which is what servers say
// that know no other form.
func readPoints(acct account.ID, body []byte) ([]iot.Point, error) {
	answered, err := readResults(body)
	if err != nil {
		return nil, err
	}
	found, err := answered.series()
	if err != nil {
		return nil, err
	}
	var points []iot.Point
	for _, sr := range slices.Concat(found...) {
		p := pointOf(acct, sr.name, func(tag string) string { return sr.tags[tag] })
		points = slices.Grow(points, len(sr.rows))
		for _, row := range sr.rows {
			if err := fill(&p, row); err != nil {
				return nil, err
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
func fill(p *iot.Point, r row) error {
	if len(r) != 3 {
		return fmt.Errorf("a row of %d columns", len(r))
	}
	at, err := r.at()
	if err != nil {
		return err
	}
	value, null, err := r.number(1)
	if err != nil {
		return err
	}
	p.Time, p.Value, p.Text, p.IsText = at, value, "", null
	if null {
		p.Text = unclean(r[2].String())
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
