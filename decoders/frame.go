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

// The kinds of frames. Only an Uplink is decoded into readings.
const (
	Uplink     FrameKind = "uplink"     // a frame with the device's data
	Normalized FrameKind = "normalized" // a second copy of an uplink, in the sender's normalised form
	Join       FrameKind = "join"       // the device joined the network
	Ack        FrameKind = "ack"        // the device acknowledged a downlink
	Nack       FrameKind = "nack"       // the device did not acknowledge a downlink
	TxAck      FrameKind = "txack"      // a gateway sent a downlink
	Downlink   FrameKind = "downlink"   // a downlink was queued, sent or dropped, see Text
	Status     FrameKind = "status"     // Battery and Margin of a device
	Location   FrameKind = "location"   // the network located the device
	Log        FrameKind = "log"        // a log entry of the network server, in Text
	Failure    FrameKind = "error"      // an error of the network server, in Text
	Service    FrameKind = "service"    // data of an integration or application service
	Alert      FrameKind = "alert"      // an alarm of the sender, in Text
)

// Frame is one message of one device, from any network server.
type Frame struct {
	// Sender is the name of the network server or vendor, as
	// netserver.Sender: "chirpstack-v4", "tts-v3", "generic".
	Sender string
	Kind   FrameKind

	// Identifier is the device: a devEUI as 16 lower-case hex digits, or else the sender's own
	// identifier, of some senders within an application: "application/device".
	Identifier string
	IsDevEUI   bool
	// Name is the sender's name of the device. It may be empty, and it may change.
	Name string

	// DedupID is equal in all posts of a frame and differs between frames of one
	// sender, except as DedupSpan allows. Empty means that the frame cannot be identified.
	DedupID string
	// DedupSpan is set if the DedupID may recur in later frames, because it
	// includes a counter that may restart: posts with the same DedupID whose times differ by more
	// than DedupSpan are different frames. Zero means that the DedupID does not recur.
	DedupSpan time.Duration
	// Supplement marks a copy of a frame that the sender posts to add
	// Gateways or a Position. It has the DedupID of the frame. If the frame was received
	// before, only the additions are used. Otherwise, a Supplement of the kind Uplink is
	// used in place of the frame.
	Supplement bool
	// Extensible reports that the sender may post Supplements to this frame.
	Extensible bool

	FPort    int // 0-255; meaningful when HasFPort
	HasFPort bool
	FCnt     int64 // the uplink counter; meaningful when HasFCnt
	HasFCnt  bool

	// Payload is the decrypted FRMPayload, or ciphertext if Encrypted is set. No codec may
	// decode ciphertext.
	Payload   []byte
	Encrypted bool
	// Object has the values that the sender decoded, or is nil. Numbers are float64; a number
	// beyond the range of float64 is an infinity.
	Object map[string]any
	// BesidePayload reports that the Object was not decoded from the payload, so that
	// a codec decodes the payload in addition.
	BesidePayload bool
	// Samples are values that the sender decoded and that have
	// times of their own (SenML, histories).
	Samples []Reading
	// Params are the parameters of the device's codec. The caller sets them
	// before it decodes the frame.
	Params map[string]any

	// SampleTime is the time at which the device took the sample, and NetworkTime the time at
	// which the network received it. They are zero if they are missing or invalid. TimeNote is
	// the reason why a time was not used.
	SampleTime  time.Time
	NetworkTime time.Time
	TimeNote    string

	Gateways []Gateway

	Battery  *float64 // per cent, 0-100; nil when unknown or externally powered
	Margin   *float64 // demodulation margin in dB
	Position *Position

	// Simulated reports that the frame is from a sender's console, not from a device.
	Simulated bool
	// Warnings are the problems of the body that did not prevent reading the frame.
	Warnings []string
	// Excess is set if the body has too many samples; Samples has the first ones.
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
	Time     time.Time // zero if the gateway has no clock
}

// Position is in degrees (WGS 84).
type Position struct {
	Latitude, Longitude float64
}

// BestGateway returns the reception with the highest SNR or, of equal SNRs, the highest RSSI. It
// returns false if no gateway reported an SNR or an RSSI.
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

// NormalizeDevEUI returns a devEUI as 16 lower-case hex digits. It accepts the separators of
// HexDigits.
func NormalizeDevEUI(s string) (string, bool) { return HexDigits(s, 16) }

// HexDigits returns the n hex digits of an address in lower case. It accepts
// colons, hyphens or spaces between digits, and dots between groups
// of two or four digits, so that "192.168.100.101" is not an address of 12 digits.
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
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}
