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
	leastColumns, mostColumns     = 16, 21
)

// asteriskLines reads the lines of Asterisk's cdr_csv. After one that is broken it continues
// with the next.
func asteriskLines(r *records[Call]) {
	for offset := 0; offset < len(r.body); {
		line := csv.NewReader(bytes.NewReader(r.body[offset:]))
		line.FieldsPerRecord, line.LazyQuotes = -1, true
		row, err := line.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.fail(reject("asterisk", "line", offset, "is no CSV"))
			return
		}
		r.add(asterisk(row, offset))
		offset += int(line.InputOffset())
	}
}

func asterisk(row []string, offset int) (Call, error) {
	if len(row) < leastColumns || len(row) > mostColumns {
		return Call{}, reject("asterisk", "line", offset, "has "+strconv.Itoa(len(row))+" columns, want 16 to 21")
	}
	c := Call{From: row[colSrc], To: row[colDst], Disposition: row[colDisposition], Trunk: peer(row[colDstChannel])}
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
			return c, reject("asterisk", m.name, offset, "want YYYY-MM-DD HH:MM:SS")
		}
		*m.target = t
	}
	var err1, err2 error
	c.Duration, err1 = decimal.Digits(row[colDuration])
	c.Billsec, err2 = decimal.Digits(row[colBillsec])
	if err1 != nil || err2 != nil {
		return c, reject("asterisk", "duration", offset, "want a whole number of seconds")
	}
	if len(row) > colUniqueID {
		c.ID = strings.TrimSpace(row[colUniqueID])
	}
	// One call may have several lines with the same uniqueid.
	h := fnv.New128a()
	for _, cell := range row {
		_, _ = h.Write([]byte(cell + "\x00"))
	}
	c.Key = hex.EncodeToString(h.Sum(nil))
	if c.ID == "" {
		c.ID = c.Key // loguniqueid=no: the line itself is all there is
	}
	return finish(c, "asterisk", offset)
}

// peer is the trunk in a channel's name: PJSIP/carrier-0000002a → carrier.
func peer(channel string) string {
	_, name, ok := strings.Cut(channel, "/")
	if !ok {
		return ""
	}
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		name = name[:i]
	}
	return name
}
