-- What a network tells of a device besides: the margin of its status, and where
-- it found it.
ALTER TABLE uplink ADD COLUMN margin REAL; -- dB
ALTER TABLE uplink ADD COLUMN latitude REAL; -- degrees
ALTER TABLE uplink ADD COLUMN longitude REAL; -- degrees
