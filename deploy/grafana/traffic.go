package grafana

// Traffic shows what passes the gateway: frames and readings, how many devices
// send, and by how many LoRaWAN gateways their frames are heard.
func Traffic() Dashboard {
	heard := func(function, alias string) Target {
		return query(`SELECT `+function+`("gateways") FROM "uplink" WHERE `+theseAccounts+` GROUP BY time($__interval) fill(none)`, alias)
	}
	return newDashboard("penstock-traffic", "Penstock: gateway traffic", "What comes in and how it is received.", []Variable{allAccounts()}, []Panel{
		bars("Frames", size{12, 8}, query(`SELECT count("frames") FROM "uplink" WHERE `+theseAccounts+` GROUP BY time($__interval), "account" fill(none)`, "account $tag_account")),
		bars("Readings", size{12, 8}, query(`SELECT count("value") FROM /.*/ WHERE `+theseAccounts+` GROUP BY time($__interval) fill(none)`, "$measurement")),
		graph("Devices that send", "short", size{12, 8}, query(`SELECT count("n") FROM (SELECT count("frames") AS "n" FROM "uplink" WHERE `+theseAccounts+` GROUP BY time($__interval), "identifier" fill(none)) WHERE $timeFilter GROUP BY time($__interval) fill(none)`, "devices")),
		table("Busiest devices", size{12, 8}, "top", true, query(`SELECT top("n", "identifier", 20) FROM (SELECT count("frames") AS "n" FROM "uplink" WHERE `+theseAccounts+` GROUP BY "identifier")`, "")).named(theseAccounts),
		graph("Gateways that hear a frame", "short", size{12, 8}, heard("min", "fewest"), heard("mean", "on average"), heard("max", "most")),
		bars("Frames that one gateway alone heard", size{12, 8}, query(`SELECT count("gateways") FROM "uplink" WHERE `+theseAccounts+` AND "gateways" = 1 GROUP BY time($__interval) fill(none)`, "frames")).
			about("Were that gateway gone, they would be lost."),
		graph("Reception", "", size{12, 8},
			query(`SELECT mean("rssi") FROM "uplink" WHERE `+theseAccounts+` GROUP BY time($__interval) fill(none)`, "RSSI, dBm"),
			query(`SELECT mean("snr") FROM "uplink" WHERE `+theseAccounts+` GROUP BY time($__interval) fill(none)`, "SNR, dB")),
		graph("Lost", "percent", size{12, 8}, query(`SELECT `+lost+` AS "lost" FROM `+steps(theseAccounts, `"identifier"`)+` AND $timeFilter GROUP BY time($__interval) fill(none)`, "lost")),
	})
}

// All are the dashboards that are shipped, by the name of their files.
func All() map[string]Dashboard {
	return map[string]Dashboard{"fleet": Fleet(), "device": Device(), "traffic": Traffic(), "gateway": Gateway()}
}
