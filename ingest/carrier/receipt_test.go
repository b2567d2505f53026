package carrier

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/intake/intaketest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/relaytest"
)

// receiptHandler is a ReceiptHandler that finds messages by their ids.
type receiptHandler struct {
	known    map[string]bool // by id
	receipts []message.Receipt
	err      error
}

func (r *receiptHandler) Receive(_ context.Context, receipts []message.Receipt) ([]message.Receipt, error) {
	if r.err != nil {
		return nil, r.err
	}
	for i := range receipts {
		receipt := &receipts[i]
		receipt.Matched = receipt.Part.ID != 0
		for _, id := range receipt.IDs {
			receipt.Matched = receipt.Matched || r.known[id]
		}
		r.receipts = append(r.receipts, *receipt)
	}
	return receipts, nil
}

// partRef7 returns the reference of part 0 of the message 1001 of account 7.
func partRef7() message.PartRef {
	return message.PartRef{Ref: message.Ref{Account: 7, ID: 1001}}
}

func TestReceiptsAreParsed(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	entry := func(source, name, query, contentType, body string) intake.Entry {
		return intake.Entry{Source: source, Path: receiptPath + source + "/" + name, Query: query, ContentType: contentType, Body: []byte(body)}
	}
	for name, tc := range map[string]struct {
		entry intake.Entry
		want  message.Receipt
	}{
		"the text of an SMSC": {
			SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "447700900123", class: 4, text: "id:001A sub:001 stat:DELIVRD err:000 text:\xe9"}.pdu(t)),
			message.Receipt{Carrier: "one", Numbers: []string{"447700900123", "447800000001"}, Addresses: []string{"447700900123", "447800000001"}, Destination: "447700900123", IDs: []string{"1a"}, OtherBases: []string{"26"}, State: message.Delivered, Line: "id:001A sub:001 stat:DELIVRD err:000 text:é"},
		},
		"optional parameters precede the text": {
			SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "447700900123", class: 4, text: "id:9 stat:DELIVRD", tlvs: "001E 0003 374100 0427 0001 05"}.pdu(t)),
			message.Receipt{Carrier: "one", Numbers: []string{"447700900123", "447800000001"}, Addresses: []string{"447700900123", "447800000001"}, Destination: "447700900123", IDs: []string{"7a"}, OtherBases: []string{"122"}, State: message.Undelivered, Line: "id:9 stat:DELIVRD"},
		},
		"optional parameters and another text": {
			SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "447700900123", text: "delivered", tlvs: "001E 0003 783100 0427 0001 01"}.pdu(t)),
			message.Receipt{Carrier: "one", Numbers: []string{"447700900123", "447800000001"}, Addresses: []string{"447700900123", "447800000001"}, Destination: "447700900123", IDs: []string{"x1"}, State: message.Buffered},
		},
		"UCS-2 with a field on each line": {
			SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "447700900123", class: 4, coding: 8, text: string(sms.EncodeUCS2("\ufeffid:x\r\nstat:DELIVRD\r\ntext:Привет\r\n"))}.pdu(t)),
			message.Receipt{Carrier: "one", Numbers: []string{"447700900123", "447800000001"}, Addresses: []string{"447700900123", "447800000001"}, Destination: "447700900123", IDs: []string{"x"}, State: message.Delivered, Line: "id:x stat:DELIVRD text:Привет"},
		},
		"ASCII declared as UCS-2": {
			SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "447700900123", class: 4, coding: 8, text: "id:x stat:BUFFRED "}.pdu(t)),
			message.Receipt{Carrier: "one", Numbers: []string{"447700900123", "447800000001"}, Addresses: []string{"447700900123", "447800000001"}, Destination: "447700900123", IDs: []string{"x"}, State: message.Buffered, Line: "id:x stat:BUFFRED"},
		},
		"a message_state of SMPP 5.0": {
			SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "447700900123", class: 4, tlvs: "001E 0002 7800 0427 0001 09"}.pdu(t)),
			message.Receipt{Carrier: "one", Numbers: []string{"447700900123", "447800000001"}, Addresses: []string{"447700900123", "447800000001"}, Destination: "447700900123", IDs: []string{"x"}, State: message.Undelivered},
		},
		"the number of a service": {
			SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "66777", class: 4, text: "id:x stat:DELIVRD"}.pdu(t)),
			message.Receipt{Carrier: "one", Numbers: []string{"66777", "447800000001"}, Addresses: []string{"66777", "447800000001"}, IDs: []string{"x"}, State: message.Delivered, Line: "id:x stat:DELIVRD"},
		},
		"user_message_reference": {
			SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "+447700900123", class: 4, text: "id:x stat:EXPIRED", tlvs: "0204 0002 0102"}.pdu(t)),
			message.Receipt{Carrier: "one", Numbers: []string{"447700900123", "447800000001"}, Addresses: []string{"+447700900123", "447800000001"}, Destination: "447700900123", IDs: []string{"x", "ref 258 447700900123"}, State: message.Undelivered, Line: "id:x stat:EXPIRED"},
		},
		"a receipt from Kannel": {
			entry("kannel", "k", "ref=7-1001-0&sig=x&type=1&answer=id%3A9+stat%3ADELIVRD+err%3A000&time=1", "", ""),
			message.Receipt{Carrier: "k", IDs: []string{"7-1001-0"}, Part: partRef7(), State: message.Delivered, Line: "id:9 stat:DELIVRD err:000"},
		},
		"the answer of the SMSC from Kannel": {
			entry("kannel", "k", "ref=7-1001-0&type=16&answer=NACK%2F11", "", ""),
			message.Receipt{Carrier: "k", IDs: []string{"7-1001-0"}, Part: partRef7(), State: message.Rejected},
		},
		"JSON with a state": {
			entry("json", "h", "ref=7-1001-0&sig=x", "application/json", `{"state":"delivered","text":"stat:OK"}`),
			message.Receipt{Carrier: "h", IDs: []string{"7-1001-0"}, Part: partRef7(), State: message.Delivered, Line: "stat:OK"},
		},
		"JSON with a code and ref in the body": {
			entry("json", "h", "", "application/json", `{"ref":"7-1001-0","code":4}`),
			message.Receipt{Carrier: "h", IDs: []string{"7-1001-0"}, Part: partRef7(), State: message.Buffered},
		},
		"different refs in the body and the URL": {
			entry("json", "h", "ref=7-1001-0&sig=x", "application/json", `{"ref":"8-2002-0","state":"delivered"}`),
			message.Receipt{Carrier: "h", IDs: []string{"7-1001-0"}, Part: partRef7(), State: message.Delivered},
		},
		"different refs in a form and the URL": {
			entry("json", "h", "ref=7-1001-0&sig=x", "application/x-www-form-urlencoded", "ref=8-2002-0&code=1"),
			message.Receipt{Carrier: "h", IDs: []string{"7-1001-0"}, Part: partRef7(), State: message.Delivered},
		},
		"a query": {
			entry("json", "h", "ref=7-1001-0&code=2", "", ""),
			message.Receipt{Carrier: "h", IDs: []string{"7-1001-0"}, Part: partRef7(), State: message.Undelivered},
		},
		"a receipt from the simulator": {
			SimulatedReceipt("7-1001-0", "ENROUTE"),
			message.Receipt{IDs: []string{"7-1001-0"}, Part: partRef7(), State: message.Buffered},
		},
	} {
		t.Run(name, func(t *testing.T) {
			handler := &receiptHandler{known: map[string]bool{"1a": true, "7a": true, "x1": true, "x": true}}
			tc.entry.ReceivedAt = now
			statuses, err := intaketest.Process(t.Context(), NewReceiptProcessor(handler), intake.Item{ID: "n-r1", Seq: 1, Entry: tc.entry})
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the statuses", statuses, nil)
			if len(handler.receipts) != 1 {
				t.Fatalf("receipts = %d, want 1", len(handler.receipts))
			}
			tc.want.At, tc.want.Matched, tc.want.Event = now, true, "n-r1"
			relaytest.Equal(t, "the receipt", handler.receipts[0], tc.want)
		})
	}
}

func TestStatNamesAState(t *testing.T) {
	for state, words := range map[message.State][]string{
		message.Delivered:   {"DELIVRD", "Delivered", "DELIVERD"},
		message.Undelivered: {"UNDELIV", "UNDELIVERABLE", "EXPIRED", "DELETED", "REJECTD", "UNKNOWN", "FAILED", "SKIPPED", "CANCELED", "BLOCKED"},
		message.Buffered:    {"ENROUTE", "ACCEPTD", "SCHEDULED", "SCHEDLD", "BUFFRED", "BUFFERED", "BUFFERD", "QUEUED", "PENDING"},
	} {
		for _, word := range words {
			got, err := stateOf(word)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the state for "+word, got, state)
		}
	}
}

func TestOctetsAfterAReceiptAreNoted(t *testing.T) {
	p := NewReceiptProcessor(&receiptHandler{known: map[string]bool{"x": true}})
	item := intake.Item{ID: "n-r1", Seq: 1, Entry: SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "1", class: 4, text: "id:x stat:DELIVRD", tlvs: "00"}.pdu(t))}
	statuses, err := intaketest.Process(t.Context(), p, item)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the statuses", statuses, []event.Status{{
		ID: "n-r1", Seq: 1, State: event.Done, Source: "smpp", Notes: decoders.Notes{"smpp: octets after the message were ignored, because they are not optional parameters: 1"},
	}})
}

func TestReceiptsThatMatchNoMessage(t *testing.T) {
	otherAccount := intake.Entry{Source: "json", Account: 8, Path: receiptPath + "json", Query: "ref=7-1001-0&code=1"}
	for name, tc := range map[string]struct {
		entry  intake.Entry
		state  event.State
		reason string
	}{
		"an unknown id": {
			SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "1", class: 4, text: "id:77 stat:DELIVRD"}.pdu(t)),
			event.Unrouted, `receipt delivered: unknown message "77 or 4d or 119" of carrier one`,
		},
		"another account's message": {otherAccount, event.Unrouted, `receipt delivered: unknown message "7-1001-0"`},
		"an unknown state":          {SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "1", class: 4, text: "id:1 stat:PERHAPS"}.pdu(t)), event.Quarantined, `a receipt whose state is "PERHAPS"`},
		"a text without an id":      {SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "1", class: 4, text: "hello"}.pdu(t)), event.Quarantined, "smpp: a receipt without the id of a message"},
		"a body that is not a PDU":  {SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", []byte("x")), event.Quarantined, "smpp: header: offset 1: is incomplete"},
		"an unknown carrier":        {intake.Entry{Source: "pigeon"}, event.Quarantined, `no adapter for the receipts of "pigeon"`},
	} {
		t.Run(name, func(t *testing.T) {
			statuses, err := intaketest.Process(t.Context(), NewReceiptProcessor(&receiptHandler{}), intake.Item{ID: "n-r1", Seq: 1, Entry: tc.entry})
			relaytest.NoError(t, err)
			if len(statuses) != 1 {
				t.Fatalf("statuses = %d, want 1", len(statuses))
			}
			relaytest.Equal(t, "the state", statuses[0].State, tc.state)
			relaytest.Equal(t, "the reason", statuses[0].Reason, tc.reason)
		})
	}
	errDown := errors.New("down")
	if _, err := intaketest.Process(t.Context(), NewReceiptProcessor(&receiptHandler{err: errDown})); !errors.Is(err, errDown) {
		t.Errorf("error = %v, want %v", err, errDown)
	}
}

// receiptSurface returns an app with the paths of receipts only.
func receiptSurface(posts Intake, signer Signer) *fiber.App {
	discardLogger := slog.New(slog.DiscardHandler)
	app := httpd.New(httpd.Options{Logger: discardLogger})
	New(posts, Options{Logger: discardLogger}).MountReceipts(app, httpd.NewAuth(httpd.AuthDeps{Tokens: tokens{}, AdminToken: "admin", Now: time.Now}), posts, signer)
	app.Use(httpd.NotFound)
	return app
}

func TestReceiptsOverHTTP(t *testing.T) {
	signer := NewSigner("key")
	receiptURL, err := url.Parse(signer.ReceiptURL("https://gw.example.com/x", "kannel", "k", "7-1001-0"))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the receipt URL", receiptURL.Scheme+"://"+receiptURL.Host+receiptURL.Path, "https://gw.example.com/x/inbound/dlr/kannel/k")
	signed := "/inbound/dlr/kannel/k?" + receiptURL.RawQuery
	for name, tc := range map[string]struct {
		method, target, token, body string
		status                      int
		account                     int
		answer                      string
	}{
		"a signed URL":                       {"GET", signed + "&type=8", "", "", 200, 0, ""},
		"a signed URL with POST":             {"POST", signed + "&type=1", "", "", 200, 0, ""},
		"the signature of another message":   {"GET", strings.Replace(signed, "1001", "1002", 1) + "&type=8", "", "", 401, 0, "Unauthenticated"},
		"the signature of another carrier":   {"GET", strings.Replace(signed, "/k?", "/l?", 1) + "&type=8", "", "", 401, 0, "Unauthenticated"},
		"no signature":                       {"GET", "/inbound/dlr/kannel/k?ref=7-1001-0&type=8", "", "", 401, 0, "Unauthenticated"},
		"an unknown type":                    {"GET", signed + "&type=3", "", "", 422, 0, `"type"`},
		"no type":                            {"GET", signed, "", "", 422, 0, `"type"`},
		"JSON with a carrier's token":        {"POST", "/inbound/dlr/json", "carrier-1", `{"ref":"1-5-0","state":"DELIVRD"}`, 200, 1, `{"data":{"id":"n1-s1"}}`},
		"JSON with a token of another scope": {"POST", "/inbound/dlr/json", "customer", `{"ref":"1-5-0","state":"DELIVRD"}`, 403, 0, "Forbidden"},
		"invalid JSON":                       {"POST", "/inbound/dlr/json", "carrier-1", `{"ref`, 422, 0, "Invalid JSON."},
		"an invalid ref":                     {"POST", "/inbound/dlr/json", "carrier-1", `{"ref":"five","code":1}`, 422, 0, `"ref"`},
		"no ref and no state":                {"POST", "/inbound/dlr/json", "carrier-1", `{}`, 422, 0, `"state"`},
		"HEAD":                               {"HEAD", signed + "&type=8", "", "", 405, 0, ""},
		"an unknown kind":                    {"POST", "/inbound/dlr/pigeon", "carrier-1", `{}`, 404, 0, ""},
		"an unknown kind without a token":    {"POST", "/inbound/dlr/pigeon", "", `{}`, 401, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			status, body, _ := call(t, receiptSurface(r, signer), tc.method, tc.target, tc.token, tc.body)
			relaytest.Equal(t, "the status", status, tc.status)
			if !strings.Contains(body, tc.answer) {
				t.Errorf("answer = %s, want it to contain %s", body, tc.answer)
			}
			accepted := 0
			if tc.status == 200 {
				accepted = 1
			}
			relaytest.Equal(t, "the number of accepted receipts", len(r.entries), accepted)
			for _, e := range r.entries {
				relaytest.Equal(t, "the account", int(e.Account), tc.account)
			}
		})
	}
	if status, _, _ := call(t, receiptSurface(&recorder{err: errors.New("disk full")}, signer), "GET", signed+"&type=8", "", ""); status != 503 {
		t.Errorf("status with a full disk = %d, want 503", status)
	}
	if status, _, _ := call(t, receiptSurface(&recorder{}, Signer{}), "GET", signed+"&type=8", "", ""); status != 401 {
		t.Errorf("status without a key = %d, want 401", status)
	}
}

// FuzzReceipt checks that a parsed receipt has a state, an id and a carrier.
func FuzzReceipt(f *testing.F) {
	f.Add("smpp", "", deliver{from: "1", class: 4, text: "id:77 stat:DELIVRD"}.pdu(f))
	f.Add("kannel", "ref=7-1001-0&type=1&answer=stat%3A", []byte{})
	f.Add("json", "ref=7-1001-0", []byte(`{"code":4}`))
	f.Fuzz(func(t *testing.T, source, query string, body []byte) {
		e := intake.Entry{Source: source, Path: receiptPath + source + "/k", Query: query, Body: body}
		r, err := parseReceipt(&e)
		if err != nil {
			return
		}
		if r.State.Code() == 0 {
			t.Fatalf("state without a code: %q", r.State)
		}
		if len(r.IDs) == 0 {
			t.Fatal("receipt without an id")
		}
		relaytest.Equal(t, "the carrier", r.Carrier, "k")
	})
}
