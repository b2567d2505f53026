package grafana

// Sensor is a sensor of a decoder.
type Sensor struct {
	Key  string
	Type string // the id of the sensor type, which is the name of the measurement
	Name string // the name of the sensor type; empty: the id is shown
	Unit string // as in the inventory, such as "°C"
}

// Decoder returns the dashboard of a decoder. Each sensor has a graph with a line for each device
// and a table of the latest values.
func Decoder(id, name string, sensors []Sensor) Dashboard {
	panels := make([]Panel, 0, 2*len(sensors))
	for _, s := range sensors {
		condition := inDevices + ` AND "key" = ` + quoteString(s.Key)
		if s.Name == "" {
			s.Name = s.Type
		}
		title := s.Name + ": " + s.Key
		panels = append(panels,
			graph(title, unit(s.Unit), size{16, 8}, numbersAndTexts(quote(s.Type), condition+` GROUP BY time($__interval), "identifier" fill(none)`, "$tag_identifier", "texts of $tag_identifier")...),
			table(title+", latest", size{8, 8}, "Time", true, query(`SELECT last(*) FROM `+quote(s.Type)+` WHERE `+condition+` GROUP BY "identifier"`, "")).named(inDevices))
	}
	return newDashboard(uidOf(id), "Penstock: "+name, "Readings of decoder "+id+".", []Variable{
		variable("account", "Account", "account", ""), devicesOf(sensors),
	}, panels)
}

// inAccounts is a condition for readings of the selected accounts in the time range.
const inAccounts = `$timeFilter AND "account" =~ /^$account$/`

// inDevices is a condition for readings of the selected devices in the time range.
const inDevices = inAccounts + ` AND "identifier" =~ /^$device$/`

// devicesOf returns the variable of the devices that have one of the sensors.
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

// uidOf returns a uid for the dashboard of a decoder: at most 40 letters, digits, hyphens and
// underscores, as Grafana requires.
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

// unit returns Grafana's id of a unit. A unit without an id becomes a suffix of the values.
func unit(symbol string) string {
	ids := map[string]string{
		"": "", "°C": "celsius", "°F": "fahrenheit", "K": "kelvin", "%": "percent", "%RH": "humidity",
		"hPa": "pressurehpa", "bar": "pressurebar", "Pa": "pressurepa", "kPa": "pressurekpa",
		"V": "volt", "mV": "mvolt", "A": "amp", "mA": "mamp", "W": "watt", "kW": "kwatt", "Wh": "watth", "kWh": "kwatth",
		"m": "lengthm", "mm": "lengthmm", "km": "lengthkm", "ppm": "ppm", "lx": "lux", "dB": "dB", "dBm": "dBm",
		"s": "s", "ms": "ms", "m/s": "velocityms", "km/h": "velocitykmh", "°": "degree", "l": "litre", "L": "litre", "m³": "m3",
	}
	if id, ok := ids[symbol]; ok {
		return id
	}
	return "suffix: " + symbol
}
