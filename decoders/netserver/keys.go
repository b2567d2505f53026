package netserver

import "bytes"

// keyNamed returns the flag of a key, 0 for other keys.
func keyNamed(key []byte) keys {
	switch string(key) {
	case "applicationID":
		return keyApplicationID
	case "devEUI":
		return keyDevEUI
	case "end_device_ids":
		return keyEndDeviceIDs
	case "dev_id":
		return keyDevID
	case "hardware_serial":
		return keyHardwareSerial
	case "payload_raw":
		return keyPayloadRaw
	case "dev_eui":
		return keyDevEuiSnake
	case "app_eui":
		return keyAppEui
	case "hotspots":
		return keyHotspots
	case "reported_at":
		return keyReportedAt
	case "uuid":
		return keyUUID
	case "BS_alarm":
		return keyBSAlarm
	case "DevEUI":
		return keyDevEUIUpper
	case "payload_hex":
		return keyPayloadHex
	case "cmd":
		return keyCmd
	case "EUI":
		return keyEUI
	case "type":
		return keyType
	case "tech":
		return keyTech
	case "meta":
		return keyMeta
	case "params":
		return keyParams
	case "devEui":
		return keyDevEui
	}
	if bytes.HasPrefix(key, []byte("DevEUI_")) {
		return keyDevEUIUnderscore
	}
	return otherKeyNamed(key)
}

// otherKeyNamed is keyNamed for what is no LoRaWAN network server's.
func otherKeyNamed(key []byte) keys {
	switch string(key) {
	case "sensorType":
		return keySensorType
	case "messageType":
		return keyMessageType
	case "bn":
		return keyBn
	case "n":
		return keyN
	case "v":
		return keyV
	case "vs":
		return keyVs
	case "vb":
		return keyVb
	case "vd":
		return keyVd
	case "s":
		return keyS
	case "sensorMessages":
		return keySensorMessages
	case "gatewayMessage":
		return keyGatewayMessage
	case "subject":
		return keySubject
	case "rule":
		return keyRule
	case "channel_id":
		return keyChannelID
	case "feeds":
		return keyFeeds
	case "eventType":
		return keyEventType
	case "eventVersion":
		return keyEventVersion
	case "WirelessDeviceId":
		return keyWirelessDeviceID
	case "PayloadData":
		return keyPayloadData
	case "seqNumber":
		return keySeqNumber
	case "device":
		return keyDevice
	case "deviceId":
		return keyDeviceID
	case "id":
		return keyID
	}
	return 0
}
