package influx

import (
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay/iot"
)

// appendPoint appends a reading as one line. The tags are in the order of their names, so that
// the server does not have to sort them.
func appendPoint(b []byte, p *iot.Point) []byte {
	b = appendEscaped(b, clean(p.Type), ", ")
	b = append(b, ",account="...)
	b = strconv.AppendInt(b, int64(p.Account), 10)
	b = appendTag(b, ",device_id=", p.DeviceID)
	b = appendTag(b, ",identifier=", p.Identifier)
	b = appendTag(b, ",key=", p.Key)
	b = appendTag(b, ",sensor_id=", p.SensorID)
	if p.IsText {
		b = append(b, " text="...)
		b = appendText(b, p.Text)
	} else {
		b = append(b, " value="...)
		b = appendFloat(b, p.Value)
	}
	return appendTime(b, p.Time.UnixNano())
}

// appendRadio appends the radio data of a frame as one line, or nothing if all fields are
// missing.
func appendRadio(b []byte, u *iot.RadioData) []byte {
	start := len(b)
	b = append(b, "uplink,account="...)
	b = strconv.AppendInt(b, int64(u.Account), 10)
	b = appendTag(b, ",device_id=", u.DeviceID)
	b = appendTag(b, ",identifier=", u.Identifier)
	fields := len(b)
	b = appendField(b, fields, "battery=", u.Battery)
	b = appendField(b, fields, "f_cnt=", float(u.FCnt))
	b = appendField(b, fields, "f_port=", float(u.FPort))
	if u.Frame {
		b = appendField(b, fields, "frames=", new(1.0))
	}
	b = appendField(b, fields, "gateways=", float(u.Gateways))
	b = appendField(b, fields, "latitude=", u.Latitude)
	b = appendField(b, fields, "longitude=", u.Longitude)
	b = appendField(b, fields, "margin=", u.Margin)
	if u.Frame && u.Name != "" {
		b = appendText(append(b, ",name="...), u.Name)
	}
	b = appendField(b, fields, "rssi=", u.RSSI)
	b = appendField(b, fields, "snr=", u.SNR)
	if len(b) == fields {
		return b[:start]
	}
	return appendTime(b, u.Time.UnixNano())
}

// float returns a count as a float, so that no field is ever an integer.
func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// appendField appends a field if there is a value; start is the offset of the line's fields.
func appendField(b []byte, start int, name string, v *float64) []byte {
	if v == nil {
		return b
	}
	if len(b) == start {
		b = append(b, ' ')
	} else {
		b = append(b, ',')
	}
	b = append(b, name...)
	return appendFloat(b, *v)
}

// appendFloat appends the shortest representation of v. In line protocol, 21 is a float;
// integers have a suffix.
func appendFloat(b []byte, v float64) []byte {
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

func appendTime(b []byte, ns int64) []byte {
	b = append(b, ' ')
	b = strconv.AppendInt(b, ns, 10)
	return append(b, '\n')
}

// appendTag appends a tag, or nothing for an empty value, which the line
// protocol cannot express.
func appendTag(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendEscaped(append(b, name...), clean(value), ",= ")
}

// appendText appends a string field, in which line breaks are not escaped.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	b = appendEscaped(b, cleanText(s), `"\`)
	return append(b, '"')
}

func appendEscaped(b []byte, s, special string) []byte {
	if !strings.ContainsAny(s, special) {
		return append(b, s...)
	}
	for i := range len(s) {
		if strings.IndexByte(special, s[i]) >= 0 {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return b
}
