package admin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// selection has the parameters of an operation on selected records. A parameter may be in the query
// or in a JSON body.
type selection struct {
	*params.Input
	c    *fiber.Ctx
	body map[string]any
	// filters is the number of parameters that select records.
	filters int
	// bodyFields are the fields of the body that are not read with Get.
	bodyFields  []string
	findAccount func(AccountRef) (relay.AccountID, error)
	// err is an error other than a problem of a parameter.
	err error
}

func (s *Surface) selectionOf(c *fiber.Ctx) (*selection, error) {
	sel := &selection{c: c, findAccount: func(r AccountRef) (relay.AccountID, error) { return s.accountID(c, r) }}
	raw, err := httpd.Body(c, maxBody)
	if err != nil {
		return nil, err
	}
	if len(raw) > 0 {
		if sel.body, err = params.Object(raw); err != nil {
			return nil, params.ErrInvalidJSON
		}
	}
	sel.Input = params.OfRequest(c, params.OfObject(sel.body).Or(params.OfQuery(c)), relay.FieldWords)
	return sel, nil
}

// withSelection returns a handler that reads the selection of a request and calls handle.
func (s *Surface) withSelection(handle func(*fiber.Ctx, *selection) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		sel, err := s.selectionOf(c)
		if err != nil {
			return err
		}
		return handle(c, sel)
	}
}

// The maximum sizes of bodies in bytes. maxBody is for bodies with the source of a decoder.
const (
	maxForm = 1 << 20
	maxBody = 4 << 20
)

// readJSON decodes a JSON body of at most limit bytes into v. It refuses unknown fields.
func readJSON(c *fiber.Ctx, limit int, v any) error {
	raw, err := httpd.Body(c, limit)
	if err != nil {
		return err
	}
	return params.DecodeStrictly(raw, v)
}

// Err returns the problems of the parameters, or the error of the lookup of an account. Parameters
// that were not read are unknown.
func (s *selection) Err() error {
	for name := range s.body {
		if !slices.Contains(s.bodyFields, name) && !s.IsKnown(name) {
			s.Add(name, "This field is unknown.")
		}
	}
	if err := s.Input.Err(); err != nil {
		return err
	}
	return s.err
}

// maxLoggedSelection is the maximum length of a selection in the log, in bytes.
const maxLoggedSelection = 500

// String returns the query and the body of the request, for the log.
func (s *selection) String() string {
	text := string(s.c.Request().URI().QueryString())
	if body, err := json.Marshal(s.body); err == nil && len(s.body) > 0 {
		text += string(body)
	}
	return decoders.Clip(strings.ToValidUTF8(text, "\uFFFD"), maxLoggedSelection)
}

// text returns a parameter that selects records.
func (s *selection) text(name string) string {
	text := s.option(name)
	if text != "" {
		s.filters++
	}
	return text
}

// option returns a parameter as a string. In a body it may be a number.
func (s *selection) option(name string) string {
	if n, ok := s.Value(name).(json.Number); ok {
		return n.String()
	}
	return s.Text(name)
}

// oneOf returns a parameter that selects records and must be one of values, or "" if it is missing
// or invalid.
func oneOf[T ~string](s *selection, name string, values ...T) T {
	v := T(s.text(name))
	if v == "" || slices.Contains(values, v) {
		return v
	}
	texts := httpd.Each(values, func(value T) string { return string(value) })
	s.Add(name, "The "+relay.FieldWords(name)+" must be "+strings.Join(texts, " or ")+", not "+strconv.Quote(string(v))+".")
	return ""
}

// timestamp returns a parameter that selects records by time, or the zero time if it is missing.
func (s *selection) timestamp(name string) time.Time {
	text := s.text(name)
	t, ok := iso8601.Parse(text)
	if text != "" && !ok {
		s.Add(name, "The "+relay.FieldWords(name)+" must be a time like 2026-01-31T12:00:00Z, not "+strconv.Quote(text)+".")
	}
	return t
}

// account returns the account that the parameter account selects; 0 selects all accounts.
func (s *selection) account() relay.AccountID {
	id, err := s.findAccount(AccountRef(s.text("account")))
	for _, problem := range relay.FieldsOf(err)["account"] {
		s.Add("account", problem)
	}
	if err != nil && s.Problems["account"] == nil {
		s.err = err
	}
	return id
}

// requiredAccount returns the account of an operation that requires one.
func (s *selection) requiredAccount() relay.AccountID {
	acct := s.account()
	s.requireAccount(acct)
	return acct
}

func (s *selection) requireAccount(acct relay.AccountID) {
	if acct == 0 && s.Problems["account"] == nil {
		s.AddNamed("account", "The %s field is required.")
	}
}

// number returns the parameter number: a phone number without punctuation, or a sender's name.
func (s *selection) number() string {
	number, _ := relay.NumberFrom(s.text("number"))
	return number
}

// ids returns the ids of the selected records. Only a body may have ids.
func (s *selection) ids() []string {
	s.bodyFields = append(s.bodyFields, "ids")
	body := params.New(params.OfObject(s.body), relay.FieldWords)
	ids := body.Texts("ids")
	s.AddAll("", body.Problems)
	if len(ids) > 0 {
		s.filters++
	}
	return ids
}

// flag returns a boolean, or false if it is missing.
func (s *selection) flag(name string) bool {
	v := s.Bool(name)
	return v != nil && *v
}

// limit returns the maximum number of records in the answer.
func (s *selection) limit() int {
	n := s.Integer("limit")
	if n == nil {
		return defaultLimit
	}
	if *n < 1 || *n > maxLimit {
		s.AddNamed("limit", "The %s must be a number from 1 to "+strconv.Itoa(maxLimit)+".")
	}
	return int(*n)
}

// searchUntil returns the time at which the search for a page ends.
func (s *selection) searchUntil() time.Time {
	milliseconds := s.Int("search_ms", int(maxSearchTime.Milliseconds()), int(maxSearchTime.Milliseconds()), "a number from 1 to")
	return time.Now().Add(time.Duration(milliseconds) * time.Millisecond)
}

// numericCursor returns a cursor that must be a number, or 0 without a cursor.
func (s *selection) numericCursor() uint64 {
	text := s.option("cursor")
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		s.Add("cursor", invalidCursor)
	}
	return n
}

// parseCursor reads a cursor of formatCursor into parts and lastPart, which may be empty and may
// contain spaces. Without a cursor parseCursor changes nothing.
func parseCursor[T ~string](s *selection, lastPart *T, parts ...any) {
	cursor := s.option("cursor")
	if cursor == "" {
		return
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	texts := strings.SplitN(string(b), " ", len(parts)+1)
	if err != nil || len(texts) != len(parts)+1 {
		s.Add("cursor", invalidCursor)
		return
	}
	for i, part := range parts {
		if _, err := fmt.Sscan(texts[i], part); err != nil {
			s.Add("cursor", invalidCursor)
		}
	}
	*lastPart = T(texts[len(parts)])
}

const invalidCursor = "This is not a cursor of this list."

// formatCursor returns a cursor with the key of a record.
func formatCursor(format string, key ...any) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, format, key...))
}

// trimPage returns the first limit records of found, and the cursor of the next page, or "" if found
// has no more records. The caller reads one record more than the limit.
func trimPage[T any](found []T, limit int, cursorOf func(T) string) (page []T, nextCursor string) {
	if len(found) <= limit {
		return found, ""
	}
	return found[:limit], cursorOf(found[limit-1])
}

// requireFilter refuses a request without a filter, which would select all records.
func (s *selection) requireFilter() {
	if s.filters == 0 {
		s.Add("ids", "Give ids or at least one filter.")
	}
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func formatTimeOrNil(t time.Time) *string { return httpd.TimeOrNull(t, time.RFC3339Nano) }

// sendPage answers with a page of a list and the cursor of the next page, or "" for the last page.
func sendPage[T any](c *fiber.Ctx, records []T, nextCursor string) error {
	return c.JSON(fiber.Map{"data": records, "meta": fiber.Map{"next": nextCursor}})
}
