package redisstore

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

// messageHead is what scripts need to know of a message, see keyMessageParts.
func messageHead(m *message.Message) string {
	return fmt.Sprintf("%d|%d|%d", len(m.Parts), m.ScheduledFor.UnixMilli(), flag(m.Report.URL != ""))
}

// decodeMessage reads a message: its id, its JSON, the record of each part, and
// if they were asked for two notes for each part.
func decodeMessage(fields []any) (m message.Message, err error) {
	texts := make([]string, len(fields))
	for i := range fields {
		texts[i], _ = fields[i].(string)
	}
	if len(texts) < 2 {
		return m, relay.Errorf(relay.KindUnexpected, "message: %d fields", len(texts))
	}
	if err := json.Unmarshal([]byte(texts[1]), &m); err != nil {
		return m, fmt.Errorf("message %s: decode: %w", texts[0], err)
	}
	records := texts[2:]
	if len(records) < len(m.Parts) {
		return m, relay.Errorf(relay.KindUnexpected, "message %s: %d records of %d parts", texts[0], len(records), len(m.Parts))
	}
	notes := records[len(m.Parts):]
	for n := range m.Parts {
		p := &m.Parts[n]
		p.State, p.ScheduledAt, p.ChangedAt = message.Pending, m.ScheduledFor, m.ReceivedAt
		if len(notes) > 2*n+1 {
			p.Reason, p.Report = notes[2*n], notes[2*n+1]
		}
		if records[n] == "" {
			continue
		}
		count, err := decodePart(p, records[n])
		if err != nil {
			return m, fmt.Errorf("message %s/%d: %w", texts[0], n, err)
		}
		m.Version += count
	}
	return m, nil
}

// decodePart reads the record of a part, see keyMessageParts, and returns how
// often its state has changed.
func decodePart(p *message.Part, record string) (int64, error) {
	f := strings.SplitN(record, "|", 7)
	if len(f) != 7 {
		return 0, relay.Errorf(relay.KindUnexpected, "record %q", record)
	}
	p.State, p.Carrier, p.Ref = message.State(f[0]), f[5], f[6]
	if t := moment(f[1]); !t.IsZero() {
		p.ScheduledAt = t
	}
	if t := moment(f[4]); !t.IsZero() {
		p.ChangedAt = t
	}
	return strconv.ParseInt(f[2], 10, 64)
}

// decodeReplies reads messages as scripts answer them.
func decodeReplies(out []*redis.Cmd) (list []message.Message, err error) {
	for _, c := range out {
		for _, reply := range slice(c.Val()) {
			m, err := decodeMessage(slice(reply))
			if err != nil {
				return list, err
			}
			list = append(list, m)
		}
	}
	return list, nil
}
