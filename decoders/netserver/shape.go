package netserver

import (
	"bytes"

	"github.com/penstock/penstock/decoders/jsonbody"
)

// keys is a set of the keys by which senders are recognised.
type keys uint64

const (
	keyApplicationID keys = 1 << iota
	keyDevEUI
	keyEndDeviceIDs
	keyDevID
	keyHardwareSerial
	keyPayloadRaw
	keyDevEuiSnake
	keyAppEui
	keyHotspots
	keyReportedAt
	keyUUID
	keyDevEUIUnderscore
	keyBSAlarm
	keyDevEUIUpper
	keyPayloadHex
	keyCmd
	keyEUI
	keyType
	keyTech
	keyMeta
	keyParams
	keyDevEui
	keySensorType
	keyMessageType
	keyBn
	keyN
	keyV
	keyVs
	keyVb
	keyVd
	keyS
	keySensorMessages
	keyGatewayMessage
	keySubject
	keyRule
	keyChannelID
	keyFeeds
	keyEventType
	keyEventVersion
	keyWirelessDeviceID
	keyPayloadData
	keySeqNumber
	keyDevice
	keyDeviceID
	keyID
	// keys whose values say more
	keyDataText    // "data" is a string
	keyDevEUIURN   // "bn" starts urn:dev:DEVEUI:
	keyWebhookTest // "eventType" is WEBHOOK_TEST
	// keys of an object within
	keyDeviceInfoDevEui
	keyEndDeviceDevEui
	keyDataDeviceProfile
	keyDataDevEUI
	keyEventEventType
	keyEventTargetName
)

// shape is the top-level keys of a body; of a list, those of its first item.
type shape struct {
	kind  jsonbody.Kind
	keys  keys
	items int // of a list, or of the list that Monnit posts within an object
}

func (s *shape) all(k keys) bool { return s.keys&k == k }
func (s *shape) any(k keys) bool { return s.keys&k != 0 }

func (s *shape) set(k keys, is bool) {
	s.keys &^= k
	if is {
		s.keys |= k
	}
}

// scan reads the shape of a body. With early it stops at a key that only one
// sender has; the rest of the body is then not checked.
func scan(body []byte, early bool) (shape, error) {
	r := jsonbody.New(body)
	s := shape{kind: r.Kind()}
	if s.kind != jsonbody.Array {
		if s.object(&r, early) {
			return s, nil
		}
		return s, r.Close()
	}
	for ok := r.Array(); ok && r.More(); {
		if s.items++; s.items == 1 {
			s.object(&r, false)
		}
		if early {
			break
		}
	}
	if early {
		return s, r.Err()
	}
	return s, r.Close()
}

// object notes the keys of the next object and reports whether it stopped early.
func (s *shape) object(r *jsonbody.Reader, early bool) bool {
	for key := range r.Fields() {
		s.member(r, key)
		if early && s.any(keyDeviceInfoDevEui|keyEndDeviceIDs) {
			return true
		}
	}
	return false
}

// member notes one key and, for some keys, the value.
func (s *shape) member(r *jsonbody.Reader, key []byte) {
	s.keys |= keyNamed(key)
	switch string(key) {
	case "deviceInfo":
		s.within(r, "devEui", keyDeviceInfoDevEui, "", 0)
	case "endDevice":
		s.within(r, "devEui", keyEndDeviceDevEui, "", 0)
	case "event":
		s.within(r, "eventType", keyEventEventType, "targetName", keyEventTargetName)
	case "data":
		s.set(keyDataText, r.Kind() == jsonbody.String)
		s.within(r, "deviceProfile", keyDataDeviceProfile, "DevEUI", keyDataDevEUI)
	case "bn":
		s.set(keyDevEUIURN, bytes.HasPrefix(r.Value().Raw(), []byte("urn:dev:DEVEUI:")))
	case "sensorMessages":
		for ok := r.Array(); ok && r.More(); {
			s.items++
		}
	case "eventType":
		s.set(keyWebhookTest, string(r.Value().Raw()) == "WEBHOOK_TEST")
	}
}

// within looks for two names in the next value, if that is an object.
func (s *shape) within(r *jsonbody.Reader, a string, ka keys, b string, kb keys) {
	for key := range r.Fields() {
		switch string(key) {
		case a:
			s.keys |= ka
		case b:
			s.keys |= kb
		}
	}
}
