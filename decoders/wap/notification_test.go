package wap_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/decoderstest"
	"github.com/penstock/penstock/decoders/wap"
	"github.com/penstock/penstock/relay/relaytest"
)

func example() wap.Notification {
	return wap.Notification{
		Transaction: "17", From: "447700900123", Subject: "Holiday", Class: wap.Personal,
		Size: 30_000, Expiry: 72 * time.Hour, URL: "http://mms.example.com/17",
	}
}

// changed returns the example after a change.
func changed(change func(*wap.Notification)) wap.Notification {
	n := example()
	change(&n)
	return n
}

func notifications() map[string]struct {
	notification wap.Notification
	want         string
} {
	const (
		head   = "8c82 98'17'00 8d90 "
		sender = "89 19 80'+447700900123/TYPE=PLMN'00 "
		tail   = "8e 02 7530 88 05 81 03 03f480 83'http://mms.example.com/17'00"
	)
	return map[string]struct {
		notification wap.Notification
		want         string
	}{
		"all fields":                    {example(), head + sender + "96'Holiday'00 8a80 " + tail},
		"no sender":                     {changed(func(n *wap.Notification) { n.From = "" }), head + "96'Holiday'00 8a80 " + tail},
		"no subject":                    {changed(func(n *wap.Notification) { n.Subject = "" }), head + sender + "8a80 " + tail},
		"the default class is personal": {changed(func(n *wap.Notification) { n.Class = 0 }), head + sender + "96'Holiday'00 8a80 " + tail},
		"class auto":                    {changed(func(n *wap.Notification) { n.Class = wap.Auto }), head + sender + "96'Holiday'00 8a83 " + tail},
		"a subject in UTF-8":            {changed(func(n *wap.Notification) { n.Subject = "Grüße" }), head + sender + "96 09 ea'Grüße'00 8a80 " + tail},
		"a quote before an umlaut":      {changed(func(n *wap.Notification) { n.Subject = "Äpfel" }), head + sender + "96 09 ea 7f'Äpfel'00 8a80 " + tail},
		"a long subject in UTF-8": {changed(func(n *wap.Notification) { n.Subject = "a" + strings.Repeat("ü", 20) }),
			head + sender + "96 1f2b ea'a" + strings.Repeat("ü", 20) + "'00 8a80 " + tail},
		"no size and no expiry": {changed(func(n *wap.Notification) { n.Size, n.Expiry = 0, 0 }),
			head + sender + "96'Holiday'00 8a80 8e 01 00 88 03 81 01 00 83'http://mms.example.com/17'00"},
	}
}

func TestNotification(t *testing.T) {
	for name, tc := range notifications() {
		t.Run(name, func(t *testing.T) {
			got, err := tc.notification.Message(0x2A)
			relaytest.NoError(t, err)
			equalPush(t, got, octets(t, "2a 06 03 beaf84 "+tc.want))
		})
	}
}

func TestNotificationRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*wap.Notification)
		field  string
		offset int
	}{
		"no transaction":              {func(n *wap.Notification) { n.Transaction = "" }, "transaction", 0},
		"a transaction with a blank":  {func(n *wap.Notification) { n.Transaction = "1 2" }, "transaction", 1},
		"a long transaction":          {func(n *wap.Notification) { n.Transaction = strings.Repeat("1", 41) }, "transaction", 40},
		"a sender in letters":         {func(n *wap.Notification) { n.From = "44a" }, "from", 2},
		"a subject of two lines":      {func(n *wap.Notification) { n.Subject = "a\nb" }, "subject", 1},
		"a subject that is not UTF-8": {func(n *wap.Notification) { n.Subject = "ab\xff" }, "subject", 2},
		"an unknown class":            {func(n *wap.Notification) { n.Class = 80 }, "class", -1},
		"a negative size":             {func(n *wap.Notification) { n.Size = -1 }, "size", -1},
		"a negative expiry":           {func(n *wap.Notification) { n.Expiry = -time.Second }, "expiry", -1},
		"a fraction of a second":      {func(n *wap.Notification) { n.Expiry = time.Second / 2 }, "expiry", -1},
		"no address":                  {func(n *wap.Notification) { n.URL = "" }, "url", 0},
		"an address with a line end":  {func(n *wap.Notification) { n.URL = "http://a\n" }, "url", 8},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := changed(tc.change).Message(1)
			decoderstest.Refused(t, err, "mms", tc.field, tc.offset)
		})
	}
}

func TestParseClass(t *testing.T) {
	for number, want := range map[int]wap.Class{80: 0x80, 81: 0x81, 82: 0x82, 83: 0x83, 79: 0, 84: 0, 0x80: 0, -1: 0} {
		if got, err := wap.ParseClass(number); got != want || (err == nil) != (want != 0) {
			t.Errorf("ParseClass(%d) = %#x, %v, want %#x", number, got, err, want)
		}
	}
}

func FuzzNotification(f *testing.F) {
	for _, tc := range notifications() {
		f.Add(tc.notification.Transaction, tc.notification.From, tc.notification.Subject, tc.notification.URL, tc.notification.Size, int64(tc.notification.Expiry/time.Second), byte(tc.notification.Class))
	}
	f.Fuzz(func(t *testing.T, transaction, sender, subject, url string, size, expiry int64, class byte) {
		if expiry > 1<<32 || expiry < -1<<32 {
			return // time.Duration could overflow
		}
		n := wap.Notification{
			Transaction: transaction, From: sender, Subject: subject, URL: url,
			Size: size, Expiry: time.Duration(expiry) * time.Second, Class: wap.Class(class),
		}
		o, err := n.Message(7)
		if err != nil {
			return
		}
		body, found := bytes.CutPrefix(o.Data, []byte{7, 0x06, 3, 0xBE, 0xAF, 0x84, 0x8C, 0x82})
		if !found {
			t.Fatalf("the push has unexpected headers: %x", o.Data)
		}
		if n.Class == 0 {
			n.Class = wap.Personal
		}
		relaytest.Equal(t, "the notification read by a phone", (&mms{t: t, data: body}).read(), n)
	})
}

// mms decodes a notification as a phone does.
type mms struct {
	t    *testing.T
	data []byte
}

func (m *mms) read() (n wap.Notification) {
	for len(m.data) > 0 {
		switch field := m.octet(); field {
		case 0x98:
			n.Transaction = m.text()
		case 0x8D:
			m.octet()
		case 0x89:
			v := m.value()
			v.octet()
			n.From = strings.TrimSuffix(strings.TrimPrefix(v.text(), "+"), "/TYPE=PLMN")
		case 0x96:
			n.Subject = m.encoded()
		case 0x8A:
			n.Class = wap.Class(m.octet())
		case 0x8E:
			n.Size = m.long()
		case 0x88:
			v := m.value()
			v.octet()
			n.Expiry = time.Duration(v.long()) * time.Second
		case 0x83:
			n.URL = m.text()
		default:
			m.t.Fatalf("unknown field %#x", field)
		}
	}
	return n
}

func (m *mms) octet() byte {
	c := m.data[0]
	m.data = m.data[1:]
	return c
}

func (m *mms) text() string {
	if m.data[0] == 0x7F {
		m.data = m.data[1:]
	}
	text, data, found := bytes.Cut(m.data, []byte{0})
	if !found {
		m.t.Fatal("unterminated text")
	}
	m.data = data
	return string(text)
}

func (m *mms) encoded() string {
	if m.data[0] >= ' ' {
		return m.text()
	}
	v := m.value()
	v.octet()
	return v.text()
}

func (m *mms) value() *mms {
	length := int(m.octet())
	if length == 31 {
		length = 0
		for hasMore := true; hasMore; {
			c := m.octet()
			length, hasMore = length<<7|int(c&0x7F), c >= 0x80
		}
	}
	v := &mms{t: m.t, data: m.data[:length]}
	m.data = m.data[length:]
	return v
}

func (m *mms) long() int64 {
	var octets [8]byte
	length := int(m.octet())
	copy(octets[8-length:], m.data[:length])
	m.data = m.data[length:]
	return int64(binary.BigEndian.Uint64(octets[:]))
}
