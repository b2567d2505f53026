package cdr

import (
	"bytes"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders/decimal"
)

// The columns of Master.csv.
const (
	colSrc, colDst, colDstChannel = 1, 2, 6
	colStart, colAnswer, colEnd   = 9, 10, 11
	colDuration, colBillsec       = 12, 13
	colDisposition, colUniqueID   = 14, 16
	minColumns, maxColumns        = 16, 21
)

// parseAsteriskLines parses the lines of Asterisk's cdr_csv. It continues after an invalid line.
func parseAsteriskLines(r *records[Call]) {
	for offset := 0; offset < len(r.body); {
		line := csv.NewReader(bytes.NewReader(r.body[offset:]))
		line.FieldsPerRecord, line.LazyQuotes = -1, true
		row, err := line.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.fail(newError("asterisk", "line", offset, "is not valid CSV"))
			return
		}
		r.add(parseAsteriskRow(row, offset))
		offset += int(line.InputOffset())
	}
}

func parseAsteriskRow(row []string, offset int) (Call, error) {
	if len(row) < minColumns || len(row) > maxColumns {
		return Call{}, newError("asterisk", "line", offset, "has "+strconv.Itoa(len(row))+" columns instead of 16 to 21")
	}
	c := Call{From: row[colSrc], To: row[colDst], Disposition: row[colDisposition], Trunk: trunkName(row[colDstChannel])}
	for _, m := range []struct {
		name   string
		column int
		target *time.Time
	}{{"start", colStart, &c.Start}, {"answer", colAnswer, &c.Answer}, {"end", colEnd, &c.End}} {
		if row[m.column] == "" {
			continue
		}
		t, err := time.Parse(time.DateTime, row[m.column])
		if err != nil {
			return c, newError("asterisk", m.name, offset, "must be YYYY-MM-DD HH:MM:SS")
		}
		*m.target = t
	}
	var err1, err2 error
	c.Duration, err1 = decimal.PlainInt(row[colDuration])
	c.Billsec, err2 = decimal.PlainInt(row[colBillsec])
	if err1 != nil || err2 != nil {
		return c, newError("asterisk", "duration", offset, wantWholeSeconds)
	}
	if len(row) > colUniqueID {
		c.ID = strings.TrimSpace(row[colUniqueID])
	}
	// The key is a hash of the line, because several lines may have the same uniqueid.
	h := fnv.New128a()
	for _, cell := range row {
		_, _ = h.Write([]byte(cell + "\x00"))
	}
	c.Key = hex.EncodeToString(h.Sum(nil))
	if c.ID == "" {
		c.ID = c.Key // loguniqueid=no
	}
	return finish(c, "asterisk", offset)
}

// trunkName returns the trunk in the name of a channel: carrier for PJSIP/carrier-0000002a.
func trunkName(channel string) string {
	_, name, ok := strings.Cut(channel, "/")
	if !ok {
		return ""
	}
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		name = name[:i]
	}
	return name
}
