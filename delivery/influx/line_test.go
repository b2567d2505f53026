package influx

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	protocol "github.com/influxdata/line-protocol"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

func sample() iot.Point {
	return iot.Point{
		Account: 7, Type: "temperature", DeviceID: "01jd", Identifier: "24e124136b502217", SensorID: "01jd.1",
		Key: "air.temperature", Time: time.Unix(1740830400, 123456789), Value: 21,
	}
}

func TestPointsAreEncodedAsLines(t *testing.T) {
	cases := []struct {
		name string
		edit func(*iot.Point)
		want string
	}{
		{"a whole number is written without the suffix of integers", func(*iot.Point) {},
			"temperature,account=7,device_id=01jd,identifier=24e124136b502217,key=air.temperature,sensor_id=01jd.1 value=21 1740830400123456789"},
		{"a number has its shortest exact form", func(p *iot.Point) { p.Value = 1e21; p.Identifier = "" },
			"temperature,account=7,device_id=01jd,key=air.temperature,sensor_id=01jd.1 value=1e+21 1740830400123456789"},
		{"a string is quoted", func(p *iot.Point) { p.Text, p.IsText = "say \"hi\"\\\nthen, go", true },
			"temperature,account=7,device_id=01jd,identifier=24e124136b502217,key=air.temperature,sensor_id=01jd.1 text=\"say \\\"hi\\\"\\\\\nthen, go\" 1740830400123456789"},
		{"empty tags are omitted", func(p *iot.Point) { p.Identifier, p.Key = "", "" },
			"temperature,account=7,device_id=01jd,sensor_id=01jd.1 value=21 1740830400123456789"},
		{"commas, spaces and equals signs are escaped", func(p *iot.Point) { p.Type, p.Identifier, p.Key = "a b,c=d", "x y", "k=v,w" },
			`a\ b\,c=d,account=7,device_id=01jd,identifier=x\ y,key=k\=v\,w,sensor_id=01jd.1 value=21 1740830400123456789`},
		{"a backslash that would escape becomes a picture", func(p *iot.Point) { p.Identifier, p.Key = `a\b\`, `\,` },
			`temperature,account=7,device_id=01jd,identifier=a\b␛/,key=␛/\,,sensor_id=01jd.1 value=21 1740830400123456789`},
		{"control characters and # at the start become pictures", func(p *iot.Point) { p.Type, p.Identifier, p.Key = "#1", "a\r\nb", "\x00\x1b\x7f␊" },
			"␛#1,account=7,device_id=01jd,identifier=a␍␊b,key=␀␛e␡␛␊,sensor_id=01jd.1 value=21 1740830400123456789"},
		{"a time before 1970 is negative", func(p *iot.Point) { p.Time, p.Identifier, p.Key = time.Unix(-1, 0), "", "" },
			"temperature,account=7,device_id=01jd,sensor_id=01jd.1 value=21 -1000000000"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := sample()
			tc.edit(&p)
			if got := string(appendPoint(nil, &p)); got != tc.want+"\n" {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestUplinksAreEncodedAsLines(t *testing.T) {
	count, rssi := int64(17), -97.5
	cases := []struct {
		name   string
		uplink iot.RadioData
		want   string
	}{
		{"all fields, with counts as floats", iot.RadioData{Account: 7, DeviceID: "d", Identifier: "i", Time: time.Unix(1, 0), FCnt: &count, FPort: &count, RSSI: &rssi, SNR: &rssi, Gateways: &count, Battery: &rssi, Margin: &rssi, Latitude: &rssi, Longitude: &rssi},
			"uplink,account=7,device_id=d,identifier=i battery=-97.5,f_cnt=17,f_port=17,gateways=17,latitude=-97.5,longitude=-97.5,margin=-97.5,rssi=-97.5,snr=-97.5 1000000000\n"},
		{"one field", iot.RadioData{Account: 7, DeviceID: "d", Time: time.Unix(1, 0), RSSI: &rssi},
			"uplink,account=7,device_id=d rssi=-97.5 1000000000\n"},
		{"a frame with the name of the device", iot.RadioData{Account: 7, DeviceID: "d", Time: time.Unix(1, 0), Frame: true, Name: `Dad's "shed"`, RSSI: &rssi},
			`uplink,account=7,device_id=d frames=1,name="Dad's \"shed\"",rssi=-97.5 1000000000` + "\n"},
		{"a frame without radio data", iot.RadioData{Account: 7, DeviceID: "d", Time: time.Unix(1, 0), Frame: true}, "uplink,account=7,device_id=d frames=1 1000000000\n"},
		{"no fields, no line", iot.RadioData{Account: 7, DeviceID: "d", Time: time.Unix(1, 0)}, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := string(appendRadio(nil, &tc.uplink)); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestFluxStringsAreQuoted(t *testing.T) {
	if got := quoteFlux("a ${b}\"\\é\n"); got != `"a\x20\x24\x7bb\x7d\x22\x5c\xc3\xa9\x0a"` {
		t.Errorf("quoteFlux returned %s", got)
	}
}

func TestInfluxQLNamesAreQuoted(t *testing.T) {
	if got := measurementList([]string{`a"; DROP DATABASE x --`, "b\nc"}); got != `"a\"; DROP DATABASE x --", "b␊c"` {
		t.Errorf("measurementList returned %s", got)
	}
}

// FuzzLine checks the encoder with the parser of InfluxDB's library: a line is one point with
// the same tags, fields and time.
func FuzzLine(f *testing.F) {
	for _, s := range []string{"plain", `\`, `a\,b\`, "x\ny", "#", "a,b=c d", "\u241b\u240a", "Grüße", "\xff\xff", `"`, "\x00", "\\\x00", " "} {
		f.Add(s, s, s, 21.5, int64(1740830400123456789))
		f.Add("temperature", s, "", -1e-300, int64(-1))
	}
	f.Fuzz(func(t *testing.T, kind, tag, text string, value float64, ns int64) {
		p := iot.Point{Account: relay.AccountID(ns), Type: kind, DeviceID: tag, Identifier: tag, Key: kind, SensorID: tag, Time: time.Unix(0, ns).UTC(), Value: value}
		if p.InvalidReason() != "" {
			return
		}
		expectRoundTrip(t, p)
		p.Text, p.IsText, p.Value = text, true, 0
		expectRoundTrip(t, p)
	})
}

func expectRoundTrip(t *testing.T, p iot.Point) {
	t.Helper()
	encoded := appendPoint(nil, &p)
	metrics, err := protocol.NewParser(protocol.NewMetricHandler()).Parse(encoded)
	if err != nil || len(metrics) != 1 {
		t.Fatalf("%d points in %q, want 1; error %v", len(metrics), encoded, err)
	}
	tags := map[string]string{}
	for _, tag := range metrics[0].TagList() {
		tags[tag.Key] = tag.Value
	}
	got := pointOf(p.Account, metrics[0].Name(), func(name string) string { return tags[name] })
	got.Time, got.IsText = metrics[0].Time().UTC(), p.IsText
	for _, field := range metrics[0].FieldList() {
		got.Value, _ = field.Value.(float64)
		text, _ := field.Value.(string)
		got.Text = unclean(text)
	}
	p.Type, p.Key, p.Text = valid(p.Type), valid(p.Key), valid(p.Text)
	p.DeviceID, p.Identifier, p.SensorID = valid(p.DeviceID), valid(p.Identifier), valid(p.SensorID)
	if got != p || math.Signbit(got.Value) != math.Signbit(p.Value) {
		t.Fatalf("\n got %+q\nwant %+q\nline %q", got.Identifier+"|"+got.Type+"|"+got.Text, p.Identifier+"|"+p.Type+"|"+p.Text, encoded)
	}
	if tags["account"] != p.Account.String() {
		t.Fatalf("account = %q, want %s, in %q", tags["account"], p.Account, encoded)
	}
}

// valid replaces each invalid byte of UTF-8 with U+FFFD.
func valid(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "plain", `\`, `\\`, "\u241b", "\u241b\u241b", "\x1b", "\u241be", "#", "\n\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := clean(s)
		if strings.ContainsFunc(c, func(r rune) bool { return r < ' ' || r == 0x7f }) || !utf8.ValidString(c) || strings.HasSuffix(c, `\`) {
			t.Fatalf("clean(%q) = %q", s, c)
		}
		if got := unclean(c); got != valid(s) {
			t.Fatalf("unclean(clean(%q)) = %q, want %q", s, got, valid(s))
		}
		if got := unclean(cleanText(s)); got != valid(s) {
			t.Fatalf("unclean(cleanText(%q)) = %q, want %q", s, got, valid(s))
		}
		unclean(s) // must not panic on data of other programs
	})
}
