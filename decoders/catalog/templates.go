package catalog

// Template is a decoder to begin with.
type Template struct {
	ID            string
	Name          string
	Description   string
	Codec         string
	Source        string
	UseRawPayload bool
}

// Templates returns a template for each way to decode. Each source compiles.
func Templates() []Template {
	return []Template{
		{ID: "json", Name: "Decoded values", Codec: "json", Description: "Takes the values that the network server or the sender has decoded."},
		{ID: "cayenne_lpp", Name: "Cayenne LPP", Codec: "cayenne_lpp", UseRawPayload: true, Description: "Decodes Cayenne Low Power Payload; keys are a type and a channel, such as temperature_3."},
		{ID: "senml", Name: "SenML", Codec: "senml", UseRawPayload: true, Description: "Decodes sensor measurement lists in JSON (RFC 8428)."},
		{ID: "expr", Name: "Expressions", Codec: "expr", UseRawPayload: true, Description: "Computes each key from the octets of the payload.", Source: exprTemplate},
		{ID: "javascript", Name: "JavaScript", Codec: "javascript", UseRawPayload: true, Description: "Runs a codec with decodeUplink, as device vendors publish them.", Source: javascriptTemplate},
	}
}

const exprTemplate = `# One line for each key. bytes has the payload.
temperature = (bytes[0] * 256 + bytes[1]) / 100
humidity = bytes[2] / 2
`

const javascriptTemplate = `function decodeUplink(input) {
  var b = input.bytes;
  return {
    data: {
      temperature: ((b[0] << 24 >> 16) | b[1]) / 100,
      humidity: b[2] / 2
    }
  };
}
`
