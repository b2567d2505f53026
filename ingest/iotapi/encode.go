package iotapi

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// Lists of readings are long and uniform, so they are encoded by hand: 1,000 readings take 0.27 ms
// instead of 0.68 ms with encoding/json. The request takes 1 ms besides the time of the store. A
// test compares the output with the output of encoding/json.

// minStreamed is the minimum number of records of a list that is streamed.
const minStreamed = 2000

// sendRecords answers with a list in data. It streams a long list, which would otherwise need about
// as much memory as the records.
func sendRecords[T any](c *fiber.Ctx, list []T, encode func([]byte, *T) ([]byte, error)) error {
	write := func(w io.Writer) (err error) {
		_, _ = io.WriteString(w, `{"data":[`) // w returns the error of an earlier write again
		var row []byte
		for i := range list {
			if row = row[:0]; i > 0 {
				row = append(row, ',')
			}
			if row, err = encode(row, &list[i]); err != nil {
				return err
			}
			if _, err = w.Write(row); err != nil {
				return err
			}
		}
		_, err = io.WriteString(w, "]}")
		return err
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	if len(list) < minStreamed { // the library reuses the buffer of the response
		return write(c.Response().BodyWriter())
	}
	httpd.Write(c, func(w *bufio.Writer) error { return write(w) })
	return nil
}

// cachedMembers has the encoded members that are equal in all rows of a sensor.
type cachedMembers struct {
	values     [6]string
	head, tail []byte
}

// unchanged reports whether the previous row had the same values. If not, it resets the cache.
func (k *cachedMembers) unchanged(values [6]string) bool {
	if k.head != nil && k.values == values {
		return true
	}
	k.values, k.head, k.tail = values, k.head[:0], k.tail[:0]
	return false
}

func recordWriter() func([]byte, *iot.ReadingRow) ([]byte, error) {
	var k cachedMembers
	return func(b []byte, r *iot.ReadingRow) ([]byte, error) {
		if !k.unchanged([...]string{r.SensorID, r.DeviceID, r.Key, r.Name, r.MetricUnits, r.ImperialUnits}) {
			k.head = appendText(k.head, `{"sensor_id":`, r.SensorID)
			k.head = appendText(k.head, `,"device_id":`, r.DeviceID)
			k.head = appendText(k.head, `,"key":`, r.Key)
			k.head = appendText(k.head, `,"name":`, r.Name)
			k.tail = appendText(k.tail, `,"metric_units":`, r.MetricUnits)
			k.tail = append(appendText(k.tail, `,"imperial_units":`, r.ImperialUnits), '}')
		}
		b = appendNumber(append(b, k.head...), `,"value":`, r.Value)
		if r.Text != nil {
			b = appendText(b, `,"text":`, *r.Text)
		}
		return append(appendText(b, `,"reading_date":`, r.ReadingDate), k.tail...), nil
	}
}

func aggregateWriter() func([]byte, *iot.AggregateRow) ([]byte, error) {
	var k cachedMembers
	return func(b []byte, r *iot.AggregateRow) ([]byte, error) {
		if !k.unchanged([...]string{r.SensorID, "", r.Key, r.Name, r.MetricUnits, r.ImperialUnits}) {
			k.head = appendText(k.head, `{"sensor_id":`, r.SensorID)
			k.head = appendText(k.head, `,"key":`, r.Key)
			k.head = appendText(k.head, `,"name":`, r.Name)
			k.tail = appendText(k.tail, `,"metric_units":`, r.MetricUnits)
			k.tail = append(appendText(k.tail, `,"imperial_units":`, r.ImperialUnits), '}')
		}
		b = appendText(append(b, k.head...), `,"reading_date":`, r.ReadingDate)
		b = appendNumber(b, `,"value":`, r.Value)
		for _, part := range [...]struct {
			name  string
			value *float64
		}{{`,"min":`, r.Min}, {`,"ave":`, r.Ave}, {`,"max":`, r.Max}} {
			if part.value != nil {
				b = appendNumber(b, part.name, part.value)
			}
		}
		return append(b, k.tail...), nil
	}
}

// appendText appends a member with a string. It escapes as encoding/json does without HTML escapes.
func appendText(b []byte, name, text string) []byte {
	b = append(b, name...)
	needsEscape := func(r rune) bool {
		return r < ' ' || r == '"' || r == '\\' || r == 0x7f || r == '\u2028' || r == '\u2029'
	}
	if strings.ContainsFunc(text, needsEscape) || !utf8.ValidString(text) {
		quoted, _ := relay.EncodeJSON(text) // encoding a string cannot fail
		return append(b, quoted...)
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

func appendNumber(b []byte, name string, v *float64) []byte {
	b = append(b, name...)
	if v == nil {
		return append(b, "null"...)
	}
	if size := math.Abs(*v); size != 0 && (size < 1e-6 || size >= 1e21) {
		number, _ := json.Marshal(*v) // with an exponent in the format of JavaScript
		return append(b, number...)
	}
	return strconv.AppendFloat(b, *v, 'f', -1, 64)
}
