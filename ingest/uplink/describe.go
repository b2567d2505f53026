package uplink

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// maxDescribed is the maximum number of frames of a post that are described individually.
const maxDescribed = 5

// Describe describes a post: the device and content of each frame, and the kind of a frame that is
// not an uplink. Only uplinks become readings; the content of other events is visible only here.
func (p *Processor) Describe(item intake.ParsedItem[*parsedPost]) string {
	return describePost(item, func(identifier string) string { return p.nameOf(item.Entry.Account, identifier) })
}

// describePost describes a post. title returns the text for the device with an identifier.
func describePost(item intake.ParsedItem[*parsedPost], title func(identifier string) string) string {
	frames := item.Content.frames
	if len(frames) == 0 && item.Content.err == nil {
		return "no frames" // such as a sender's test or a command
	}
	var parts []string
	for i := range frames {
		if i == maxDescribed {
			parts = append(parts, fmt.Sprintf("and %d more", len(frames)-i))
			break
		}
		parts = append(parts, describe(&frames[i], title(frames[i].Identifier)))
	}
	return strings.Join(parts, "; ")
}

// Subjects returns the normalized identifiers of the devices of all frames.
func (p *Processor) Subjects(item intake.ParsedItem[*parsedPost]) []string {
	var identifiers []string
	for i := range item.Content.frames {
		identifier, _ := iot.NormalizeIdentifier(item.Content.frames[i].Identifier)
		identifiers = append(identifiers, identifier)
	}
	return identifiers
}

// deviceNames has the names of devices for descriptions. It is emptied every 5 s.
type deviceNames struct {
	mu         sync.Mutex
	names      map[string]string
	expiresAt  time.Time
	findFailed bool // the database is down: descriptions have no names until expiresAt
}

// nameOf returns the name of a device, or the identifier of a device without a name.
func (p *Processor) nameOf(acct relay.AccountID, identifier string) string {
	n, now, key := &p.names, time.Now(), acct.String()+" "+identifier
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.After(n.expiresAt) {
		n.names, n.expiresAt, n.findFailed = make(map[string]string), now.Add(5*time.Second), p.FindDevice == nil
	}
	if _, ok := n.names[key]; !ok && !n.findFailed {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		d, err := p.FindDevice(ctx, acct, identifier)
		if n.findFailed = err != nil && relay.KindOf(err) != relay.KindNotFound; !n.findFailed {
			n.names[key] = d.Name // empty for an unknown device
		}
	}
	return cmp.Or(n.names[key], identifier)
}

// maxFacts is the number of facts about a frame after which its decoded values are left out.
const maxFacts = 3

// describe describes a frame of the device named title: "Cold room: status, battery 88 %". It omits the kind
// of an uplink. The title has no ": " and no "; ", so that it can be read from the description.
func describe(f *decoders.Frame, title string) string {
	var facts []string
	add := func(known bool, fact string) {
		if known {
			facts = append(facts, fact)
		}
	}
	measure := func(name string, value *float64, unit string) {
		if value != nil {
			facts = append(facts, name+" "+formatNumber(*value)+" "+unit)
		}
	}
	best, _ := f.BestGateway()
	add(f.HasFCnt, "fCnt "+strconv.FormatInt(f.FCnt, 10))
	add(f.HasFPort, "fPort "+strconv.Itoa(f.FPort))
	add(len(f.Payload) > 0, counted(len(f.Payload), "byte"))
	add(len(f.Gateways) > 0, counted(len(f.Gateways), "radio gateway"))
	measure("RSSI", best.RSSI, "dBm")
	measure("SNR", best.SNR, "dB")
	measure("battery", f.Battery, "%")
	measure("margin", f.Margin, "dB")
	if f.Position != nil {
		facts = append(facts, "at "+formatNumber(f.Position.Latitude)+", "+formatNumber(f.Position.Longitude))
	}
	add(f.Text != "", f.Text)
	add(f.Supplement, "adds to a frame")
	add(f.Encrypted, "encrypted")
	add(f.Simulated, "simulated")
	for _, key := range slices.Sorted(maps.Keys(f.Object)) {
		switch value := f.Object[key].(type) {
		case float64, string, bool:
			add(len(f.Payload) == 0 && len(facts) < maxFacts, fmt.Sprintf("%s %v", key, value))
		}
	}
	if f.Kind != decoders.Uplink || len(facts) == 0 {
		facts = slices.Insert(facts, 0, string(f.Kind))
	}
	return strings.ReplaceAll(strings.ReplaceAll(title, ": ", ", "), "; ", ", ") + ": " + strings.Join(facts, ", ")
}

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
