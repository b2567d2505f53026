package uplink

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/ingest/intake"
)

// maxDescribed is the maximum number of frames of a post that are described individually.
const maxDescribed = 5

// Describe describes a post: the kind, device and content of each frame. Only
// uplinks become readings; the content of other events is visible only here.
func (p *Processor) Describe(item intake.ParsedItem[*parsedPost]) string {
	frames := item.Content.frames
	if len(frames) == 0 && item.Content.err == nil {
		return "no frames" // a sender's test, a command of no interest
	}
	var parts []string
	for i := range frames {
		if i == maxDescribed {
			parts = append(parts, fmt.Sprintf("and %d more", len(frames)-i))
			break
		}
		parts = append(parts, describe(&frames[i]))
	}
	return strings.Join(parts, "; ")
}

// Subjects returns the identifiers of the devices of all frames.
func (p *Processor) Subjects(item intake.ParsedItem[*parsedPost]) []string {
	var identifiers []string
	for i := range item.Content.frames {
		identifiers = append(identifiers, item.Content.frames[i].Identifier)
	}
	return identifiers
}

// describe describes one frame, as "status of 24e1…: battery 88 %".
func describe(f *decoders.Frame) string {
	var facts []string
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
	best, _ := f.BestGateway()
	if best.RSSI != nil {
		facts = append(facts, "rssi "+formatNumber(*best.RSSI)+" dBm")
	}
	if best.SNR != nil {
		facts = append(facts, "snr "+formatNumber(*best.SNR)+" dB")
	}
	if f.Battery != nil {
		facts = append(facts, "battery "+formatNumber(*f.Battery)+" %")
	}
	if f.Margin != nil {
		facts = append(facts, "margin "+formatNumber(*f.Margin)+" dB")
	}
	if f.Position != nil {
		facts = append(facts, "at "+formatNumber(f.Position.Latitude)+", "+formatNumber(f.Position.Longitude))
	}
	if f.Text != "" {
		facts = append(facts, f.Text)
	}
	for _, flag := range []struct {
		set  bool
		text string
	}{{f.Supplement, "adds to a frame"}, {f.Encrypted, "encrypted"}, {f.Simulated, "simulated"}} {
		if flag.set {
			facts = append(facts, flag.text)
		}
	}
	if len(facts) == 0 {
		return string(f.Kind) + " of " + f.Identifier
	}
	return string(f.Kind) + " of " + f.Identifier + ": " + strings.Join(facts, ", ")
}

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
