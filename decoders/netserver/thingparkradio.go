package netserver

import (
	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// radio reads how the frame was heard. The document itself has the best
// reception with the gateway's position, Lrrs all of them without positions.
func (t *thingPark) radio(key []byte) {
	switch string(key) {
	case "Lrrid":
		t.best.ID = t.text("Lrrid")
	case "LrrRSSI":
		t.best.RSSI = t.number("LrrRSSI")
	case "LrrSNR":
		t.best.SNR = t.number("LrrSNR")
	case "LrrLAT":
		t.lat = t.coordinate()
	case "LrrLON":
		t.lon = t.coordinate()
	case "Lrrs":
		t.receivers()
	case "SpFact":
		t.f.SpreadingFactor = t.spreading("SpFact")
	case "Frequency":
		t.f.FrequencyHz = t.frequency("Frequency")
	case "DevLAT":
		t.devLat = t.coordinate()
	case "DevLON":
		t.devLon = t.coordinate()
	case "DevAlt":
		t.devAlt = t.coordinate()
	default:
		t.eventField(key)
	}
}

// eventField reads the fields of the documents other than an uplink.
func (t *thingPark) eventField(key []byte) {
	switch string(key) {
	case "Type":
		t.notice = t.text("Type")
	case "Var1":
		t.var1 = t.coordinate()
	case "Var2":
		t.var2 = t.coordinate()
	case "DeliveryStatus":
		t.delivered = t.text("DeliveryStatus")
	case "DeliveryFailedCause1", "DeliveryFailedCause2", "DeliveryFailedCause3":
		if s := t.text(string(key)); s != "" && s != "00" && len(t.causes) < 3 {
			t.causes = append(t.causes, s)
		}
	case "FCntDn":
		t.fCntDown, _ = t.integer("FCntDn", 1<<32-1)
	case "LrrUUID", "LrrID", "LrrId":
		t.baseStation = t.text(string(key))
	case "AlarmDetails", "Details", "AdditionalText", "Message":
		t.alarmDetails = t.text(string(key))
	default:
		t.r.Skip()
	}
}

func (t *thingPark) receivers() {
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		if string(key) == "Lrr" {
			t.gateways(t.receiver)
		} else {
			t.r.Skip()
		}
	}
}

func (t *thingPark) receiver() (g decoders.Gateway) {
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		switch string(key) {
		case "Lrrid":
			g.ID = t.text("Lrrs.Lrr.Lrrid")
		case "LrrRSSI":
			g.RSSI = t.number("Lrrs.Lrr.LrrRSSI")
		case "LrrSNR":
			g.SNR = t.number("Lrrs.Lrr.LrrSNR")
		default:
			t.r.Skip()
		}
	}
	return g
}

// heard puts the position where it belongs.
func (t *thingPark) heard() {
	f := t.f
	t.best.Position = place(t.lat, t.lon, nil)
	if len(f.Gateways) == 0 && (t.best.ID != "" || t.best.RSSI != nil) {
		f.Gateways = []decoders.Gateway{t.best}
		return
	}
	for i := range f.Gateways {
		if f.Gateways[i].ID == t.best.ID {
			f.Gateways[i].Position = t.best.Position
			return
		}
	}
}

// customerData has the device's name; it is an object or its text.
func (t *thingPark) customerData() {
	if t.r.Kind() == jsonbody.String {
		if data, ok := within(t.r.Value()); ok {
			t.f.Name, _ = data["name"].(string)
		}
		return
	}
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		if string(key) == "name" {
			t.f.Name = t.text("CustomerData.name")
		} else {
			t.r.Skip()
		}
	}
}

// driver reads which codec Actility would use: "producer/model/version".
func (t *thingPark) driver() {
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		if string(key) != "mod" {
			t.r.Skip()
			continue
		}
		var producer, model, version string
		for ok := t.r.Object(); ok && t.r.Next(&key); {
			switch string(key) {
			case "pId":
				producer = t.text("DriverCfg.mod.pId")
			case "mId":
				model = t.text("DriverCfg.mod.mId")
			case "ver":
				version = t.text("DriverCfg.mod.ver")
			default:
				t.r.Skip()
			}
		}
		t.f.Profile.ID = producer + "/" + model + "/" + version
	}
}

// driverOutput is what IoT Flow's driver decoded, if it is an object.
func (t *thingPark) driverOutput() {
	if t.r.Kind() != jsonbody.Object {
		t.r.Skip()
		return
	}
	t.f.Object = t.r.Map()
}

// readPoints takes IoT Flow's points by their record: {"t":{"record":21.5}}.
func (t *thingPark) readPoints() {
	points := t.object("points")
	for name, p := range points {
		point, ok := p.(map[string]any)
		if record, has := point["record"]; ok && has {
			points[name] = record
		}
	}
	t.points = points
}
