-- The time of a sensor's newest reading, or a time at most a day earlier. If no reading is in
-- this range, the sensor has none, because retention deletes the oldest readings first.
CREATE TABLE newest (
	sensor INTEGER PRIMARY KEY REFERENCES sensor (id),
	at     INTEGER NOT NULL
) STRICT;

INSERT INTO newest SELECT sensor, max(at) FROM reading GROUP BY sensor;
