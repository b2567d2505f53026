package soap

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/relaytest"
)

// The WSDL matches the elements that operations read and answer.
func TestWSDLDescribesTheOperations(t *testing.T) {
	root, err := parse(wsdl("https://gw.example/soap"))
	relaytest.NoError(t, err)
	named := make(map[string]*node) // types and elements of the schema
	for _, n := range find(find([]*node{root}, "types"), "schema")[0].children {
		named[n.attr("", "name")] = n
	}
	expectElements := func(name string, want []element) {
		t.Helper()
		if named[name] == nil {
			t.Fatalf("the WSDL lacks the element %s", name)
		}
		relaytest.Equal(t, name, describe(named, find([]*node{named[name]}, "complexType")[0], ""), expected(want, ""))
	}
	expectElements(authHeader, credentials())
	var names []string
	for _, o := range operations() {
		expectElements(o.name, o.children)
		expectElements(o.answerName(), answerElements())
		names = append(names, o.name+" "+o.soapAction())
	}
	for _, binding := range find([]*node{root}, "binding") {
		var bound []string
		for _, o := range find([]*node{binding}, "operation") {
			bound = append(bound, o.attr("", "name")+" "+find([]*node{o}, "operation")[0].attr("", "soapAction"))
		}
		relaytest.Equal(t, binding.attr("", "name"), bound, names)
	}
}

// find returns the children of parents with a local name.
func find(parents []*node, local string) (found []*node) {
	for _, parent := range parents {
		for _, n := range parent.children {
			if n.name.Local == local {
				found = append(found, n)
			}
		}
	}
	return found
}

// describe returns a line for each element of a complex type of the WSDL; expected returns
// the same lines for elements of this package.
func describe(named map[string]*node, complexType *node, path string) string {
	var lines strings.Builder
	for _, n := range find([]*node{complexType}, "sequence")[0].children {
		name := path + n.attr("", "name")
		base, limits := strings.TrimPrefix(n.attr("", "type"), "xs:"), ""
		for _, restriction := range find(find([]*node{n}, "simpleType"), "restriction") {
			base = strings.TrimPrefix(restriction.attr("", "base"), "xs:")
			for _, limit := range restriction.children {
				limits += " " + limit.name.Local + "=" + limit.attr("", "value")
			}
		}
		typeName, isNamed := strings.CutPrefix(base, "tns:")
		if isNamed {
			base = "elements"
		}
		_, _ = fmt.Fprintf(&lines, "%s %q to %q: %s%s\n", name, n.attr("", "minOccurs"), n.attr("", "maxOccurs"), base, limits)
		if isNamed {
			lines.WriteString(describe(named, named[typeName], name+"."))
		}
	}
	return lines.String()
}

func expected(elements []element, path string) string {
	var lines strings.Builder
	for _, e := range elements {
		minOccurs, maxOccurs, base, limits := "", "", e.kind.xsd, ""
		if e.optional {
			minOccurs = "0"
		}
		if e.maxCount() > 1 {
			maxOccurs = fmt.Sprint(e.maxCount())
		}
		for _, word := range e.kind.enumerated {
			limits += " enumeration=" + word
		}
		if e.kind.minimum != nil {
			limits += fmt.Sprintf(" minInclusive=%d", *e.kind.minimum)
		}
		if e.kind.maximum != nil {
			limits += fmt.Sprintf(" maxInclusive=%d", *e.kind.maximum)
		}
		if e.children != nil {
			base = "elements"
		}
		_, _ = fmt.Fprintf(&lines, "%s %q to %q: %s%s\n", path+e.name, minOccurs, maxOccurs, base, limits)
		lines.WriteString(expected(e.children, path+e.name+"."))
	}
	return lines.String()
}

// filled returns an element with a valid value.
func filled(e element) string {
	var inner string
	switch {
	case e.children != nil:
		for _, c := range e.children {
			inner += filled(c)
		}
	case e.kind.msisdn:
		inner = "447700900123"
	case len(e.kind.enumerated) > 0:
		inner = e.kind.enumerated[0]
	default:
		inner = map[string]string{"string": "http://a/", "integer": "7", "hexBinary": "06", "dateTime": "2026-01-31T12:00:00Z"}[e.kind.xsd]
	}
	return "<" + e.name + ">" + inner + "</" + e.name + ">"
}

// readChildren decodes the children of an operation.
func readChildren(t *testing.T, o operation, children string) (values, mistakes) {
	t.Helper()
	root, err := parse([]byte("<" + o.name + ` xmlns="` + Namespace + `">` + children + "</" + o.name + ">"))
	relaytest.NoError(t, err)
	var m mistakes
	v := decode(o.children, root, "", &m)
	return v, m
}

// An operation accepts its elements in any order. It refuses a missing required element and
// a repeated single element.
func TestRequestsAreReadAsDescribed(t *testing.T) {
	for _, o := range operations() {
		var children []string
		for _, e := range o.children {
			children = append(children, filled(e))
		}
		v, m := readChildren(t, o, strings.Join(children, ""))
		relaytest.Equal(t, o.name+": the mistakes", m, nil)
		relaytest.Equal(t, o.name+": the number of values", len(v), len(o.children))
		slices.Reverse(children)
		reversed, m := readChildren(t, o, strings.Join(children, ""))
		relaytest.Equal(t, o.name+", reversed: the mistakes", m, nil)
		relaytest.Equal(t, o.name+", reversed: the values", fmt.Sprint(reversed), fmt.Sprint(v))
		for i, e := range slices.Backward(o.children) {
			i = len(children) - 1 - i
			remaining := slices.Delete(slices.Clone(children), i, i+1)
			_, m := readChildren(t, o, strings.Join(remaining, ""))
			relaytest.Equal(t, o.name+" without "+e.name+" is accepted", len(m) == 0, e.optional)
			if !e.optional && len(m) > 0 {
				answertest.HasPrefix(t, o.name+" without "+e.name, m[0], e.name+": is required")
			}
			_, m = readChildren(t, o, strings.Join(children, "")+children[i])
			if len(m) != 1 {
				t.Fatalf("%s with two %s: %d mistakes, want 1: %s", o.name, e.name, len(m), m)
			}
			answertest.HasPrefix(t, o.name+" with two "+e.name, m[0], e.name+": is given twice")
		}
	}
}

// want is the specification's table of SOAP messages.
func TestOperationsHaveTheElementsOfTheSpecification(t *testing.T) {
	want := map[string]string{
		"SoapSendSms":       "destinationarray, originator?, message, messagetype, maxconcat?, sendtime?, dlrep?",
		"SoapSendBinarySms": "destinationarray, originator?, data, udh, sendtime?, dlrep?, encoding?",
		"SoapSendWapPush":   "destinationarray, originator?, waptitle, wapurl, sendtime?, dlrep?",
		"SoapSendMMSNot":    "destinationarray, originator?, subject, mmsurl, filesize, class, expiry, sendtime?, dlrep?",
	}
	actions := []string{"sendsms", "sendbinarysms", "sendwappush", "sendmmsnot"}
	for i, o := range operations() {
		var names []string
		for _, e := range o.children {
			if e.optional {
				e.name += "?"
			}
			names = append(names, e.name)
		}
		relaytest.Equal(t, o.name+": the elements", strings.Join(names, ", "), want[o.name])
		relaytest.Equal(t, o.name+": the SOAPAction", o.soapAction(), "urn:penstock:messaging#"+actions[i])
	}
}

// An answer has the children of its description, in that order, with any text.
func TestAnswersMatchTheirDescription(t *testing.T) {
	for _, o := range operations() {
		a := answer{code: invalid, credits: 7, description: "a <b> & \x00 \xff \"c\""}
		var found []string
		d := xml.NewDecoder(bytes.NewReader(a.encode(soap12, o)))
		for token, err := d.Token(); err == nil; token, err = d.Token() {
			switch e := token.(type) {
			case xml.StartElement:
				found = append(found, e.Name.Local)
			case xml.CharData:
				found = append(found, string(e))
			}
		}
		want := []string{"\n", "Envelope", "Body", o.name + "Response", "responsecode", "3", "creditsused", "7", "description", "a <b> & \uFFFD \uFFFD \"c\"", "\n"}
		if !slices.Equal(found, want) {
			t.Errorf("%q\nwant %q", found, want)
		}
	}
}

func TestKindsReadText(t *testing.T) {
	for _, tc := range []struct {
		kind kind
		text string
		want string // as fmt prints it; "" for a refusal
	}{
		{textKind(), " a ", " a "},
		{enumKind("text", "flash"), " flash\n", "flash"},
		{enumKind("text", "flash"), "Flash", ""},
		{rangeKind(1, 255), "255", "255"},
		{rangeKind(1, 255), "+007", "7"},
		{rangeKind(1, 255), "0", ""},
		{rangeKind(1, 255), "256", ""},
		{rangeKind(1, 255), "1e2", ""},
		{rangeKind(1, 255), "0x10", ""},
		{rangeKind(1, 255), "1_0", ""},
		{rangeKind(1, 255), "99999999999999999999", ""},
		{minimumKind(0), "-0", "0"},
		{minimumKind(0), "-1", ""},
		{integerEnumKind("80", "81"), "080", "80"},
		{integerEnumKind("80", "81"), "82", ""},
		{octetsKind(), "0aFF", "[10 255]"},
		{octetsKind(), "", "[]"},
		{octetsKind(), "0", ""},
		{octetsKind(), "0 1", ""},
		{msisdnKind(), " 447700900123 ", "447700900123"},
		{msisdnKind(), "0770", ""},
		{dateTimeKind(), "2026-01-31T12:00:00", "2026-01-31 12:00:00 +0000 UTC"},
		{dateTimeKind(), "2026-01-31T12:00:00.25+05:30", "2026-01-31 06:30:00.25 +0000 UTC"},
		{dateTimeKind(), "2026-12-31T24:00:00", "2027-01-01 00:00:00 +0000 UTC"},
		{dateTimeKind(), "2026-01-31T24:00:00Z", "2026-02-01 00:00:00 +0000 UTC"},
		{dateTimeKind(), "2026-01-31T24:00:01", ""},
		{dateTimeKind(), "2026-01-31 12:00:00", ""},
		{dateTimeKind(), "2026-01-31", ""},
		{dateTimeKind(), "2026-01-31T12:00", ""},
		{dateTimeKind(), "soon", ""},
	} {
		got, err := tc.kind.read(tc.text)
		relaytest.Equal(t, fmt.Sprintf("%s %q is accepted", tc.kind, tc.text), err == nil, tc.want != "")
		if err == nil {
			relaytest.Equal(t, fmt.Sprintf("%s %q", tc.kind, tc.text), fmt.Sprint(got), tc.want)
		}
	}
}

// FuzzEnvelope checks that a request is either read within the limits or refused with a
// Fault, and that every answer is well-formed.
func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(enveloped(ns11, login, text1)), "text/xml")
	f.Add([]byte(enveloped(ns12, login, text1)), `application/soap+xml; action="urn:penstock:messaging#sendsms"`)
	f.Add([]byte("\xff\xfe<\x00"), "text/xml; charset=utf-16")
	f.Add([]byte(`<?xml version="1.0" encoding="ISO-8859-1"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`), "")
	for _, o := range operations() {
		var children string
		for _, e := range o.children {
			children += filled(e)
		}
		f.Add([]byte(request(o.name, children)), "text/xml")
	}
	known := operations()
	f.Fuzz(func(t *testing.T, raw []byte, contentType string) {
		if len(raw) > 64<<10 {
			return
		}
		e, err := parseEnvelope(raw, contentType)
		if err != nil {
			refused, ok := err.(*fault)
			if !ok {
				t.Fatalf("got %T %v, want a *fault", err, err)
			}
			relaytest.NoError(t, wellFormed(refused.encode()))
			return
		}
		if bytes.Contains(bytes.ToUpper(raw), []byte("<!DOCTYPE")) && !bytes.Contains(raw, []byte("<!--")) && !bytes.Contains(raw, []byte("<![CDATA[")) {
			t.Fatalf("document type accepted: %q", raw)
		}
		for _, o := range known {
			var m mistakes
			v := decode(o.children, e.request, "", &m)
			relaytest.NoError(t, wellFormed(answer{code: invalid, description: m.String()}.encode(e.version, o)))
			if len(m) > 0 {
				continue
			}
			if n := len(v.child("destinationarray").texts("number")); n < 1 || n > maxDestinations {
				t.Fatalf("%d destinations, want 1 to %d", n, maxDestinations)
			}
			if n := v.number("maxconcat"); n < 0 || n > 255 || n == 0 && v["maxconcat"] != nil {
				t.Fatalf("maxconcat = %d, want 1 to 255", n)
			}
		}
	})
}
