package uplink

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/intake"
)

// unknownParameters notes the parameters of a webhook's URL that nothing reads. The
// query of a post without a body is its data and is read by the sender's parser.
func unknownParameters(e *intake.Entry, query url.Values) (notes decoders.Notes) {
	if len(e.Body) == 0 {
		return nil
	}
	var unknown []string
	for name := range query {
		if !isParameter(e, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		notes.Add(fmt.Sprintf("the URL's parameter %.40q is not known and is not used; known are decoder_id, event and, at the generic webhook, deviceId", name))
	}
	return notes
}

// isParameter reports whether the webhook of a post reads a parameter.
func isParameter(e *intake.Entry, name string) bool {
	switch name {
	case "decoder_id", "event":
		return true
	case "deviceId":
		return webhookName(e.Path) == "generic"
	case "LrnDevEui", "LrnFPort", "LrnInfos", "AS_ID", "Time", "Token":
		return e.Source == string(netserver.ThingPark)
	}
	return false
}
