package netserver

import (
	"strings"

	"github.com/penstock/penstock/decoders/jsonbody"
)

// AwaitsDownlink tells whether a post of Sigfox's waits for a downlink: its
// template has the variable ack, and that is true. An answer with nothing to
// send is 204.
func AwaitsDownlink(p Post) bool {
	r := jsonbody.New(sigfoxBody(p))
	var key []byte
	waits := false
	for ok := r.Object(); ok && r.Next(&key); {
		if string(key) != "ack" {
			r.Skip()
			continue
		}
		text, _ := r.Value().Text()
		waits = strings.EqualFold(text, "true") || text == "1"
	}
	return waits
}
