-- Decoders, locations and sensor types; a sensor type has account 0.
CREATE TABLE decoder (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);

CREATE TABLE location (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);

CREATE TABLE sensor_type (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);

-- Devices and the records that go with them. Times of devices, sensors and
-- frames are in nanoseconds, those of markers in milliseconds.
CREATE TABLE device (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  identifier TEXT NOT NULL,
  created BIGINT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id),
  UNIQUE (account, identifier)
);
CREATE INDEX device_created ON device (account, created, id);

-- The account that a devEUI or MAC address belongs to.
CREATE TABLE device_claim (
  identifier TEXT NOT NULL PRIMARY KEY,
  account BIGINT NOT NULL
) {clustered};

CREATE TABLE sensor (
  account BIGINT NOT NULL,
  device TEXT NOT NULL,
  key TEXT NOT NULL,
  created BIGINT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, device, key)
);

CREATE TABLE marker (
  place {serial},
  account BIGINT NOT NULL,
  device TEXT NOT NULL,
  id TEXT NOT NULL,
  created BIGINT NOT NULL,
  doc TEXT NOT NULL,
  UNIQUE (account, device, id)
);

CREATE TABLE raw_frame (
  account BIGINT NOT NULL,
  device TEXT NOT NULL,
  id TEXT NOT NULL,
  received BIGINT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, device, id)
);
CREATE INDEX raw_frame_order ON raw_frame (account, device, received, id);
CREATE INDEX raw_frame_received ON raw_frame (received);

-- Sensors of deleted devices whose readings have an end.
CREATE TABLE retired_sensor (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);
