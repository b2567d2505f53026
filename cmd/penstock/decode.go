package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// decodeCommand runs a decoder on frames and stores nothing: on its own with a
// codec and a source, or through a running gateway with a decoder or a device.
type decodeCommand struct {
	Codec   string            `help:"json, cayenne_lpp, senml, expr or javascript; default: of a source javascript for .js, else expr." placeholder:"NAME"`
	Source  string            `help:"The codec's source; - is the standard input." placeholder:"FILE"`
	Decoder string            `help:"A decoder of a running gateway; a source stands in the place of its own." placeholder:"ID"`
	Device  string            `help:"A device of a running gateway, whose sensors take the values." placeholder:"ID"`
	Account int64             `help:"Whose they are, where several accounts have one of this id." placeholder:"N"`
	Sensor  map[string]string `help:"What a key measures, in the place of the decoder's own: KEY=SENSOR_TYPE." placeholder:"K=T"`
	Raw     *bool             `negatable:"" help:"Give the codec the payload also where the network server has decoded it."`

	Hex         []string `sep:"none" help:"A payload; may be repeated." placeholder:"BYTES"`
	Base64      []string `name:"base64" sep:"none" help:"A payload; may be repeated." placeholder:"TEXT"`
	Body        []string `sep:"none" help:"A file with what a sender posts, whole; may be repeated." placeholder:"FILE"`
	Last        int      `help:"The last frames that the device sent." placeholder:"N"`
	FPort       *int     `name:"f-port" help:"The port of the payloads." placeholder:"N"`
	Time        string   `help:"When they were sampled, RFC 3339; default: now." placeholder:"TIME"`
	ContentType string   `help:"Of the bodies." placeholder:"TYPE"`
	Path        string   `help:"The webhook's last word, a hint for the bodies; default: lorawan." placeholder:"WORD"`
	PostQuery   string   `help:"The query of the webhook's address: event=up." placeholder:"QUERY"`

	JSON bool `name:"json" help:"Print what the gateway answers."`
	adminFlags
}

// Run tries the frames and prints what came of them. It fails if one of them
// could not be decoded.
func (d decodeCommand) Run(w world) error {
	request, err := d.build(w)
	if err != nil {
		return err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	answer, err := d.try(w, body)
	if err != nil {
		return err
	}
	if d.JSON {
		text, _ := json.MarshalIndent(answer, "", "  ")
		_, err = fmt.Fprintf(w.stdout, "%s\n", text)
	} else {
		err = printTried(w.stdout, answer)
	}
	for _, f := range answer.Data {
		if err == nil && (len(f.Errors) > 0 || f.Refused != "") {
			return errTold
		}
	}
	return err
}

// try asks the gateway where anything of it is named, and nobody otherwise.
func (d decodeCommand) try(w world, body []byte) (answer admin.TryAnswer, err error) {
	if d.Decoder != "" || d.Device != "" || d.Server != "" {
		got, err := d.ask(w, "decode", http.MethodPost, "/admin/decoders/try", body)
		if err != nil {
			return answer, err
		}
		return answer, json.Unmarshal(got, &answer)
	}
	request, err := admin.ParseTry(body)
	if err == nil {
		answer, err = admin.TryOffline(w.ctx, catalog.Compile, request, time.Now())
	}
	return answer, fields(err)
}

// fields spells out which field is wrong.
func fields(err error) error {
	if relay.KindOf(err) != relay.KindInvalid {
		return err
	}
	var lines []error
	for field, texts := range relay.FieldsOf(err) {
		lines = append(lines, fmt.Errorf("decode: %s: %s", field, strings.Join(texts, "; ")))
	}
	return errors.Join(lines...)
}

// build makes the request of the flags.
func (d decodeCommand) build(w world) (admin.TryRequest, error) {
	r := admin.TryRequest{
		Account: account.ID(d.Account), DecoderID: d.Decoder, DeviceID: d.Device,
		Codec: d.Codec, UseRawPayload: d.Raw, Last: d.Last,
	}
	if d.Source != "" {
		source, err := readFile(w, d.Source)
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
	for key, measures := range d.Sensor {
		r.Sensors = append(r.Sensors, iot.Mapping{Key: key, SensorTypeID: measures})
	}
	return r, d.frames(w, &r)
}

func (d decodeCommand) frames(w world, r *admin.TryRequest) error {
	for _, text := range d.Hex {
		r.Frames = append(r.Frames, admin.TryFrame{Hex: text, FPort: d.FPort, Time: d.Time})
	}
	for _, text := range d.Base64 {
		r.Frames = append(r.Frames, admin.TryFrame{Base64: text, FPort: d.FPort, Time: d.Time})
	}
	for _, name := range d.Body {
		body, err := readFile(w, name)
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

// readFile reads a file, or the standard input for "-".
func readFile(w world, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(w.stdin, 8<<20))
	}
	return os.ReadFile(name)
}
