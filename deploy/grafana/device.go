package grafana

// thisDevice are the records of the device that is chosen.
const thisDevice = `$timeFilter AND "account" =~ /^$account$/ AND "identifier" = '$device'`

// Device shows one device: every sensor, its texts and its radio side.
func Device() Dashboard {
	radio := func(field string) Target {
		return query(`SELECT mean("`+field+`") FROM "uplink" WHERE `+thisDevice+` GROUP BY time($__interval) fill(none)`, field)
	}
	sensed := thisDevice + ` AND "key" = '$key' GROUP BY time($__interval) fill(none)`
	sensor := graph("$key", "", size{12, 8}, numbersAndTexts("/.*/", sensed, "$measurement", "texts")...)
	sensor.Repeat, sensor.Direction, sensor.MaxPerRow, sensor.GridPos.W = "key", "h", 2, 24
	variables := []Variable{
		allAccounts(),
		variable("device", "Device", "identifier", `"account" =~ /^$account$/`, false),
		variable("key", "Sensor", "key", `"identifier" = '$device'`, true),
	}
	variables[2].AllValue = "" // each has its own panel
	return newDashboard("penstock-device", "Penstock: device", "One device: every sensor, texts, reception.", variables, []Panel{
		figure("Device", "string", size{24, 3}, query(`SELECT last("name") FROM "uplink" WHERE `+thisDevice, "")).fields("/.*/").
			about("The name that the device has here, as of its last frame."),
		table("Latest", size{12, 8}, "key", false, query(`SELECT last("value") AS "value" FROM /.*/ WHERE `+thisDevice+` GROUP BY "key"`, "")),
		table("Texts", size{12, 8}, "Time", true, query(`SELECT "text", "key" FROM /.*/ WHERE `+thisDevice+` ORDER BY time DESC LIMIT 100`, "")),
		sensor,
		graph("Battery", "percent", size{8, 7}, radio("battery")).percent(),
		graph("Reception", "", size{8, 7}, radio("rssi"), radio("snr")).about("RSSI in dBm and SNR in dB, of the best gateway."),
		graph("Gateways that heard a frame", "short", size{8, 7}, radio("gateways")),
		figure("Lost", "percent", size{8, 7}, query(`SELECT `+lost+` AS "lost" FROM `+steps(thisDevice, `"identifier"`), "")),
		graph("Frame counter", "short", size{8, 7}, query(`SELECT last("f_cnt") FROM "uplink" WHERE `+thisDevice+` GROUP BY time($__interval) fill(none)`, "counter")),
		bars("Readings", size{8, 7}, query(`SELECT count("value") FROM /.*/ WHERE `+thisDevice+` GROUP BY time($__interval), "key" fill(none)`, "$tag_key")),
	})
}

// allAccounts are those of any measurement: not every device has a radio side.
func allAccounts() Variable { return variable("account", "Account", "account", "", true) }
