package redisstore

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/penstock/penstock/relay/message"
)

// decodeMessage reads a message's hash.
func decodeMessage(fields map[string]string) (message.Message, error) {
	var m message.Message
	if err := json.Unmarshal([]byte(fields["static"]), &m); err != nil {
		return m, fmt.Errorf("message: decode: %w", err)
	}
	m.Due = moment(fields["due"])
	m.Version, _ = strconv.ParseInt(fields["v"], 10, 64)
	for n := range m.Parts {
		p, at := &m.Parts[n], strconv.Itoa(n)
		p.State = message.Pending
		if s := fields["s"+at]; s != "" {
			p.State = message.State(s)
		}
		p.ScheduledAt, p.ChangedAt = m.ScheduledFor, m.ReceivedAt
		if t := moment(fields["at"+at]); !t.IsZero() {
			p.ScheduledAt = t
		}
		if t := moment(fields["t"+at]); !t.IsZero() {
			p.ChangedAt = t
		}
		p.Carrier, p.Ref, p.Reason, p.Report = fields["c"+at], fields["r"+at], fields["why"+at], fields["line"+at]
	}
	return m, nil
}

// decodeReply reads a message as a script answers it: field, value, …; false for
// an empty answer.
func decodeReply(reply any) (message.Message, bool, error) {
	list, _ := reply.([]any)
	if len(list) == 0 {
		return message.Message{}, false, nil
	}
	fields := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		name, _ := list[i].(string)
		fields[name], _ = list[i+1].(string)
	}
	m, err := decodeMessage(fields)
	return m, err == nil, err
}
