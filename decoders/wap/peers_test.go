package wap_test

import (
	"bytes"
	"encoding/xml"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/decoders/sms/smstest"
	"github.com/penstock/penstock/decoders/wap"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestWBXML2XMLReadsTheIndications checks that libwbxml decodes each indication.
func TestWBXML2XMLReadsTheIndications(t *testing.T) {
	if _, err := exec.LookPath("wbxml2xml"); err != nil {
		smstest.Missing(t, "wbxml2xml (Debian: libwbxml2-utils)")
	}
	for name, tc := range indications() {
		t.Run(name, func(t *testing.T) {
			message, err := tc.indication.Message(1)
			relaytest.NoError(t, err)
			const pushHeader = 4 // id, type, length of the headers, content type
			cmd := exec.Command("wbxml2xml", "-k", "-m", "0", "-o", "-", "-")
			cmd.Stdin = bytes.NewReader(message.Data[pushHeader:])
			output, err := cmd.Output()
			if err != nil {
				t.Fatalf("wbxml2xml: %v: %s", err, output)
			}
			var si struct {
				XMLName    xml.Name `xml:"si"`
				Indication struct {
					Href string `xml:"href,attr"`
					Text string `xml:",chardata"`
				} `xml:"indication"`
			}
			if err := xml.Unmarshal(output, &si); err != nil || !bytes.Contains(output, []byte("//WAPFORUM//DTD SI 1.0//EN")) {
				t.Fatalf("%v: %s", err, output)
			}
			relaytest.Equal(t, "the URL read by wbxml2xml", si.Indication.Href, tc.indication.URL)
			relaytest.Equal(t, "the title read by wbxml2xml", si.Indication.Text, tc.indication.Title)
		})
	}
}

// expectation has the values that tshark must return for fields.
type expectation struct {
	name   string
	fields map[string]string
}

// TestTsharkReadsThePushes checks that tshark decodes the ports, the push and each field of its
// content, for pushes in one part and in several.
func TestTsharkReadsThePushes(t *testing.T) {
	var messages []sms.Message
	var want []expectation
	add := func(name string, message sms.Octets, err error, fields map[string]string) {
		relaytest.NoError(t, err)
		m, err := message.Split(byte(len(messages)))
		relaytest.NoError(t, err)
		fields["gsm_sms.destination_port"], fields["gsm_sms.originator_port"], fields["wsp.pdu_type"] = "2948", "9200", "0x06"
		if len(m.Parts) > 1 {
			fields["gsm_sms.fragment.count"] = strconv.Itoa(len(m.Parts))
		}
		messages, want = append(messages, m), append(want, expectation{name, fields})
	}
	for name, indication := range tsharkIndications() {
		message, err := indication.Message(3)
		add(name, message, err, map[string]string{
			"wsp.header.content_type": "application/vnd.wap.sic", "wbxml.known_attrstart": "href='https://www.'",
			"wbxml.known_attrvalue": "'.com/'", "wbxml.str_i": "example|x|" + indication.Title,
		})
	}
	for name, n := range tsharkNotifications() {
		message, err := n.Message(3)
		add(name, message, err, map[string]string{
			"wsp.header.content_type": "application/vnd.wap.mms-message", "wsp.header.x_wap_application_id": "x-wap-application:mms.ua",
			"mmse.message_type": "0x82", "mmse.transaction_id": n.Transaction, "mmse.mms_version": "1.0", "mmse.from": "+447700900123/TYPE=PLMN",
			"mmse.subject": n.Subject, "mmse.message_class.id": "0x81", "mmse.message_size": "30000", "mmse.expiry.rel": "259200.000000000",
			"mmse.content_location": n.URL,
		})
	}
	for i, d := range smstest.Dissect(t, messages...) {
		for field, value := range want[i].fields {
			if got := d.All(field); !slices.Equal(got, strings.Split(value, "|")) {
				t.Errorf("%s: %s = %q, want %q", want[i].name, field, got, value)
			}
		}
	}
}

func tsharkIndications() map[string]wap.Indication {
	return map[string]wap.Indication{
		"an indication in one part":                {Title: "Grüße", URL: "https://www.example.com/x"},
		"an indication in several parts":           {Title: strings.Repeat("Grüße 🎉 ", 40), URL: "https://www.example.com/x"},
		"an indication that fills a part":          {Title: strings.Repeat("a", 104), URL: "https://www.example.com/x"},
		"an indication that is one octet too long": {Title: strings.Repeat("a", 105), URL: "https://www.example.com/x"},
	}
}

// A single part has room for 133 octets, and each of several parts for 128.
func TestIndicationFillsAPart(t *testing.T) {
	for name, want := range map[string]int{"an indication that fills a part": 1, "an indication that is one octet too long": 2} {
		message, err := tsharkIndications()[name].Message(3)
		relaytest.NoError(t, err)
		m, err := message.Split(1)
		relaytest.NoError(t, err)
		relaytest.Equal(t, name+": the number of parts", len(m.Parts), want)
	}
}

// tsharkNotifications returns notifications with subjects in ASCII, because tshark reports other
// texts octet by octet, without the charset and the quote.
func tsharkNotifications() map[string]wap.Notification {
	setClass := func(n *wap.Notification) { n.Class = wap.Advertisement }
	longNotification := changed(setClass)
	longNotification.Subject, longNotification.URL = strings.Repeat("Holiday ", 30), "http://mms.example.com/"+strings.Repeat("a/", 150)
	shortNotification := changed(setClass)
	shortNotification.Expiry = 72 * time.Hour
	return map[string]wap.Notification{"a notification in one part": shortNotification, "a notification in several parts": longNotification}
}
