package uplink

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/iot"
)

// maxDescribed is how many frames of a post are described one by one.
const maxDescribed = 5

// Describe says what a post is: which event of which device, and what it
// carries. Only uplinks become readings; the others are to be read here.
func (p *Processor) Describe(e *intake.Entry) string {
	in := read(e)
	if len(in.frames) == 0 && in.err == nil {
		return "no frames" // a sender's test, a command of no interest
	}
	var parts []string
	for i := range in.frames {
		if i == maxDescribed {
			parts = append(parts, fmt.Sprintf("and %d more", len(in.frames)-i))
			break
		}
		parts = append(parts, describe(&in.frames[i], e.ReceivedAt))
	}
	return strings.Join(parts, "; ")
}

// describe says what one frame is, as "status of 24e1…: battery 88 %".
func describe(f *decoders.Frame, received time.Time) string {
	facts := radioFacts(f)
	if f.Battery != nil {
		facts = append(facts, "battery "+number(*f.Battery)+" %")
	}
	if f.Margin != nil {
		facts = append(facts, "margin "+number(*f.Margin)+" dB")
	}
	if f.Position != nil {
		facts = append(facts, "at "+number(f.Position.Latitude)+", "+number(f.Position.Longitude))
	}
	if f.Text != "" {
		facts = append(facts, f.Text)
	}
	for _, remark := range []struct {
		holds bool
		text  string
	}{{f.Supplement, "adds to a frame"}, {f.Encrypted, "encrypted"}, {f.Simulated, "simulated"}} {
		if remark.holds {
			facts = append(facts, remark.text)
		}
	}
	_, note := iot.SampleTime(f, received)
	for _, text := range append([]string{note, f.TimeNote}, f.Warnings...) {
		if text != "" {
			facts = append(facts, text)
		}
	}
	if len(facts) == 0 {
		return string(f.Kind) + " of " + f.Identifier
	}
	return string(f.Kind) + " of " + f.Identifier + ": " + strings.Join(facts, ", ")
}

// radioFacts are the counter, the port, the size and how well it was heard.
func radioFacts(f *decoders.Frame) (facts []string) {
	if f.HasFCnt {
		facts = append(facts, "f_cnt "+strconv.FormatInt(f.FCnt, 10))
	}
	if f.HasFPort {
		facts = append(facts, "f_port "+strconv.Itoa(f.FPort))
	}
	if n := len(f.Payload); n > 0 {
		facts = append(facts, strconv.Itoa(n)+" bytes")
	}
	if n := len(f.Gateways); n > 0 {
		facts = append(facts, "gateways "+strconv.Itoa(n))
	}
	if best, ok := f.BestGateway(); ok {
		if best.RSSI != nil {
			facts = append(facts, "rssi "+number(*best.RSSI)+" dBm")
		}
		if best.SNR != nil {
			facts = append(facts, "snr "+number(*best.SNR)+" dB")
		}
	}
	return facts
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
