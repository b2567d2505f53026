-- Where to look for a sensor's newest reading: at this time or within a day after
-- it. It may be gone: then the sensor has none, since readings are forgotten from
-- the oldest on.
CREATE TABLE newest (
	sensor INTEGER PRIMARY KEY REFERENCES sensor (id),
	at     INTEGER NOT NULL
) STRICT;

INSERT INTO newest SELECT sensor, max(at) FROM reading GROUP BY sensor;
