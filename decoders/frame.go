package decoders

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// FrameKind is the kind of a sender's report about a device.
type FrameKind string

// The kinds of event. Only an Uplink is decoded into readings; the others are
// kept as what they are.
const (
	Uplink     FrameKind = "uplink"     // a frame with the device's data
	Normalized FrameKind = "normalized" // an uplink again, in the sender's normalised form
	Join       FrameKind = "join"       // the device joined the network
	Ack        FrameKind = "ack"        // the device acknowledged a downlink
	Nack       FrameKind = "nack"       // the device did not acknowledge a downlink
	TxAck      FrameKind = "txack"      // a gateway sent a downlink
	Downlink   FrameKind = "downlink"   // a downlink was queued, sent or dropped; Text names which
	Status     FrameKind = "status"     // Battery and Margin of a device
	Location   FrameKind = "location"   // the network located the device
	Log        FrameKind = "log"        // the network server's remark, in Text
	Failure    FrameKind = "error"      // the network server's error, in Text
	Service    FrameKind = "service"    // data of an integration or application service
	Alert      FrameKind = "alert"      // a rule or an alarm of the sender's, in Text
)

// Frame is one message of one device, from any network server.
type Frame struct {
	// Sender is the name of the network server or vendor, as
	// netserver.Sender: "chirpstack-v4", "tts-v3", "generic".
	Sender string
	Kind   FrameKind

	// Identifier is the device: a devEUI as 16 lower-case hex digits, or
	// else the sender's own identifier, unchanged.
	Identifier string
	IsDevEUI   bool
	// Name is the sender's name of the device; it may be empty and may change between two
	// frames of one device.
	Name string

	// DedupID is equal in two posts of the same frame and differs between frames of one
	// sender, apart from those that DedupSpan is about. Empty means that this cannot be
	// determined.
	DedupID string
	// DedupSpan is set where the DedupID comes again in other frames, since it
	// is made of a counter that may begin anew: posts whose frames lie further
	// apart in time are of different frames. Zero means that it never does.
	DedupSpan time.Duration
	// Supplement marks a copy of a frame that its sender posts in order to add
	// Gateways or a Position. It has the DedupID of the frame it adds to: when
	// that frame was seen, only what the copy adds is news; when it was not, a
	// copy that is an Uplink stands for it.
	Supplement bool
	// Extensible reports that the sender may post Supplements to this frame.
	Extensible bool

	FPort    int // 0-255; meaningful when HasFPort
	HasFPort bool
	FCnt     int64 // the uplink counter; meaningful when HasFCnt
	HasFCnt  bool

	// Payload is the FRMPayload in the clear unless Encrypted reports that it is ciphertext,
	// which no codec may be given.
	Payload   []byte
	Encrypted bool
	// Object has the values that the network server or the poster decoded: nil when it did
	// not. Numbers are float64; one that float64 cannot hold is an infinity.
	Object map[string]any
	// BesidePayload reports that the Object was not decoded from the payload but stands
	// beside it, so that a codec reads the payload all the same.
	BesidePayload bool
	// Samples are values that the sender decoded already and that carry
	// times of their own (SenML, histories).
	Samples []Reading
	// Params are the device's own parser parameters. The caller sets them
	// from its records before it decodes; no sender does.
	Params map[string]any

	// SampleTime is the time at which the device took the sample and NetworkTime when the
	// network received it. Each is zero when the sender gave none or when it did not parse;
	// TimeNote then says what was unreadable.
	SampleTime  time.Time
	NetworkTime time.Time
	TimeNote    string

	Gateways []Gateway

	Battery  *float64 // per cent, 0-100; nil when unknown or externally powered
	Margin   *float64 // demodulation margin in dB
	Position *Position

	// Simulated frames come from a sender's console, not from a device.
	Simulated bool
	// Warnings say what was wrong with the body without losing the frame.
	Warnings []string
	// Excess reports that the body held more samples than a frame may, of which the first
	// stand in Samples.
	Excess string
	// Text is the description of a log, an error or a downlink event.
	Text string
}

// Gateway is one reception of a frame. RSSI is in dBm, SNR in dB.
type Gateway struct {
	ID       string
	RSSI     *float64
	SNR      *float64
	Position *Position
	Time     time.Time // zero when the gateway has no clock
}

// Position is in degrees (WGS 84).
type Position struct {
	Latitude, Longitude float64
}

// BestGateway returns the reception with the highest SNR, then RSSI, and false
// when no gateway reported either.
func (f *Frame) BestGateway() (Gateway, bool) {
	best, found := Gateway{}, false
	for _, g := range f.Gateways {
		if g.RSSI == nil && g.SNR == nil {
			continue
		}
		if !found || cmp.Or(compare(g.SNR, best.SNR), compare(g.RSSI, best.RSSI)) > 0 {
			best, found = g, true
		}
	}
	return best, found
}

// compare orders nil below every number.
func compare(a, b *float64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil || *a > *b:
		return 1
	case *a < *b:
		return -1
	}
	return 0
}

// NormalizeDevEUI gives a devEUI as 16 lower-case hex digits. It takes any case, with
// the separators of HexDigits, and refuses anything else.
func NormalizeDevEUI(s string) (string, bool) { return HexDigits(s, 16) }

// HexDigits gives the hex digits of an address of n digits in lower case. It takes any
// case, with colons, hyphens or spaces between the digits, or with dots between groups
// of two or four, so that "192.168.100.101" is not an address of 12 digits.
func HexDigits(s string, n int) (string, bool) {
	if !isPlainHex(s, n) {
		if groups := strings.Split(strings.TrimSpace(s), "."); len(groups) > 1 {
			size := len(groups[0])
			if size != 2 && size != 4 || slices.ContainsFunc(groups, func(group string) bool { return len(group) != size }) {
				return "", false
			}
			s = strings.Join(groups, "")
		}
		s = strings.Map(func(r rune) rune {
			switch r {
			case ':', '-', ' ':
				return -1
			}
			return unicode.ToLower(r)
		}, s)
	}
	if !isPlainHex(s, n) {
		return "", false
	}
	return s, true
}

func isPlainHex(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range n {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
