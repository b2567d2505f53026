package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/delivery/codec"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// decodeCommand runs a decoder on frames and stores nothing. It runs --codec and --source in this
// process, unless --decoder, --device or --server is set; then it sends the frames to the gateway.
type decodeCommand struct {
	Codec   string            `help:"json, cayenne_lpp, senml, expr or javascript; default: javascript for a source file ending in .js, else expr." placeholder:"NAME"`
	Source  string            `help:"The file with the source of the codec; - is the standard input." placeholder:"FILE"`
	Decoder string            `help:"The id of a decoder of a running gateway; --source replaces its source." placeholder:"ID"`
	Device  string            `help:"The id of a device of a running gateway; the values are mapped to its sensors." placeholder:"ID"`
	Account string            `help:"The account's name or id, if several accounts have a decoder or device with this id." placeholder:"ACCOUNT"`
	Sensor  map[string]string `help:"Map a key to a sensor type, instead of the mapping of the decoder: KEY=SENSOR_TYPE." placeholder:"K=T"`
	Raw     *bool             `negatable:"" help:"Run the codec on the payload even if the network server has decoded it."`

	Hex         []string `sep:"none" help:"A payload; may be repeated." placeholder:"BYTES"`
	Base64      []string `name:"base64" sep:"none" help:"A payload; may be repeated." placeholder:"TEXT"`
	Body        []string `sep:"none" help:"A file with the complete body of a webhook request; may be repeated." placeholder:"FILE"`
	Last        int      `help:"Use the last N frames of the device." placeholder:"N"`
	FPort       *int     `name:"f-port" help:"The fPort of the payloads." placeholder:"N"`
	Time        string   `help:"The time of the samples, RFC 3339; default: now." placeholder:"TIME"`
	ContentType string   `help:"The content type of the bodies." placeholder:"TYPE"`
	Path        string   `help:"The last element of the webhook's path, which selects the format of the bodies; default: lorawan." placeholder:"WORD"`
	PostQuery   string   `help:"The query of the webhook's URL, for example event=up." placeholder:"QUERY"`

	client.Flags
}

// Run decodes the frames and prints the results. It fails if a frame cannot be decoded.
func (d decodeCommand) Run(env client.Environment) error {
	request, err := d.buildRequest(env)
	if err != nil {
		return err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	answer, err := d.try(env, body)
	if err != nil {
		return err
	}
	if d.JSON {
		text, _ := json.MarshalIndent(answer, "", "  ")
		_, err = fmt.Fprintf(env.Stdout, "%s\n", text)
	} else {
		err = printResults(env.Stdout, answer)
	}
	for _, f := range answer.Data {
		if err == nil && (len(f.Errors) > 0 || f.Refused != "") {
			return errReported
		}
	}
	return err
}

// try decodes at the gateway if a flag names the gateway, a decoder or a device; else locally.
func (d decodeCommand) try(env client.Environment, body []byte) (answer admin.TryAnswer, err error) {
	if d.Decoder != "" || d.Device != "" || d.Server != "" {
		label := "decode"
		if d.Decoder != "" {
			label += ": decoder " + d.Decoder
		}
		if d.Device != "" {
			label += ": device " + d.Device
		}
		body, err := d.Request(env, label, http.MethodPost, "/admin/decoders/try", body)
		if err != nil {
			return answer, err
		}
		return answer, json.Unmarshal(body, &answer)
	}
	request, err := admin.ParseTry(body)
	if err == nil {
		pool := codec.New(slog.New(slog.DiscardHandler))
		defer func() { _ = pool.Close() }()
		answer, err = admin.TryOffline(env.Context, catalog.Catalog{JavaScript: pool.Compile}.Compile, request, time.Now())
	}
	if relay.KindOf(err) == relay.KindInvalid {
		var lines []error
		for field, texts := range relay.FieldsOf(err) {
			lines = append(lines, fmt.Errorf("decode: %s: %s", field, strings.Join(texts, "; ")))
		}
		err = errors.Join(lines...)
	}
	return answer, err
}

func (d decodeCommand) buildRequest(env client.Environment) (admin.TryRequest, error) {
	r := admin.TryRequest{
		Account: admin.AccountRef(d.Account), DecoderID: d.Decoder, DeviceID: d.Device,
		Codec: d.Codec, UseRawPayload: d.Raw, Last: d.Last,
	}
	if d.Source != "" {
		source, err := client.ReadFile(env, d.Source)
		if err != nil {
			return r, err
		}
		r.Source = string(source)
		if r.Codec == "" {
			r.Codec = catalog.Expr
			if ending := filepath.Ext(d.Source); ending == ".js" || ending == ".mjs" || ending == ".cjs" {
				r.Codec = catalog.JavaScript
			}
		}
	}
	for key, sensorType := range d.Sensor {
		r.Sensors = append(r.Sensors, iot.Mapping{Key: key, SensorTypeID: sensorType})
	}
	return r, d.addFrames(env, &r)
}

func (d decodeCommand) addFrames(env client.Environment, r *admin.TryRequest) error {
	for _, text := range d.Hex {
		r.Frames = append(r.Frames, admin.TryFrame{Hex: text, FPort: d.FPort, Time: d.Time})
	}
	for _, text := range d.Base64 {
		r.Frames = append(r.Frames, admin.TryFrame{Base64: text, FPort: d.FPort, Time: d.Time})
	}
	for _, name := range d.Body {
		body, err := client.ReadFile(env, name)
		if err != nil {
			return err
		}
		if !json.Valid(body) {
			body, _ = json.Marshal(string(body))
		}
		r.Frames = append(r.Frames, admin.TryFrame{
			Body: body, ContentType: d.ContentType, Path: d.Path, Query: d.PostQuery, Time: d.Time,
		})
	}
	return nil
}

// printResults prints the results as text.
func printResults(writer io.Writer, answer admin.TryAnswer) error {
	var b strings.Builder
	for i := range answer.Data {
		if i > 0 {
			b.WriteByte('\n')
		}
		printFrame(&b, i+1, &answer.Data[i])
	}
	_, err := io.WriteString(writer, b.String())
	return err
}

func printFrame(b *strings.Builder, n int, f *admin.TriedFrame) {
	fmt.Fprintf(b, "frame %d  %s", n, f.Time)
	for _, part := range []struct{ name, value string }{{"event ", f.Event}, {"device ", f.Identifier}, {"", f.Sender}, {"", f.Payload}} {
		if part.value != "" {
			b.WriteString("  " + part.name + part.value)
		}
	}
	if f.FPort != nil {
		fmt.Fprintf(b, "  port %d", *f.FPort)
	}
	fmt.Fprintf(b, "  %.0f µs\n", f.TookUS)
	for _, v := range f.Values {
		fmt.Fprintf(b, "  %s = %s", v.Key, formatValue(v.Value, v.Text))
		if v.Time != nil {
			b.WriteString("  at " + *v.Time)
		}
		b.WriteByte('\n')
	}
	for _, r := range f.Readings {
		fmt.Fprintf(b, "  reading %s (%s): %s%s\n", r.Key, r.SensorTypeID, formatValue(r.Value, r.Text), comparison(f, r))
	}
	for _, e := range f.Errors {
		b.WriteString("  error: " + e.Message + "\n")
	}
	for _, text := range f.Warnings {
		b.WriteString("  warning: " + text + "\n")
	}
	if f.Refused != "" && len(f.Errors) == 0 {
		b.WriteString("  nothing would be stored: " + f.Refused + "\n")
	}
	for _, text := range f.Notes {
		if !slices.Contains(f.Warnings, text) && !slices.ContainsFunc(f.Errors, func(c admin.SourceError) bool { return c.Message == text }) {
			b.WriteString("  note: " + text + "\n")
		}
	}
}

// comparison returns the stored value of a reading as text; empty if the reading is not compared.
func comparison(f *admin.TriedFrame, r admin.TriedReading) string {
	if r.Effect == "" {
		return ""
	}
	for _, s := range f.Stored {
		if s.SensorID == r.SensorID && s.Time == r.Time {
			return ", stored value: " + formatValue(s.Value, s.Text)
		}
	}
	return ", no stored value"
}

func formatValue(value *float64, text *string) string {
	switch {
	case text != nil:
		return strconv.Quote(*text)
	case value == nil:
		return "null"
	}
	return strconv.FormatFloat(*value, 'g', -1, 64)
}
