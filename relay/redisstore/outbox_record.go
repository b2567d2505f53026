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
	if due, _ := strconv.ParseInt(fields["due"], 10, 64); due > 0 {
		d.NextAttemptAt = time.UnixMilli(due).UTC()
	}
	if list := strings.TrimSuffix(fields["attempts"], ","); list != "" {
		if err := json.Unmarshal([]byte("["+list+"]"), &d.Attempts); err != nil {
			return d, fmt.Errorf("delivery %s: decode attempts: %w", d.ID, err)
		}
	}
	return d, nil
}
