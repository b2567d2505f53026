package admin

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// selection reads the fields of a query or a body; each may stand in either.
type selection struct {
	relay.Problems
	c    *fiber.Ctx
	body map[string]json.RawMessage
	// known are the names of the fields that were read, and knownInBody those that only a
	// body may have.
	known, knownInBody []string
	// used counts the fields that selected anything.
	used int
	// find finds an account by its name or id; failed is the reason.
	find   func(AccountRef) (relay.AccountID, error)
	failed error
}

// selectionOf reads a request whose account may be named. Its body, if there is one, is a JSON
// object.
func (s *Surface) selectionOf(c *fiber.Ctx) (*selection, error) {
	sel := &selection{c: c, Problems: relay.Problems{}, find: func(r AccountRef) (relay.AccountID, error) { return s.accountID(c, r) }}
	raw, err := httpd.Body(c, maxBody)
	if err != nil {
		return nil, err
	}
	if len(raw) > 0 && json.Unmarshal(raw, &sel.body) != nil {
		return nil, fiber.NewError(fiber.StatusUnprocessableEntity, "Invalid JSON.")
	}
	return sel, nil
}

// withSelection passes the fields of a request to a handler.
func (s *Surface) withSelection(handle func(*fiber.Ctx, *selection) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		sel, err := s.selectionOf(c)
		if err != nil {
			return err
		}
		return handle(c, sel)
	}
}

// The longest bodies, in bytes: of a form, and of anything with the source of a decoder.
const (
	maxForm = 1 << 20
	maxBody = 4 << 20
)

// readJSON reads a JSON body of at most so many bytes into v; a field that v lacks is
// refused.
func readJSON(c *fiber.Ctx, limit int, v any) error {
	raw, err := httpd.Body(c, limit)
	if err != nil {
		return err
	}
	return decodeStrictly(raw, v)
}

// decodeStrictly decodes JSON; a field that v lacks is refused. A mistake is
// relay.KindInvalid and names the field, unless the text is not valid JSON.
func decodeStrictly(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
		return relay.Invalid(e.Field, "want "+e.Type.String()+", got a "+e.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return relay.Invalid(strings.Trim(name, `"`), "is not known")
	}
	return fiber.NewError(fiber.StatusUnprocessableEntity, "Invalid JSON.")
}

// Err returns what is wrong with the fields, or why an account could not be looked up. A
// parameter of the query that was not read until then is unknown.
func (s *selection) Err() error {
	params.RefuseUnknown(s.c, s.Problems, s.known)
	if err := s.Problems.Err(); err != nil {
		return err
	}
	return s.failed
}

// maxLoggedSelection bounds a selection in the log, in bytes.
const maxLoggedSelection = 500

// String is the selection as the request has it, for the log.
func (s *selection) String() string {
	text := string(s.c.Request().URI().QueryString())
	if body, err := json.Marshal(s.body); err == nil && len(s.body) > 0 {
		text += string(body)
	}
	return decoders.Clip(strings.ToValidUTF8(text, "\uFFFD"), maxLoggedSelection)
}

// text returns a field that selects something, as text; a number in a body counts as text.
func (s *selection) text(name string) string {
	text := s.option(name)
	if text != "" {
		s.used++
	}
	return text
}

// option returns a field that selects nothing, as text.
func (s *selection) option(name string) string {
	value, query := s.field(name)
	if value == nil {
		return query
	}
	var text string
	var number json.Number
	if json.Unmarshal(value, &text) != nil && json.Unmarshal(value, &number) != nil {
		s.Add(name, "want a text")
	}
	return cmp.Or(text, number.String())
}

// field returns a field of the body, else of the query.
func (s *selection) field(name string) (value json.RawMessage, query string) {
	s.known = append(s.known, name)
	if value = s.body[name]; value != nil && string(value) != "null" {
		return value, ""
	}
	return nil, params.Query(s.c, name)
}

// oneOf returns a field that has to be one of some words.
func oneOf[T ~string](s *selection, name string, words ...T) T {
	v := T(s.text(name))
	if v == "" || slices.Contains(words, v) {
		return v
	}
	texts := httpd.Each(words, func(w T) string { return string(w) })
	s.Add(name, "want one of "+strings.Join(texts, ", ")+", got "+strconv.Quote(string(v)))
	return ""
}

func (s *selection) moment(name string) time.Time {
	v := s.text(name)
	if v == "" {
		return time.Time{}
	}
	if t, ok := iso8601.Parse(v); ok {
		return t
	}
	s.Add(name, "want a time like 2026-01-31T12:00:00Z, got "+strconv.Quote(v))
	return time.Time{}
}

// account is the account of the records that are meant; 0 for those of all.
func (s *selection) account() relay.AccountID {
	id, err := s.find(AccountRef(s.text("account")))
	for _, problem := range relay.FieldsOf(err)["account"] {
		s.Add("account", problem)
	}
	if err != nil && s.Problems["account"] == nil {
		s.failed = err
	}
	return id
}

// requiredAccount is the account of an operation on one account's records.
func (s *selection) requiredAccount() relay.AccountID {
	acct := s.account()
	if acct == 0 && s.Problems["account"] == nil {
		s.Add("account", "The account field is required.")
	}
	return acct
}

// number is a number as people write it, or a sender's name.
func (s *selection) number() string {
	text := s.text("number")
	number, _ := relay.NumberFrom(text)
	return number
}

// ids are the records that are named, in the body only.
func (s *selection) ids() []string {
	var ids []string
	s.knownInBody = append(s.knownInBody, "ids")
	if value := s.body["ids"]; value != nil && json.Unmarshal(value, &ids) != nil {
		s.Add("ids", "want a list of ids")
	}
	if len(ids) > 0 {
		s.used++
	}
	return ids
}

// flag returns a boolean; false if it is missing.
func (s *selection) flag(name string) (b bool) {
	value, query := s.field(name)
	ok := value == nil && query == ""
	switch {
	case value != nil:
		ok = json.Unmarshal(value, &b) == nil
	case query != "":
		b, ok = params.ParseBool(query)
	}
	if !ok {
		s.Add(name, "want true or false")
	}
	return b
}

// limit returns the largest number of records in the answer.
func (s *selection) limit() int {
	value, query := s.field("limit")
	if value == nil && query == "" {
		return defaultLimit
	}
	n, ok := decimal.Int(cmp.Or(query, string(value)))
	if !ok || n < 1 || n > maxLimit {
		s.Add("limit", "want 1 to 1000")
	}
	return int(n)
}

// cursor is the position at which a list continues.
func (s *selection) cursor() string { return s.option("cursor") }

// before reads a cursor that is a number.
func (s *selection) before() uint64 {
	text := s.cursor()
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		s.Add("cursor", "want the meta.next of a page, got "+strconv.Quote(text))
	}
	return n
}

// place reads a cursor of placeCursor: the parts of a key, of which the last is a text
// that may be empty or have spaces. Without a cursor they stay as they are.
func place[T ~string](s *selection, lastT *T, parts ...any) {
	cursor := s.cursor()
	if cursor == "" {
		return
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	texts := strings.SplitN(string(b), " ", len(parts)+1)
	if err != nil || len(texts) != len(parts)+1 {
		s.Add("cursor", notACursor)
		return
	}
	for i, part := range parts {
		if _, err := fmt.Sscan(texts[i], part); err != nil {
			s.Add("cursor", notACursor)
		}
	}
	*lastT = T(texts[len(parts)])
}

const notACursor = "This is not a cursor of this list."

// placeCursor returns a cursor that holds the key of a record.
func placeCursor(format string, key ...any) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, format, key...))
}

// cut returns a page of records, of which one more than the limit was read if there is
// another page, and the cursor of that one: the place of the last record; "" for none.
func cut[T any](found []T, limit int, place func(T) string) (page []T, nextCursor string) {
	if len(found) <= limit {
		return found, ""
	}
	return found[:limit], place(found[limit-1])
}

// require refuses a replay that selects everything, or more than was meant, by accident:
// one without a filter, and one whose body has an unknown field.
func (s *selection) require() {
	if s.used == 0 {
		s.Add("ids", "name ids or at least one filter")
	}
	s.refuseUnknownFields()
}

// refuseUnknownFields refuses the fields of the body that were not read until then.
func (s *selection) refuseUnknownFields() {
	for name := range s.body {
		if !slices.Contains(s.known, name) && !slices.Contains(s.knownInBody, name) {
			s.Add(name, "is not known")
		}
	}
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func formatTimeOrNil(t time.Time) *string { return httpd.TimeOrNull(t, time.RFC3339Nano) }

// sendPage answers with a page of a list and the cursor of the next page, "" for none.
func sendPage[T any](c *fiber.Ctx, records []T, nextCursor string) error {
	return c.JSON(fiber.Map{"data": records, "meta": fiber.Map{"next": nextCursor}})
}
