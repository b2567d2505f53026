// Package devices keeps the records of the IoT domain in SQL: decoders,
// locations, sensor types, devices with their sensors, event markers and raw
// frames. Its Store is an iot.Store.
//
// What is kept of a device is written under the lock of the device's row, and
// deleted with it: work in flight adds nothing to a device that is gone. A devEUI
// or MAC address is claimed by an account before the device is saved, and the
// claim is locked before the device wherever both change.
package devices
