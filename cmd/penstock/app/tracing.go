package app

import (
	"context"

	"github.com/penstock/penstock/delivery/telemetry"
	"github.com/penstock/penstock/relay/tracing"
)

// openTracing makes the tracer, if a collector is configured. It is closed last, so that
// it sends the spans of the end too.
func (d *Gateway) openTracing() *telemetry.Exporter {
	o := d.cfg.Tracing
	if o.URL == "" {
		return nil
	}
	spans := telemetry.New(telemetry.Options{
		URL: o.URL, Headers: o.HeaderFields(), Logger: d.log,
		About: []tracing.Attribute{{Key: "service.name", Value: "penstock"}, {Key: "service.version", Value: d.version}, {Key: "service.instance.id", Value: d.node}},
	})
	d.tracer = tracing.New(o.Sample, spans.Export)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		spans.Run(ctx)
	}()
	d.onClose(func() error {
		stop()
		<-ended
		return nil
	})
	return spans
}
