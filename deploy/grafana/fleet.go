package grafana

// theseAccounts are the frames of the accounts that are chosen.
const theseAccounts = `$timeFilter AND "account" =~ /^$account$/`

// lost is the share of frames that the counters say were sent and that did not
// come, per cent. A counter that begins again takes nothing away; a frame that
// came twice counts once.
const lost = `100 * (sum("step") - count("step")) / sum("step")`

// steps are how far the counter went from one frame of a device to the next.
func steps(where, group string) string {
	return `(SELECT non_negative_difference("f_cnt") AS "step" FROM "uplink" WHERE ` + where + ` GROUP BY ` + group + `) WHERE "step" > 0`
}

// Fleet shows all devices of the accounts chosen: when each was heard last, its
// battery, its loss and how well it is received.
func Fleet() Dashboard {
	perDevice := func(field string) Target {
		return query(`SELECT mean("`+field+`") FROM "uplink" WHERE `+theseAccounts+` GROUP BY time($__interval), "identifier" fill(none)`, "$tag_identifier")
	}
	return newDashboard("penstock-fleet", "Penstock: fleet", "Every device: last seen, battery, loss, reception.", []Variable{allAccounts()}, []Panel{
		figure("Devices heard", "short", size{6, 4}, query(`SELECT count("n") FROM (SELECT count("frames") AS "n" FROM "uplink" WHERE `+theseAccounts+` GROUP BY "account", "identifier")`, "")).
			about("Devices that sent a frame in the time shown."),
		figure("Frames", "short", size{6, 4}, query(`SELECT count("frames") FROM "uplink" WHERE `+theseAccounts, "")),
		figure("Lost", "percent", size{6, 4}, query(`SELECT `+lost+` AS "lost" FROM `+steps(theseAccounts, `"identifier"`), "")).
			about("From the gaps in the frame counters of all devices."),
		figure("Lowest battery", "percent", size{6, 4}, query(`SELECT min("battery") FROM "uplink" WHERE `+theseAccounts, "")).percent(),
		table("Last seen", size{24, 9}, "Time", true, query(`SELECT last("frames") AS "frames", "name", "f_cnt" AS "counter", "rssi", "snr", "gateways" FROM "uplink" WHERE `+theseAccounts+` GROUP BY "account", "identifier"`, "")).
			about("The last frame of each device, with its reception.").without("frames"),
		table("Last reading of each kind", size{24, 9}, "Time", true, query(`SELECT last("value") AS "value" FROM /.*/ WHERE `+theseAccounts+` GROUP BY "account", "identifier", "key"`, "")).named(theseAccounts),
		table("Loss", size{12, 8}, "lost", true, query(`SELECT `+lost+` AS "lost", sum("step") AS "sent" FROM `+steps(theseAccounts, `"identifier"`)+` GROUP BY "identifier"`, "")).named(theseAccounts).
			about("Per cent of what each device sent, from the gaps in its frame counter."),
		graph("Battery", "percent", size{12, 8}, perDevice("battery")).percent(),
		graph("RSSI of the best gateway", "dBm", size{12, 8}, perDevice("rssi")),
		graph("SNR of the best gateway", "dB", size{12, 8}, perDevice("snr")),
	})
}
