package carrier

import (
	"fmt"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
)

// maxResults is the maximum number of messages of a post.
const maxResults = 1000

// parseInfobip parses messages that Infobip forwards in the format MO_JSON_2: the list results,
// or the fields of a single message in the query or the body. Infobip has joined the parts and
// does not sign. An invalid message does not affect the others.
func parseInfobip(f *fieldReader) ([]inbound.Message, error) {
	results := []object{f.object}
	if f.has("results") {
		results = f.list("results")
	}
	if len(results) == 0 || len(results) > maxResults {
		f.Add("results", fmt.Sprintf("The results must be a list of 1 to %d messages.", maxResults))
	}
	var msgs []inbound.Message
	var receipt error
	for i, result := range results[:min(len(results), maxResults)] {
		m, err := parseInfobipMessage(newFieldReader(f.alphabet, result))
		switch {
		case isNotMessage(err):
			receipt = err
		case err != nil && f.has("results"):
			for name, texts := range relay.FieldsOf(err) {
				for _, text := range texts {
					f.Add(fmt.Sprintf("results.%d.%s", i, name), text)
				}
			}
		case err != nil:
			return nil, err
		default:
			msgs = append(msgs, m)
		}
	}
	if err := f.Err(); err != nil || len(msgs) > 0 {
		return msgs, err
	}
	return nil, receipt
}

func parseInfobipMessage(f *fieldReader) (inbound.Message, error) {
	if f.has("status") && !f.has("text") {
		s := f.child("status")
		return inbound.Message{}, receiptNotice(f.text("messageId"), s.first("groupName", "name"))
	}
	m := inbound.Message{CarrierID: f.required("messageId", maxName)}
	setSentAt(&m, "receivedAt", f.text("receivedAt"), parseTime)
	f.setAddresses(&m, "from", "to")
	var urls, texts []string
	for _, part := range f.list("message") { // of an MMS
		if text := part.text("value"); text != "" && strings.HasPrefix(part.text("contentType"), "text/") {
			texts = append(texts, text)
		}
		urls = append(urls, urlsOf(part)...)
	}
	if len(texts) > 0 && !f.has("text") {
		f.object["text"] = strings.Join(texts, "\n")
	}
	f.setText(&m, "text", urls)
	return m, f.Err()
}
