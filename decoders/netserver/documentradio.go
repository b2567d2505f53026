package netserver

import (
	"cmp"
	"math"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// LoRaBattery reads a battery on LoRaWAN's scale.
func (d document) LoRaBattery(path string) *float64 { return loraLevel(d.Int(path, 0, 255)) }

// Percent reads a battery in per cent; beyond 100 senders mean a supply.
func (d document) Percent(path string) *float64 { return withinPercent(d.Number(path)) }

// Gateways reads the list of receptions at a path, or the one that stands in its place.
func (d document) Gateways(path string, read func(document) decoders.Gateway) []decoders.Gateway {
	return d.In(path).receptions(read)
}

func (d document) receptions(read func(document) decoders.Gateway) (list []decoders.Gateway) {
	if d.kind() == jsonbody.Object {
		return []decoders.Gateway{read(d)}
	}
	d.Items(func(item document) {
		if len(list) < maxGateways {
			list = append(list, read(item))
		}
	})
	return list
}

// maxGateways bounds the receptions that a hostile body can give a frame.
const maxGateways = 100

// protobufGateways is Gateways for senders that speak protobuf, which name the members of
// a reception alike and leave out an SNR of 0 dB. read reads the others.
func (d document) protobufGateways(path string, read func(document) decoders.Gateway) []decoders.Gateway {
	gateways := d.Gateways(path, func(d document) decoders.Gateway {
		g := read(d)
		g.RSSI, g.SNR, g.Position = d.Number("rssi"), d.Number("snr"), d.In("location").protobufPosition()
		return g
	})
	fillSNR(gateways)
	return gateways
}

// fillSNR gives receptions with an RSSI the SNR of 0 dB that was left out.
func fillSNR(gateways []decoders.Gateway) {
	for i := range gateways {
		if g := &gateways[i]; g.RSSI != nil && g.SNR == nil {
			g.SNR = new(float64)
		}
	}
}

// protobufPosition reads latitude and longitude of senders that speak protobuf.
// They leave zeros out and give an empty object for no position, so one of the first two
// must be there.
func (d document) protobufPosition() *decoders.Position {
	lat, lon := d.Number("latitude"), d.Number("longitude")
	if lat == nil && lon == nil {
		return nil
	}
	return &decoders.Position{Latitude: *cmp.Or(lat, new(float64)), Longitude: *cmp.Or(lon, new(float64))}
}

// setBestGateway takes the reception that a sender names beside the list of all for
// one of the list where that is empty.
func setBestGateway(f *decoders.Frame, best decoders.Gateway) {
	if len(f.Gateways) == 0 && (best.ID != "" || best.RSSI != nil) {
		f.Gateways = []decoders.Gateway{best}
	}
}

// place makes a position of what was given. Zero beside zero is how senders
// say that they do not know one.
func place(lat, lon *float64) *decoders.Position {
	if lat == nil || lon == nil || *lat == 0 && *lon == 0 || math.Abs(*lat) > 90 || math.Abs(*lon) > 180 {
		return nil
	}
	return &decoders.Position{Latitude: *lat, Longitude: *lon}
}

// loraLevel gives a whole level of LoRaWAN's DevStatusAns in per cent.
func loraLevel(n int64, ok bool) *float64 {
	if !ok {
		return nil
	}
	level := float64(n)
	return loraPercent(&level)
}

// loraPercent gives a level of LoRaWAN's DevStatusAns in per cent: 1 to 254
// stand between empty and full, 0 for an external supply, 255 for unknown.
func loraPercent(level *float64) *float64 {
	if level == nil || *level < 1 || *level > 254 {
		return nil
	}
	percent := math.Round(*level/254*1000) / 10
	return &percent
}

func withinPercent(n *float64) *float64 {
	if n == nil || *n < 0 || *n > 100 {
		return nil
	}
	return n
}
