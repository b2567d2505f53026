/**
 * Payload decoder of a room sensor: channel, type and value, as vendors publish it.
 */
function decodeUplink(input) {
    var decoded = roomSensor(input.bytes);
    return { data: decoded };
}

function roomSensor(bytes) {
    var decoded = {};
    for (var i = 0; i < bytes.length; ) {
        var channel = bytes[i++];
        var type = bytes[i++];
        if (type === 0x67) { // temperature
            decoded["temperature_" + channel] = readInt16BE(bytes.slice(i, i + 2)) / 10;
            i += 2;
        } else if (type === 0x68) { // humidity
            decoded["relative_humidity_" + channel] = bytes[i] / 2;
            i += 1;
        } else if (type === 0x75) { // battery
            decoded.battery = bytes[i];
            i += 1;
        } else if (type === 0x00) { // door
            decoded.door = bytes[i] === 0 ? "closed" : "open";
            i += 1;
        } else {
            break;
        }
    }
    return decoded;
}

function readUInt16BE(bytes) {
    var value = (bytes[0] << 8) + bytes[1];
    return value & 0xffff;
}

function readInt16BE(bytes) {
    var ref = readUInt16BE(bytes);
    return ref > 0x7fff ? ref - 0x10000 : ref;
}
