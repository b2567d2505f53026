package carrier

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
)

// maxResults is how many messages one post may hold.
const maxResults = 1000

// parseInfobip reads the messages of Infobip's forwarding in the form MO_JSON_2:
// a list, results. One message's fields in the query or alone in the body count
// as such a list of one. Infobip has joined the parts and signs nothing. What is
// wrong with one message takes no other with it.
func parseInfobip(alphabet *sms.Alphabet, e *intake.Entry) ([]inbound.Message, error) {
	o, err := fieldsOf(e)
	if err != nil {
		return nil, err
	}
	results := []object{o}
	if o.has("results") {
		results = o.list("results")
	}
	f := newForm(nil)
	if len(results) == 0 || len(results) > maxResults {
		f.Add("results", fmt.Sprintf("The results must be a list of 1 to %d messages.", maxResults))
	}
	var out []inbound.Message
	var receipt error
	for i, one := range results[:min(len(results), maxResults)] {
		m, err := infobipMessage(alphabet, one)
		if _, ok := errors.AsType[notMessage](err); ok {
			receipt = err
			continue
		}
		if err != nil {
			f.take(fmt.Sprintf("results.%d.", i), o.has("results"), err)
			continue
		}
		out = append(out, m)
	}
	if err := f.Err(); err != nil || len(out) > 0 {
		return out, err
	}
	return nil, receipt
}

// take adds the fields of an error, each after where it stands.
func (f *form) take(at string, nested bool, err error) {
	if !nested {
		at = ""
	}
	for name, texts := range relay.FieldsOf(err) {
		for _, text := range texts {
			f.Add(at+name, text)
		}
	}
}

func infobipMessage(alphabet *sms.Alphabet, o object) (inbound.Message, error) {
	if o.has("status") && !o.has("text") {
		s := o.object("status")
		return inbound.Message{}, receiptOf(o.text("messageId"), s.first("groupName", "name"))
	}
	f := newForm(o.get)
	m := inbound.Message{CarrierID: f.required("messageId", maxName), SentAt: when(o.text("receivedAt"))}
	f.addresses(&m, "from", "to")
	f.whole(alphabet, &m, "text", nil)
	return m, f.Err()
}
