package grafana

// Sensor is a key of a decoder and what it measures.
type Sensor struct {
	Key  string
	Type string // the sensor type's id, which is the measurement
	Name string // the sensor type's; empty: the id
	Unit string // as people write it, "°C"
}

// Decoder shows the devices that a decoder's values feed: one panel for each
// sensor, a line for each device.
func Decoder(id, name string, sensors []Sensor) Dashboard {
	panels := make([]Panel, 0, 2*len(sensors))
	for _, s := range sensors {
		condition := theseDevices + ` AND "key" = ` + quoteString(s.Key)
		if s.Name == "" {
			s.Name = s.Type
		}
		title := s.Name + ": " + s.Key
		panels = append(panels,
			graph(title, unit(s.Unit), size{16, 8}, numbersAndTexts(quote(s.Type), condition+` GROUP BY time($__interval), "identifier" fill(none)`, "$tag_identifier", "texts of $tag_identifier")...),
			table(title+", latest", size{8, 8}, "Time", true, query(`SELECT last(*) FROM `+quote(s.Type)+` WHERE `+condition+` GROUP BY "identifier"`, "")).named(theseDevices))
	}
	return newDashboard(uidOf(id), "Penstock: "+name, "What decoder "+id+" gives.", []Variable{
		variable("account", "Account", "account", ""), devicesOf(sensors),
	}, panels)
}

// theseAccounts are the readings of the accounts that are chosen.
const theseAccounts = `$timeFilter AND "account" =~ /^$account$/`

// theseDevices are the readings of the devices that are chosen.
const theseDevices = theseAccounts + ` AND "identifier" =~ /^$device$/`

// devicesOf is the choice among the devices that have one of the sensors.
func devicesOf(sensors []Sensor) Variable {
	condition := `"account" =~ /^$account$/`
	for i, s := range sensors {
		if i == 0 {
			condition += " AND ("
		} else {
			condition += " OR "
		}
		condition += `"key" = ` + quoteString(s.Key)
	}
	if len(sensors) > 0 {
		condition += ")"
	}
	return variable("device", "Device", "identifier", condition)
}

// uidOf is at most 40 letters, digits, hyphens and underscores, as Grafana wants.
func uidOf(id string) string {
	uid := []byte("penstock-decoder-")
	for i := 0; i < len(id) && len(uid) < 40; i++ {
		c := id[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_') {
			c = '-'
		}
		uid = append(uid, c)
	}
	return string(uid)
}

// unit gives Grafana's name of a unit; one that it has no name for is shown as
// it is.
func unit(written string) string {
	known := map[string]string{
		"": "", "°C": "celsius", "°F": "fahrenheit", "K": "kelvin", "%": "percent", "%RH": "humidity",
		"hPa": "pressurehpa", "bar": "pressurebar", "Pa": "pressurepa", "kPa": "pressurekpa",
		"V": "volt", "mV": "mvolt", "A": "amp", "mA": "mamp", "W": "watt", "kW": "kwatt", "Wh": "watth", "kWh": "kwatth",
		"m": "lengthm", "mm": "lengthmm", "km": "lengthkm", "ppm": "ppm", "lx": "lux", "dB": "dB", "dBm": "dBm",
		"s": "s", "ms": "ms", "m/s": "velocityms", "km/h": "velocitykmh", "°": "degree", "l": "litre", "L": "litre", "m³": "m3",
	}
	if name, ok := known[written]; ok {
		return name
	}
	return "suffix: " + written
}
