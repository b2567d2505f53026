-- Readings and uplinks of devices. Times are nanoseconds since 1970, UTC.

-- A device of an account; the other tables hold its number instead of its name.
CREATE TABLE device (
	id      INTEGER PRIMARY KEY,
	account INTEGER NOT NULL,
	name    TEXT NOT NULL,
	UNIQUE (account, name)
) STRICT;

-- A sensor of a device. A reading overwrites another of the same sensor and time, and each
-- sensor has a retention.
CREATE TABLE sensor (
	id     INTEGER PRIMARY KEY,
	device INTEGER NOT NULL REFERENCES device (id),
	name   TEXT NOT NULL,
	UNIQUE (device, name)
) STRICT;

-- The other names of a reading. Nearly all readings of a sensor have the same label.
CREATE TABLE label (
	id         INTEGER PRIMARY KEY,
	type       TEXT NOT NULL,
	identifier TEXT NOT NULL,
	key        TEXT NOT NULL,
	UNIQUE (type, identifier, key)
) STRICT;

-- The primary key has the order of queries: by device, then by time. Aggregates (a range of
-- times of a device, grouped by sensor and at / width) and retention (the oldest readings of a
-- device's sensor) scan in the same order.
CREATE TABLE reading (
	device INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	sensor INTEGER NOT NULL REFERENCES sensor (id),
	label  INTEGER NOT NULL REFERENCES label (id),
	value  REAL, -- a number, or
	text   TEXT, -- a text
	PRIMARY KEY (device, at, sensor),
	CHECK ((value IS NULL) <> (text IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE uplink (
	device     INTEGER NOT NULL REFERENCES device (id),
	at         INTEGER NOT NULL,
	identifier TEXT NOT NULL,
	f_cnt      INTEGER,
	f_port     INTEGER,
	rssi       REAL, -- dBm
	snr        REAL, -- dB
	gateways   INTEGER,
	battery    REAL, -- percent
	PRIMARY KEY (device, at)
) STRICT, WITHOUT ROWID;
