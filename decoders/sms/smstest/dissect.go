package smstest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/warthog618/sms/encoding/tpdu"

	"github.com/penstock/penstock/decoders/sms"
)

// Missing ends a test because a program is not installed. The test fails, or is skipped if
// PENSTOCK_TEST_SKIP_REAL=1.
func Missing(t *testing.T, programs string) {
	t.Helper()
	text := programs + " are not installed (run deploy/test-deps.sh)"
	if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
		t.Skip(text)
	}
	t.Fatal(text)
}

// Dissection holds the fields that tshark decodes from a short message.
type Dissection map[string]any

// All returns the values of a field ("gsm_sms.sms_text"), in order.
func (d Dissection) All(field string) (values []string) {
	for _, key := range slices.Sorted(maps.Keys(d)) {
		list, isList := d[key].([]any)
		if !isList {
			list = []any{d[key]}
		}
		for _, v := range list {
			switch v := v.(type) {
			case map[string]any:
				values = append(values, Dissection(v).All(field)...)
			case string:
				if key == field {
					values = append(values, v)
				}
			}
		}
	}
	return values
}

// Dissect passes messages to tshark, each part as an SMS-DELIVER. It returns the dissection of
// the last part of each message, in which tshark shows the joined content. The references of
// messages with several parts must differ.
func Dissect(t *testing.T, messages ...sms.Message) []Dissection {
	t.Helper()
	if _, err := exec.LookPath("tshark"); err != nil {
		Missing(t, "tshark")
	}
	packets := bytes.NewBuffer(pcapHeader())
	var lastFrames []int
	parts := 0
	for _, m := range messages {
		for _, p := range m.Parts {
			writePacket(packets, deliver(t, p))
		}
		parts += len(m.Parts)
		lastFrames = append(lastFrames, parts-1)
	}
	frames := tshark(t, packets.Bytes())
	if len(frames) != parts {
		t.Fatalf("tshark: %d frames, want %d", len(frames), parts)
	}
	list := make([]Dissection, len(messages))
	for i, lastFrame := range lastFrames {
		list[i] = frames[lastFrame]
	}
	return list
}

func tshark(t *testing.T, capture []byte) (frames []Dissection) {
	t.Helper()
	cmd := exec.Command("tshark", "-r", "-", "-T", "json", "--no-duplicate-keys", "-o", `uat:user_dlts:"User 0 (DLT=147)","gsm_sms","0","","0",""`)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "LC_ALL=C.UTF-8")
	cmd.Stdin = bytes.NewReader(capture)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v: %s", err, stderr.String())
	}
	if err := json.Unmarshal(output, &frames); err != nil {
		t.Fatalf("tshark: %v: %s", err, output)
	}
	return frames
}

// deliver returns the SMS-DELIVER of a part (TS 23.040, 9.2.2.1).
func deliver(t *testing.T, p sms.Part) []byte {
	t.Helper()
	d, err := tpdu.NewDeliver(tpdu.WithOA(tpdu.NewAddress(tpdu.FromNumber("+447700900123"))))
	if err != nil {
		t.Fatal(err)
	}
	d.SetDCS(map[sms.Coding]byte{sms.GSM: 0x00, sms.Binary: 0x04, sms.UCS2: 0x08}[p.Coding])
	if len(p.UDH) > 0 {
		var udh tpdu.UserDataHeader
		if _, err := udh.UnmarshalBinary(p.UDH); err != nil {
			t.Fatal(err)
		}
		d.SetUDH(udh)
	}
	d.SetUD(p.Data)
	octets, err := d.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return octets
}

// pcapHeader returns the header of a capture file whose link type is DLT_USER0.
func pcapHeader() []byte {
	h := binary.BigEndian.AppendUint32(nil, 0xA1B2C3D4)
	h = binary.BigEndian.AppendUint16(h, 2)
	h = binary.BigEndian.AppendUint16(h, 4)
	for _, v := range []uint32{0, 0, 65535, 147} {
		h = binary.BigEndian.AppendUint32(h, v)
	}
	return h
}

func writePacket(b *bytes.Buffer, data []byte) {
	for _, v := range []int{0, 0, len(data), len(data)} {
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(v)))
	}
	b.Write(data)
}
