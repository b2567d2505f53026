package carrier

import (
	"fmt"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
)

// maxResults is the maximum number of messages of a post.
const maxResults = 1000

// parseInfobip parses the messages of Infobip's forwarding in the format MO_JSON_2: a
// list, results. The fields of a single message in the query or the body count as a list
// of one. Infobip has joined the parts, and does not sign. An invalid message does not
// affect the others.
func parseInfobip(f *form, o object) ([]inbound.Message, error) {
	results := []object{o}
	if o.has("results") {
		results = o.list("results")
	}
	if len(results) == 0 || len(results) > maxResults {
		f.Add("results", fmt.Sprintf("The results must be a list of 1 to %d messages.", maxResults))
	}
	var msgs []inbound.Message
	var receipt error
	for i, result := range results[:min(len(results), maxResults)] {
		m, err := infobipMessage(newForm(f.alphabet, result.get), result)
		switch {
		case isNoMessage(err):
			receipt = err
		case err != nil && o.has("results"):
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

func infobipMessage(f *form, o object) (inbound.Message, error) {
	if o.has("status") && !o.has("text") {
		s := o.object("status")
		return inbound.Message{}, receiptOf(o.text("messageId"), s.first("groupName", "name"))
	}
	m := inbound.Message{CarrierID: f.required("messageId", maxName)}
	setSentAt(&m, "receivedAt", o.text("receivedAt"), when)
	f.addresses(&m, "from", "to")
	var urls, texts []string
	for _, part := range o.list("message") { // of an MMS
		if text := part.text("value"); text != "" && strings.HasPrefix(part.text("contentType"), "text/") {
			texts = append(texts, text)
		}
		urls = append(urls, urlsOf([]object{part})...)
	}
	if len(texts) > 0 && !o.has("text") {
		o["text"] = strings.Join(texts, "\n")
	}
	f.whole(&m, "text", urls)
	return m, f.Err()
}
