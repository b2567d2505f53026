package redisstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// encodeRecord is JSON as it is searched in: <, > and & stand for themselves.
func encodeRecord(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// encodeStatic is a delivery without what changes.
func encodeStatic(d *outbox.Delivery) ([]byte, error) {
	static := *d
	static.State, static.Reason, static.NextAttemptAt = "", "", time.Time{}
	static.Tries, static.Attempts = 0, nil
	static.Waits, static.HeldUntil = "", time.Time{}
	return encodeRecord(static)
}

// decodeDelivery reads a record's hash.
func decodeDelivery(fields map[string]string) (outbox.Delivery, error) {
	var d outbox.Delivery
	if err := json.Unmarshal([]byte(fields["static"]), &d); err != nil {
		return d, fmt.Errorf("delivery: decode: %w", err)
	}
	d.State, d.Reason = outbox.State(fields["state"]), fields["reason"]
	d.Tries, _ = strconv.Atoi(fields["tries"])
	d.NextAttemptAt, d.Waits, d.HeldUntil = moment(fields["due"]), outbox.Wait(fields["waits"]), moment(fields["until"])
	if list := strings.TrimSuffix(fields["attempts"], ","); list != "" {
		if err := json.Unmarshal([]byte("["+list+"]"), &d.Attempts); err != nil {
			return d, fmt.Errorf("delivery %s: decode attempts: %w", d.ID, err)
		}
	}
	return d, nil
}

// moment reads milliseconds; none, or 0, is the zero time.
func moment(ms string) time.Time {
	n, _ := strconv.ParseInt(ms, 10, 64)
	if n <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}
