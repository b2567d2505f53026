-- Further data of a device from the network: the margin of its status, and its location.
ALTER TABLE uplink ADD COLUMN margin REAL; -- dB
ALTER TABLE uplink ADD COLUMN latitude REAL; -- degrees
ALTER TABLE uplink ADD COLUMN longitude REAL; -- degrees
