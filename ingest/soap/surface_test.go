package soap

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestRoutesAreOperationsOfTheContract(t *testing.T) {
	w := newWire(t)
	doc, err := openapi.Load(OpenAPI())
	relaytest.NoError(t, err)
	for _, difference := range append(contracttest.DiffRoutes(w.app, doc), contracttest.Strict(doc)...) {
		t.Error(difference)
	}
}

const (
	ok11 = `<s:Envelope xmlns:s="` + ns11 + `"><s:Body><SoapSendSmsResponse xmlns="urn:penstock:messaging"><responsecode>0</responsecode>` +
		`<creditsused>1</creditsused><description>Accepted. Message ids: 100.</description></SoapSendSmsResponse></s:Body></s:Envelope>`
	type11, type12 = "text/xml; charset=utf-8", "application/soap+xml; charset=utf-8"
)

func fault11(code, text string) string {
	return "<s:Fault><faultcode>s:" + code + "</faultcode><faultstring>" + text + "</faultstring></s:Fault>"
}

func fault12(code, text string) string {
	return "<s:Fault><s:Code><s:Value>s:" + code + "</s:Value></s:Code><s:Reason><s:Text xml:lang=\"en\">" + text + "</s:Text></s:Reason></s:Fault>"
}

// Each envelope is accepted or refused, and answered in its own SOAP version.
func TestEnvelopes(t *testing.T) {
	ok12 := strings.ReplaceAll(ok11, ns11, ns12)
	good := enveloped(ns11, login, text1)
	prefixed := strings.NewReplacer("</", "</a:", "<", "<a:").Replace
	utf16le := func(s string) string {
		encoded := "\xff\xfe"
		for _, u := range utf16.Encode([]rune(s)) {
			encoded += string([]byte{byte(u), byte(u >> 8)})
		}
		return encoded
	}
	const unauthenticated = "Unauthenticated: "
	for _, tc := range []struct {
		name, contentType, action, body string
		status                          int
		answer, want                    string
	}{
		{"SOAP 1.1", "text/xml; charset=utf-8", `"urn:penstock:messaging#sendsms"`, good, 200, type11, ok11},
		{"SOAPAction without quotes", "text/xml", `urn:penstock:messaging#sendsms`, good, 200, type11, ok11},
		{"an empty SOAPAction", "text/xml", `""`, good, 200, type11, ok11},
		{"no SOAPAction", "text/xml", "", good, 200, type11, ok11},
		{"an unrelated SOAPAction", "text/xml", `"http://tempuri.org/Send"`, good, 200, type11, ok11},
		{"a SOAPAction that names another operation", "text/xml", `"urn:penstock:messaging#sendmmsnot"`, good, 500, type11,
			fault11("Client", "The SOAPAction names sendmmsnot, the Body contains SoapSendSms.")},
		{"SOAP 1.2", `application/soap+xml; charset=utf-8; action="urn:penstock:messaging#sendsms"`, "", enveloped(ns12, login, text1), 200, type12, ok12},
		{"SOAP 1.2 without an action", "application/soap+xml", "", enveloped(ns12, login, text1), 200, type12, ok12},
		{"SOAP 1.2 with another operation's action", `application/soap+xml; action="urn:penstock:messaging#sendwappush"`, "", enveloped(ns12, login, text1), 400, type12,
			fault12("Sender", "The SOAPAction names sendwappush, the Body contains SoapSendSms.")},
		{"SOAP 1.1 in the type of 1.2", "application/soap+xml", "", good, 200, type11, ok11},
		{"SOAP 1.2 in the type of 1.1", "text/xml", "", enveloped(ns12, login, text1), 200, type12, ok12},
		{"another content type", "text/plain", "", good, 200, type11, ok11},
		{"no content type", "", "", good, 200, type11, ok11},
		{"other prefixes", "text/xml", "", enveloped(ns11, strings.ReplaceAll(prefixed(login), "xmlns=", "xmlns:a="), strings.ReplaceAll(prefixed(text1), "xmlns=", "xmlns:a=")), 200, type11, ok11},
		{"children without a namespace", "text/xml", "", enveloped(ns11, login,
			`<q:SoapSendSms xmlns:q="urn:penstock:messaging"><destinationarray><number>447700900123</number></destinationarray><message>hi</message><messagetype>text</messagetype></q:SoapSendSms>`), 200, type11, ok11},
		{"children in another order", "text/xml", "", request("SoapSendSms",
			`<messagetype> text </messagetype><message>hi</message><destinationarray><number> 447700900123 </number></destinationarray>`), 200, type11, ok11},
		{"the envelope's namespace as the default", "text/xml", "", `<Envelope xmlns="` + ns11 + `"><Header>` + login + `</Header><Body>` + text1 + `</Body></Envelope>`, 200, type11, ok11},
		{"comments and blanks", "text/xml", "", strings.ReplaceAll(good, "><", ">\n <!-- x --> <"), 200, type11, ok11},
		{"CDATA and references", "text/xml", "", strings.ReplaceAll(good, "hi", "<![CDATA[h]]>&#x69;"), 200, type11, ok11},
		{"a surrogate reference in a comment", "text/xml", "", strings.Replace(good, "hi", "<!-- &#xD83D; -->hi", 1), 200, type11, ok11},
		{"a byte order mark", "text/xml", "", "\xef\xbb\xbf" + good, 200, type11, ok11},
		{"UTF-16", "text/xml; charset=utf-16", "", utf16le(strings.Replace(good, "utf-8", "utf-16", 1)), 200, type11, ok11},
		{"ISO-8859-1", "text/xml", "", strings.Replace(strings.Replace(strings.Replace(good, "utf-8", "ISO-8859-1", 1), "acme", "globex", 1), "secret", "\xf6ther", 1), 200, type11, ok11},
		{"an unknown header", "text/xml", "", enveloped(ns11, login+`<x:Trace xmlns:x="urn:x"><x:id>1</x:id></x:Trace>`, text1), 200, type11, ok11},
		{"auth that must be understood", "text/xml", "", enveloped(ns11, strings.Replace(login, "<auth", `<auth e:mustUnderstand="1"`, 1), text1), 200, type11, ok11},
		{"a header that must be understood by another actor", "text/xml", "", enveloped(ns11, login+`<x:T xmlns:x="urn:x" e:mustUnderstand="1" e:actor="urn:other"/>`, text1), 200, type11, ok11},

		{"an unknown header that must be understood", "text/xml", "", enveloped(ns11, login+`<x:T xmlns:x="urn:x" e:mustUnderstand="1"/>`, text1), 500, type11,
			fault11("MustUnderstand", `The header &#34;T&#34; must be understood, and is not (byte 208).`)},
		{"an unknown header that must be understood in SOAP 1.2", "text/xml", "", enveloped(ns12, `<x:T xmlns:x="urn:x" e:mustUnderstand="true"/>`, text1), 500, type12, "s:MustUnderstand"},
		{"an envelope of another version", "text/xml", "", enveloped("urn:soap13", login, text1), 500, type11, "s:VersionMismatch"},
		{"an empty HTTP body", "text/xml", "", "", 500, type11, fault11("Client", `The body is empty. \(byte 0\)`)},
		{"an empty HTTP body in SOAP 1.2", "application/soap+xml", "", "", 400, type12, "s:Sender"},
		{"JSON", "application/json", "", `{"message":"hi"}`, 500, type11, "There is text outside the root element. (byte 0)"},
		{"a tag that is not closed", "text/xml", "", strings.Replace(good, "</message>", "", 1), 500, type11, "The XML is not well-formed: element &lt;message&gt; closed by &lt;/SoapSendSms&gt;. (byte "},
		{"a truncated envelope", "text/xml", "", good[:len(good)-20], 500, type11, "unexpected EOF"},
		{"invalid UTF-8", "text/xml", "", strings.Replace(good, "hi", "\xff", 1), 500, type11, "invalid UTF-8"},
		{"a surrogate pair as references", "text/xml", "", strings.Replace(good, "hi", "&#55357;&#56838;", 1), 500, type11, "The XML is not well-formed: the reference &amp;#55357; is half of a surrogate pair. (byte "},
		{"a surrogate in hexadecimal", "text/xml", "", strings.Replace(good, "hi", "a&#x00d83D;", 1), 500, type11, "the reference &amp;#x00d83D; is half of a surrogate pair"},
		{"a surrogate in an attribute", "text/xml", "", strings.Replace(good, "<message", `<message a="&#xDE06;"`, 1), 500, type11, "the reference &amp;#xDE06; is half of a surrogate pair"},
		{"a character that is invalid in XML", "text/xml", "", strings.Replace(good, "hi", "&#0;", 1), 500, type11, "The XML is not well-formed"},
		{"an unknown encoding", "text/xml; charset=EBCDIC", "", good, 500, type11, "The character encoding &#34;EBCDIC&#34; is not supported"},
		{"half a unit of UTF-16", "text/xml", "", "\xff\xfe<", 500, type11, "The body is not valid UTF-16: its length is odd."},
		{"a document type", "text/xml", "", `<!DOCTYPE a SYSTEM "http://127.0.0.1/a.dtd">` + text1, 500, type11, fault11("Client", `A document type declaration is not allowed. \(byte 0\)`)},
		{"an entity expansion", "text/xml", "", `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]>` + text1, 500, type11, `declaration is not allowed. \(byte 21\)`},
		{"an external entity", "text/xml", "", strings.Replace(good, "<e:Envelope", `<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><e:Envelope`, 1), 500, type11, "declaration is not allowed."},
		{"an undeclared entity", "text/xml", "", strings.Replace(good, "hi", "&f;", 1), 500, type11, "invalid character entity &amp;f;"},
		{"a processing instruction", "text/xml", "", strings.Replace(good, "hi", "<?php hi ?>", 1), 500, type11, "Processing instructions are not allowed."},
		{"two documents", "text/xml", "", good + text1, 500, type11, "second root element"},
		{"deep nesting", "text/xml", "", enveloped(ns11, login, strings.Repeat("<a>", 40)+strings.Repeat("</a>", 40)), 500, type11, "nested deeper than 32"},
		{"many elements", "text/xml", "", enveloped(ns11, strings.Repeat("<a/>", 3000), text1), 500, type11, "more than 2000 elements"},
		{"a large body", "text/xml", "", enveloped(ns11, login, strings.Repeat(" ", 256<<10)+text1), 500, type11, fault11("Client", "The body is longer than 256 KiB.")},
		{"no envelope", "text/xml", "", text1, 500, type11, "The root element is &#34;SoapSendSms&#34;, not an Envelope."},
		{"no Body", "text/xml", "", `<e:Envelope xmlns:e="` + ns11 + `"><e:Header/></e:Envelope>`, 500, type11, "The Envelope has no Body."},
		{"an empty Body", "text/xml", "", enveloped(ns11, login, ""), 500, type11, "The Body has 0 elements, not one"},
		{"two requests", "text/xml", "", enveloped(ns11, login, text1+text1), 500, type11, "The Body has 2 elements, not one"},
		{"two Bodies", "text/xml", "", strings.Replace(good, "</e:Envelope>", "<e:Body/></e:Envelope>", 1), 500, type11, "must hold a Header and a Body, not &#34;Body&#34;"},
		{"an undeclared prefix", "text/xml", "", enveloped(ns11, login, "<q:SoapSendSms/>"), 500, type11, "There is no operation &#34;SoapSendSms&#34; in the namespace &#34;q&#34;."},
		{"an unknown operation", "text/xml", "", enveloped(ns11, login, `<SoapSendFax xmlns="urn:penstock:messaging"/>`), 500, type11, "There is no operation &#34;SoapSendFax&#34;"},

		{"no auth", "text/xml", "", enveloped(ns11, "", text1), 500, type11, fault11("Client", unauthenticated+"the header auth of the namespace urn:penstock:messaging is missing.")},
		{"no Header", "text/xml", "", `<e:Envelope xmlns:e="` + ns11 + `"><e:Body>` + text1 + `</e:Body></e:Envelope>`, 500, type11, unauthenticated},
		{"a wrong password", "text/xml", "", strings.Replace(good, "secret", "Secret", 1), 500, type11, fault11("Client", unauthenticated+"unknown username or password.")},
		{"an unknown username", "text/xml", "", strings.Replace(good, "acme", "nobody", 1), 500, type11, fault11("Client", unauthenticated+"unknown username or password.")},
		{"another account's password", "text/xml", "", strings.Replace(good, "acme", "globex", 1), 500, type11, unauthenticated},
		{"a wrong password in SOAP 1.2", "text/xml", "", strings.Replace(enveloped(ns12, login, text1), "secret", "", 1), 400, type12,
			`<s:Value>s:Sender</s:Value><s:Subcode><s:Value xmlns:m="urn:penstock:messaging">m:Unauthenticated</s:Value></s:Subcode>`},
		{"auth without a password", "text/xml", "", strings.Replace(good, "<password>secret</password>", "", 1), 500, type11, unauthenticated + "auth.password: is required (byte "},
		{"auth twice", "text/xml", "", enveloped(ns11, login+login, text1), 500, type11, "The header auth is given twice"},
		{"wrong credentials are reported before an invalid request", "text/xml", "", strings.Replace(strings.Replace(good, "secret", "x", 1), "hi", "", 1), 500, type11, unauthenticated},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWire(t)
			got := w.ask("POST", "/soap", tc.body, "Content-Type", tc.contentType, "SOAPAction", tc.action)
			want := strings.NewReplacer(`\(`, "(", `\)`, ")").Replace(tc.want)
			relaytest.Equal(t, "the status", got.status, tc.status)
			relaytest.Equal(t, "the type", got.contentType, tc.answer)
			answertest.Contains(t, "the answer", got.body, want)
			if count := len(w.messages.orders); (count == 1) != (tc.status == 200) {
				t.Errorf("status = %d, but %d orders", tc.status, count)
			}
		})
	}
}

// describeOrder returns an order as one line of text.
func describeOrder(t *testing.T, o message.Order) string {
	t.Helper()
	encoded, err := o.Body.Encode(0, nil)
	relaytest.NoError(t, err)
	line := fmt.Sprintf("%d %s %v %q", o.Account, o.Origin, o.Destinations, o.Originator)
	for _, p := range encoded.Parts {
		if p.Text != "" {
			line += " " + p.Text
		} else {
			line += fmt.Sprintf(" %d %s %s", encoded.Coding, hex.EncodeToString(p.UDH), hex.EncodeToString(p.Data))
		}
	}
	if !o.SendAt.IsZero() {
		line += " at " + o.SendAt.Format(time.RFC3339Nano)
	}
	if o.Report.URL != "" {
		line += " report " + o.Report.URL
	}
	if o.Flash {
		line += " flash"
	}
	return line
}

const destination = `<destinationarray><number>447700900123</number></destinationarray>`

func TestRequestsBecomeOrders(t *testing.T) {
	ten := `<destinationarray>` + strings.Repeat(`<number>447700900123</number>`, 10) + `</destinationarray>`
	const link = `<waptitle>Offers</waptitle><wapurl>http://www.example.com/a</wapurl>`
	const notice = `<subject>Hi</subject><mmsurl>http://m/1</mmsurl><filesize>30720</filesize><class>81</class><expiry>3600</expiry>`
	for _, tc := range []struct{ name, operation, children, want string }{
		{"a text", "SoapSendSms", destination + `<message>hi</message><messagetype>text</messagetype>`, `1 soap [447700900123] "" "hi" max 0`},
		{"a text with every element", "SoapSendSms", destination + `<originator>Penstock</originator><message> a &amp; b </message><messagetype>flash</messagetype><maxconcat>255</maxconcat>` +
			`<sendtime>2026-12-01T10:00:00.5+01:00</sendtime><dlrep><callbackurl>https://a/?i=%msgid</callbackurl><callbacktype>HTTPGET</callbacktype></dlrep>`,
			`1 soap [447700900123] "Penstock" " a & b " max 255 at 2026-12-01T09:00:00.5Z report https://a/?i=%msgid flash`},
		{"a time without a zone, and no report", "SoapSendSms", destination + `<message>hi</message><messagetype>text</messagetype><maxconcat> 1 </maxconcat>` +
			`<sendtime>2026-12-01T10:00:00</sendtime><dlrep><callbackurl>https://a/</callbackurl><callbacktype>NONE</callbacktype></dlrep>`,
			`1 soap [447700900123] "" "hi" max 1 at 2026-12-01T10:00:00Z`},
		{"empty optional elements", "SoapSendSms", destination + `<originator/><message>hi</message><messagetype>text</messagetype><maxconcat/><sendtime> </sendtime><dlrep/>`,
			`1 soap [447700900123] "" "hi" max 0`},
		{"ten destinations", "SoapSendSms", ten + `<message>hi</message><messagetype>text</messagetype>`,
			`1 soap [` + strings.TrimSpace(strings.Repeat("447700900123 ", 10)) + `] "" "hi" max 0`},
		{"a text of blanks", "SoapSendSms", destination + `<message>  </message><messagetype>text</messagetype>`, `1 soap [447700900123] "" "  " max 0`},
		{"octets with a UDH", "SoapSendBinarySms", destination + `<data>00FF10</data><udh> 0605040b8423f0 </udh><encoding>8</encoding>`, `1 soap [447700900123] "" 8 0605040b8423f0 00ff10`},
		{"octets without a UDH", "SoapSendBinarySms", destination + `<data>00ff10</data><udh/>`, `1 soap [447700900123] "" 8  00ff10`},
		{"a WAP push", "SoapSendWapPush", destination + `<originator>447700900001</originator>` + link, `1 soap [447700900123] "447700900001" 8 0605040b8423f0 `},
		{"an MMS notification", "SoapSendMMSNot", destination + `<originator>447700900001</originator>` + notice, `1 soap [447700900123] "447700900001" 8 0605040b8423f0 `},
		{"an MMS notification from an alphanumeric originator", "SoapSendMMSNot", destination + `<originator>Penstock</originator>` + notice, `1 soap [447700900123] "Penstock" 8 0605040b8423f0 `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWire(t)
			got := w.ask("POST", "/soap", request(tc.operation, tc.children), "Content-Type", "text/xml")
			relaytest.Equal(t, "the status", got.status, 200)
			answertest.Contains(t, "the answer", got.body, "<"+tc.operation+`Response xmlns="urn:penstock:messaging"><responsecode>0</responsecode><creditsused>`)
			order := describeOrder(t, w.messages.orders[0])
			if strings.HasSuffix(tc.want, " ") { // the octets of a push have tests of their own
				order = order[:min(len(order), len(tc.want))]
			}
			if order != tc.want {
				t.Errorf("\n got %s\nwant %s", order, tc.want)
			}
		})
	}
}

func TestMistakesAreNamed(t *testing.T) {
	const hi = `<message>hi</message><messagetype>text</messagetype>`
	const notice = `<subject>Hi</subject><mmsurl>http://m/1</mmsurl><filesize>1</filesize><class>80</class><expiry>1</expiry>`
	report := func(url, kind string) string {
		return "<dlrep><callbackurl>" + url + "</callbackurl><callbacktype>" + kind + "</callbacktype></dlrep>"
	}
	for _, tc := range []struct{ name, operation, children, want string }{
		{"no elements", "SoapSendSms", "", "destinationarray: is required (byte 227); message: is required (byte 227); messagetype: is required (byte 227)"},
		{"no destination", "SoapSendSms", "<destinationarray/>" + hi, "destinationarray.number: is required"},
		{"eleven destinations", "SoapSendSms", "<destinationarray>" + strings.Repeat("<number>447700900123</number>", 13) + "</destinationarray>" + hi, "destinationarray.number[10]: expected at most 10 (byte "},
		{"an invalid destination", "SoapSendSms", "<destinationarray><number>447700900123</number><number>+44770</number></destinationarray>" + hi, `destinationarray.number[1]: expected 7 to 15 digits, country code first, without a plus sign or leading zeros, got &#34;+44770&#34; (byte `},
		{"an empty message", "SoapSendSms", destination + `<message/><messagetype>text</messagetype>`, "message: is required"},
		{"an unknown messagetype", "SoapSendSms", destination + `<message>hi</message><messagetype>loud</messagetype>`, "messagetype: expected text or flash, got &#34;loud&#34;"},
		{"maxconcat 0", "SoapSendSms", destination + hi + "<maxconcat>0</maxconcat>", "maxconcat: expected a whole number from 1 to 255, got &#34;0&#34;"},
		{"maxconcat 256", "SoapSendSms", destination + hi + "<maxconcat>256</maxconcat>", "maxconcat: expected a whole number from 1 to 255"},
		{"maxconcat 1.5", "SoapSendSms", destination + hi + "<maxconcat>1.5</maxconcat>", "maxconcat: expected a whole number from 1 to 255"},
		{"a day that does not exist", "SoapSendSms", destination + hi + "<sendtime>2026-02-30T12:00:00</sendtime>", "sendtime: expected a time like 2026-01-31T12:00:00Z, got &#34;2026-02-30T12:00:00&#34;"},
		{"a report without a type", "SoapSendSms", destination + hi + "<dlrep><callbackurl>https://a/</callbackurl></dlrep>", "dlrep.callbacktype: is required"},
		{"a report without a URL", "SoapSendSms", destination + hi + "<dlrep><callbacktype>NONE</callbacktype></dlrep>", "dlrep.callbackurl: is required"},
		{"a report of another type", "SoapSendSms", destination + hi + report("https://a/", "SMTP"), "dlrep.callbacktype: expected NONE or HTTPGET"},
		{"HTTPGET without a URL", "SoapSendSms", destination + hi + report("", "HTTPGET"), "dlrep.callbackurl: is required when callbacktype is HTTPGET"},
		{"an element twice", "SoapSendSms", destination + hi + hi, "message: is given twice (byte "},
		{"an unknown element", "SoapSendSms", destination + hi + "<colour>red</colour>", "&#34;colour&#34;: there is no such element here (byte "},
		{"an element of another namespace", "SoapSendSms", destination + hi + `<originator xmlns="urn:x">a</originator>`, "&#34;originator&#34;: there is no such element here"},
		{"an element within a text", "SoapSendSms", destination + `<message><b>hi</b></message><messagetype>text</messagetype>`, "message: expected text, got an element"},
		{"text between elements", "SoapSendSms", destination + hi + "hello", "SoapSendSms: expected elements, got text"},
		{"text in the list", "SoapSendSms", "<destinationarray>447700900123</destinationarray>" + hi, "destinationarray: expected elements, got text"},
		{"more mistakes than are listed", "SoapSendSms", "<a/><b/><c/><d/><e/><f/>", "; and 4 more"},
		{"an odd number of digits", "SoapSendBinarySms", destination + "<data>00f</data><udh/>", "data: expected an even number of hexadecimal digits, got &#34;00f&#34;"},
		{"invalid hexadecimal digits", "SoapSendBinarySms", destination + "<data>xy</data><udh/>", "data: expected an even number of hexadecimal digits"},
		{"no data", "SoapSendBinarySms", destination + "<data/><udh/>", "data: is required"},
		{"an invalid UDH", "SoapSendBinarySms", destination + "<data>00</data><udh>0605</udh>", "udh: The udh cannot be sent"},
		{"no udh", "SoapSendBinarySms", destination + "<data>00</data>", "udh: is required"},
		{"an unknown data encoding", "SoapSendBinarySms", destination + "<data>00</data><udh/><encoding>9</encoding>", "encoding: expected 7, 8 or 16, got &#34;9&#34;"},
		{"an invalid link", "SoapSendWapPush", destination + "<waptitle>a</waptitle><wapurl>http://a b</wapurl>", "wapurl: The wapurl cannot be sent"},
		{"an unknown class", "SoapSendMMSNot", destination + strings.Replace(notice, "80", "84", 1), "class: expected 80, 81, 82 or 83, got &#34;84&#34;"},
		{"an expiry below zero", "SoapSendMMSNot", destination + strings.Replace(notice, "<expiry>1", "<expiry>-1", 1), "expiry: expected a whole number of 0 or more"},
		{"an expiry of more than 32 bits", "SoapSendMMSNot", destination + strings.Replace(notice, "<expiry>1", "<expiry>9223372036854775807", 1), "expiry: expected at most 4294967295 seconds"},
		{"a size below zero", "SoapSendMMSNot", destination + strings.Replace(notice, "<filesize>1", "<filesize>-1", 1), "filesize: expected a whole number from 0 to"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWire(t)
			got := w.ask("POST", "/soap", request(tc.operation, tc.children), "Content-Type", "text/xml")
			relaytest.Equal(t, "the status", got.status, 200)
			relaytest.Equal(t, "the number of orders", len(w.messages.orders), 0)
			answertest.Contains(t, "the answer", got.body, "<responsecode>3</responsecode><creditsused>0</creditsused><description>Invalid request: ", tc.want)
		})
	}
}

func TestServiceErrorsAreAnswered(t *testing.T) {
	invalid := &relay.Error{Kind: relay.KindInvalid, Message: "m", Fields: map[string][]string{
		"send_time": {"The send_time may not be more than a year ahead."}, "dlr_url": {"The dlr_url is refused: private."}, "odd": {"Odd."},
	}}
	code := func(n int, text string) string {
		return fmt.Sprintf("<responsecode>%d</responsecode><creditsused>0</creditsused><description>%s</description>", n, text)
	}
	for _, tc := range []struct {
		name   string
		err    error
		status int
		want   string
	}{
		{"no credit", relay.Errorf(relay.KindNoCredit, "x"), 200, code(2, "Insufficient credit.")},
		{"invalid parameters are named as elements", invalid, 200, code(3, "Invalid request: dlrep.callbackurl: The dlrep.callbackurl is refused: private; odd: Odd; sendtime: The sendtime may not be more than a year ahead.")},
		{"an unavailable store", fmt.Errorf("save: %w", relay.Errorf(relay.KindUnavailable, "redis at 10.0.0.1")), 200, code(4, "Service temporarily unavailable. Please try again later.")},
		{"an unexpected error", errors.New("private detail"), 500, fault11("Server", "Internal error. Request req-1.")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWire(t)
			w.messages.err = tc.err
			got := w.ask("POST", "/soap", enveloped(ns11, login, text1), "Content-Type", "text/xml")
			relaytest.Equal(t, "the status", got.status, tc.status)
			answertest.Contains(t, "the answer", got.body, tc.want)
			if tc.status == 500 != strings.Contains(w.log.String(), "private detail") {
				t.Errorf("unexpected log: %s", w.log.String())
			}
		})
	}
	t.Run("unavailable logins", func(t *testing.T) {
		w := newWire(t)
		w.logins.err = relay.Errorf(relay.KindUnavailable, "down")
		got := w.ask("POST", "/soap", enveloped(ns11, login, text1))
		relaytest.Equal(t, "the status", got.status, 200)
		answertest.Contains(t, "the answer", got.body, code(4, "Service temporarily unavailable. Please try again later."))
	})
}

func TestWSDLIsServed(t *testing.T) {
	w := newWire(t)
	for _, target := range []string{"/soap?wsdl", "/soap?WSDL", "/soap?wsdl=1", "/soap?a=b&Wsdl"} {
		got := w.ask("GET", target, "")
		relaytest.Equal(t, target+": the status", got.status, 200)
		relaytest.Equal(t, target+": the type", got.contentType, type11)
		answertest.Contains(t, target, got.body, `soap:address location="https://gw.example/soap"`)
	}
	for _, target := range []string{"/soap", "/soap?x=wsdl"} {
		if got := w.ask("GET", target, ""); got.status != 404 {
			t.Errorf("%s: status = %d, want 404", target, got.status)
		}
	}
}

// Before the inventory is applied, an unknown user and a wrong password get the same answer,
// and both count as guesses.
func TestSigningInBeforeTheInventoryIsApplied(t *testing.T) {
	w := newWire(t)
	w.limiter.InventoryPending = func() bool { return true }
	ask := func(user string) httpAnswer {
		good := enveloped(ns11, login, text1)
		return w.ask("POST", "/soap", strings.Replace(good, "acme", user, 1), "Content-Type", "text/xml")
	}
	wrongPassword, unknownUser := ask("globex"), ask("nobody")
	relaytest.Equal(t, "answer to a wrong password", wrongPassword, unknownUser)
	if strings.Contains(wrongPassword.body, "Unauthenticated") {
		t.Errorf("got %+v, want unavailable", wrongPassword)
	}
	relaytest.Equal(t, "answer to a right password", ask("acme").status, 200)
	wrong, _ := w.limiter.Counts()
	total := uint64(0)
	for _, n := range wrong {
		total += n
	}
	relaytest.Equal(t, "wrong credentials", total, 2)
}
