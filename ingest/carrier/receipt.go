package carrier

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/message"
)

// ReceiptHandler applies receipts; *message.ReceiptHandler implements it.
type ReceiptHandler interface {
	Receive(ctx context.Context, receipts []message.Receipt) ([]message.Receipt, error)
}

// ReceiptProcessor applies journalled delivery receipts to their messages. A receipt that matches no
// message is unrouted. A receipt that arrives before the carrier's answer is applied when the answer
// arrives. ReceiptProcessor implements intake.Processor.
type ReceiptProcessor struct {
	handler ReceiptHandler
	seed    maphash.Seed
}

// NewReceiptProcessor returns a ReceiptProcessor.
func NewReceiptProcessor(h ReceiptHandler) *ReceiptProcessor {
	return &ReceiptProcessor{handler: h, seed: maphash.MakeSeed()}
}

// parsedReceipt is the receipt of an entry.
type parsedReceipt struct {
	message.Receipt
	notes decoders.Notes
}

// Parse parses a receipt. Each id of the receipt is a key, so that the receipts of a part are applied
// in order: a receipt that is applied after the final one would not be reported.
func (r *ReceiptProcessor) Parse(item *intake.Item) (receipt parsedReceipt, keys []uint64, err error) {
	if receipt, err = parseReceipt(&item.Entry); err != nil {
		return receipt, nil, errors.New(errorLine(err))
	}
	receipt.Event = item.ID
	for _, id := range slices.Concat(receipt.IDs, receipt.OtherBases) {
		keys = append(keys, hashKey(r.seed, "%q %q", receipt.Carrier, id))
	}
	return receipt, keys, nil
}

// Process passes all receipts to the handler in one batch.
func (r *ReceiptProcessor) Process(ctx context.Context, items []intake.ParsedItem[parsedReceipt]) ([]event.Status, error) {
	statuses := make([]event.Status, len(items)) // the ID is empty if a receipt needs no status
	receipts := make([]message.Receipt, len(items))
	for i, item := range items {
		receipts[i] = item.Content.Receipt
		if len(item.Content.notes) > 0 {
			done := item.Status(event.Done, "")
			done.Notes = item.Content.notes
			statuses[i] = done
		}
	}
	found, err := r.handler.Receive(ctx, receipts)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if receipt := &found[i]; !receipt.Matched {
			reason := fmt.Sprintf("receipt %s: unknown %s", receipt.State, describeMessage(receipt))
			unrouted := items[i].Status(event.Unrouted, intake.ClipReason(reason))
			unrouted.Notes = items[i].Content.notes
			statuses[i] = unrouted
		}
	}
	return onlyWithID(statuses), nil
}

// Describe returns the state of a receipt and the ids of its message.
func (r *ReceiptProcessor) Describe(item intake.ParsedItem[parsedReceipt]) string {
	description := fmt.Sprintf("%s: %s", item.Content.State, describeMessage(&item.Content.Receipt))
	if _, bind := carrierAndBind(&item.Entry); item.Entry.Source == SMPP && bind != "" {
		description += " over bind " + bind
	}
	return description
}

func describeMessage(r *message.Receipt) string {
	name := fmt.Sprintf("message %q", strings.Join(slices.Concat(r.IDs, r.OtherBases), " or "))
	if r.Carrier != "" {
		name += " of carrier " + r.Carrier
	}
	return name
}

// receiptParsers returns the parsers of receipts by the source of the entry.
func receiptParsers() map[string]func(*message.Receipt, *intake.Entry) (decoders.Notes, error) {
	return map[string]func(*message.Receipt, *intake.Entry) (decoders.Notes, error){
		SMPP: parseSMPPReceipt, "kannel": parseKannelReceipt, "json": parseJSONReceipt, Simulator: parseJSONReceipt,
	}
}

// parseReceipt parses a journalled receipt.
func parseReceipt(e *intake.Entry) (parsed parsedReceipt, err error) {
	parse, ok := receiptParsers()[e.Source]
	if !ok {
		return parsed, relay.Errorf(relay.KindInvalid, "no adapter for the receipts of %q", e.Source)
	}
	_, path, _ := strings.Cut(e.Path, receiptPath)
	_, parsed.Carrier, _ = strings.Cut(path, "/")
	parsed.At = e.ReceivedAt
	parsed.notes, err = parse(&parsed.Receipt, e)
	return parsed, err
}

// parseSMPPReceipt parses a deliver_sm or data_sm: the optional parameters, or the text if they are
// missing. It ignores the time in the text, which lacks a time zone.
func parseSMPPReceipt(r *message.Receipt, e *intake.Entry) (notes decoders.Notes, err error) {
	d, err := smpp.ParseDelivery(e.Body)
	if err != nil {
		return nil, err
	}
	reported := d.Receipt()
	if ids := smpp.ReceiptIDs(reported.ID); len(ids) > 0 {
		r.IDs, r.OtherBases = ids[:1:1], append([]string(nil), ids[1:]...)
	}
	// The source is the message's destination, but some SMSCs do not swap the addresses.
	for _, digits := range []string{d.Source.Digits, d.Destination.Digits} {
		if number, ok := relay.NumberFrom(digits); ok {
			r.Numbers = append(r.Numbers, number)
		}
	}
	r.Addresses = slices.DeleteFunc([]string{d.Source.Digits, d.Destination.Digits}, func(a string) bool { return a == "" })
	if number, ok := relay.NumberFrom(d.Source.Digits); ok && len(number) >= minSubscriber {
		r.Destination = number
	}
	if reference, ok := d.Reference(); ok { // the id of a part whose answer was lost
		number, _ := relay.NumberFrom(d.Source.Digits)
		r.IDs = append(r.IDs, smpp.UnansweredID(uint16(reference), number))
	}
	if line := readableText(d.ReceiptText()); strings.Contains(strings.ToLower(line), "stat:") {
		r.Line = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ").Replace(strings.TrimRight(line, "\x00 \r\n"))
	}
	if len(r.IDs) == 0 {
		return nil, relay.Errorf(relay.KindInvalid, "smpp: a receipt without the id of a message")
	}
	r.State, err = stateOf(reported.State)
	return smppNotes(d), err
}

// minSubscriber is the minimum length of a subscriber's number, in digits. Shorter numbers are
// short codes, to which messages are not sent.
const minSubscriber = 7

// stateOf returns the state for a receipt's stat (SMPP 3.4, appendix B, and the
// spellings of SMSCs). ACCEPTD is Buffered, because message.Accepted is the state after
// the submit response.
func stateOf(stat string) (message.State, error) {
	upper := strings.ToUpper(stat)
	for state, prefixes := range map[message.State][]string{
		message.Delivered:   {"DELIV", "DELVR", "DLVR"},
		message.Undelivered: {"UNDEL", "EXPIR", "DELET", "REJ", "UNKN", "FAIL", "SKIP", "CANCEL", "BLOCK"},
		message.Buffered:    {"ENROUTE", "EN_ROUTE", "ACC", "SCHED", "BUF", "QUEUE", "PEND", "RETRY", "SENT", "SUBMIT", "STORE"},
	} {
		for _, prefix := range prefixes {
			if strings.HasPrefix(upper, prefix) {
				return state, nil
			}
		}
	}
	return "", relay.Errorf(relay.KindInvalid, "a receipt whose state is %q", stat)
}

// parseKannelReceipt parses the parameters of the dlr-url of a message. Kannel sets type to %d and
// answer to %A.
func parseKannelReceipt(r *message.Receipt, e *intake.Entry) (decoders.Notes, error) {
	o, err := kannelParameters(e)
	if err != nil {
		return nil, err
	}
	f := newFieldReader(nil, o)
	f.setPart(r, e)
	r.State = f.code("type")
	if answer := f.optional("answer", maxText); strings.Contains(answer, "stat:") {
		r.Line = readableText(answer)
	}
	return nil, f.Err()
}

// parseJSONReceipt parses {ref, state or code, text}, or a query with the same names. The ref in
// the URL, which a signature may cover, overrides the ref in the body.
func parseJSONReceipt(r *message.Receipt, e *intake.Entry) (notes decoders.Notes, err error) {
	o, err := fieldsOf(e)
	if err != nil {
		return nil, err
	}
	q, err := queryObject(e.Query)
	if err != nil {
		return nil, err
	}
	for name, value := range q {
		if name == "ref" || !o.has(name) {
			o[name] = value
		}
	}
	f := newFieldReader(nil, o)
	f.setPart(r, e)
	r.Line = f.optional("text", maxText)
	notes = unknownFields(o, "ref", "sig", "state", "code", "text")
	if o.has("code") {
		r.State = f.code("code")
		return notes, f.Err()
	}
	if r.State, err = stateOf(f.required("state", maxName)); err != nil {
		f.Add("state", "The state must be DELIVRD, UNDELIV, EXPIRED, DELETED, REJECTD, ENROUTE or ACCEPTD.")
	}
	return notes, f.Err()
}

// setPart reads the reference of a part. Receipts with the token of an account match messages of
// that account only.
func (f *fieldReader) setPart(r *message.Receipt, e *intake.Entry) {
	ref := f.required("ref", maxName)
	p, ok := message.ParsePartRef(ref)
	switch {
	case ref == "":
	case !ok:
		f.Add("ref", "The ref is unknown.")
	case e.Account != 0 && e.Account != p.Account:
		r.IDs = []string{ref} // matches no message
	default:
		r.IDs, r.Part = []string{ref}, p
	}
}

func (f *fieldReader) code(name string) message.State {
	code := f.integer(name, 1, 16)
	state, ok := message.Code(code).State()
	if !ok && code != 0 {
		f.Add(name, "The "+name+" must be 1, 2, 4, 8 or 16.")
	}
	return state
}
