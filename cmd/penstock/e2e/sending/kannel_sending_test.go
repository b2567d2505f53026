package sending

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// kannelSender starts a bearerbox and a smsbox that send over SMPP to an SMSC, and returns the
// configuration of Kannel as a carrier.
func kannelSender(t *testing.T, smsc *e2e.SMSC) string {
	t.Helper()
	programs, sendsms := kannelPrograms(t), kannelPort(t)
	admin, box := kannelPort(t), kannelPort(t)
	file := filepath.Join(t.TempDir(), "kannel.conf")
	relaytest.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `group = core
admin-port = %s
admin-password = secret
smsbox-port = %s
store-type = file
store-location = %q
log-level = 1

group = smsc
smsc = smpp
smsc-id = smsc
host = 127.0.0.1
port = %d
transceiver-mode = true
smsc-username = kannel
smsc-password = secret
system-type = ""
enquire-link-interval = 5

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = %s
log-level = 1

group = sendsms-user
username = penstock
password = secret
max-messages = 1
`, admin, box, filepath.Join(t.TempDir(), "store"), smsc.Port, sendsms), 0o600))
	bearerbox := runKannelProgram(t, nil, programs["bearerbox"], file)
	bearerbox.awaitOutput("Start-up done")
	runKannelProgram(t, nil, programs["smsbox"], file)
	bearerbox.awaitOutput("Client connected from <127.0.0.1>")
	smsc.Await("Kannel's bind", func(e e2e.SMSCEvent) bool { return e.SystemID == "kannel" })
	return fmt.Sprintf("  - {type: kannel, name: kannel, url: 'http://127.0.0.1:%s/cgi-bin/sendsms', username: penstock, password: secret}\n", sendsms)
}

// TestSendingOverKannel sends through Kannel and its SMPP driver to an SMSC. The receipts of the SMSC
// return through Kannel.
func TestSendingOverKannel(t *testing.T) {
	t.Parallel()
	peer, sink := e2e.StartSMSC(t), e2e.NewSink(t, nil)
	_, acme := newSender(t, kannelSender(t, peer), "PENSTOCK_LISTEN="+porttest.Address(t))
	acme.SendMessages(e2e.SendBody(t, sink.URL, map[string]any{"message": "héllo €"}, "447700900200"))
	acme.SendMessages(e2e.SendBody(t, sink.URL, map[string]any{"message": "Привет", "flash": true}, "447700901000"))
	acme.SendMessages(e2e.SendBody(t, sink.URL, map[string]any{"message": "not to be delivered"}, "447700900309"))
	long := "The parts of a long message leave with their headers, one after the other, and come as they were cut: " +
		"this one has more than one hundred and sixty characters, so that there are two of them."
	acme.SendMessages(e2e.SendBody(t, sink.URL, map[string]any{"message": long}, "447700900400"))
	e2e.AwaitReports(t, sink, "447700900200:8", "447700900200:1", "447700901000:8", "447700901000:1", "447700900309:8", "447700900309:2",
		"447700900400:8", "447700900400:1")
	got := make(map[string]e2e.SMSCEvent)
	text := ""
	for _, e := range peer.Events() {
		if e.Destination == "447700900400" {
			text += e.Text
		}
		got[e.Destination] = e
	}
	relaytest.Equal(t, "the text in the GSM alphabet", got["447700900200"].Text, "héllo €")
	relaytest.Equal(t, "its originator", got["447700900200"].From, "447700900999")
	relaytest.Equal(t, "the text in UCS-2", got["447700901000"].Text, "Привет")
	relaytest.Equal(t, "the flash flag", got["447700901000"].Coding&0x10 != 0, true)
	relaytest.Equal(t, "the text of two parts", text, long)
}
