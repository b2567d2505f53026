package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/deploy/grafana"
	"github.com/penstock/penstock/ingest/admin"
)

// dashboardCommand prints a Grafana dashboard for the sensors of a decoder.
type dashboardCommand struct {
	Decoder string `required:"" help:"The decoder's id." placeholder:"ID"`
	Account string `help:"The account's name or id, if several accounts have a decoder with this id." placeholder:"ACCOUNT"`
	client.Flags
}

// Run requests the decoder from the gateway and prints the dashboard.
func (d dashboardCommand) Run(env client.Environment) error {
	target := "/admin/decoders/" + url.PathEscape(d.Decoder)
	if d.Account != "" {
		target += "?account=" + url.QueryEscape(d.Account)
	}
	answer, err := d.Request(env, "decoder "+d.Decoder, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	var decoder admin.DecoderView
	if err := json.Unmarshal(answer, &decoder); err != nil {
		return fmt.Errorf("dashboard: %w", err)
	}
	if len(decoder.Sensors) == 0 {
		return fmt.Errorf("dashboard: decoder %s maps no keys", decoder.ID)
	}
	sensors := make([]grafana.Sensor, len(decoder.Sensors))
	for i, s := range decoder.Sensors {
		sensors[i] = grafana.Sensor{Key: s.Key, Type: s.SensorTypeID, Name: s.Name, Unit: s.MetricUnits}
	}
	dashboard, err := grafana.Decoder(decoder.ID, decoder.Name, sensors)
	if err == nil {
		_, err = env.Stdout.Write(dashboard)
	}
	return err
}
