// Package smtptest gives tests a real SMTP server that all tests share: an instance of
// Postfix in a directory of its own, on a free port of the loopback interface. It accepts
// mail for Domain and relays nothing. It offers STARTTLS with a certificate that CAs
// trusts.
//
// It answers 554 to mail for any other domain, 450 to mail for Greylisted and 550 to mail for
// Rejected.
package smtptest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// The domain of the server, and the addresses that it refuses.
const (
	Domain     = "penstock.test"
	Greylisted = "greylisted@" + Domain
	Rejected   = "rejected@" + Domain
)

// Server is a running Postfix.
type Server struct {
	// Addr is host:port.
	Addr string
	// CAs trusts the server's certificate, which is for 127.0.0.1 and localhost.
	CAs *x509.CertPool

	root string
}

// Shared returns the server that tests share. Where Postfix is not installed or the test
// does not run as root, the test fails, or is skipped if PENSTOCK_TEST_SKIP_REAL is 1. The
// directory of the server is in the environment variable PENSTOCK_TEST_POSTFIX.
func Shared(t testing.TB) *Server {
	t.Helper()
	root := relaytest.Shared(t, "PENSTOCK_TEST_POSTFIX", start)
	s := &Server{root: root, Addr: string(relaytest.Must(os.ReadFile(filepath.Join(root, "addr")))(t)), CAs: x509.NewCertPool()}
	s.CAs.AppendCertsFromPEM(relaytest.Must(os.ReadFile(s.certificate()))(t))
	return s
}

// start runs a server and returns its directory.
func start(t testing.TB) string {
	t.Helper()
	requirePostfix(t)
	s := &Server{root: relaytest.ShortTempDir(t, ""), Addr: porttest.Address(t)}
	s.writeFiles(t)
	relaytest.StartProcess(t, exec.Command(binary(), "-c", s.config(), "start-fg"))
	s.await(t)
	return s.root
}

func (s *Server) config() string      { return filepath.Join(s.root, "etc") }
func (s *Server) certificate() string { return filepath.Join(s.config(), "tls.pem") }

func requirePostfix(t testing.TB) {
	t.Helper()
	reason := ""
	if binary() == "" {
		reason = "postfix is not installed"
	} else if os.Geteuid() != 0 {
		reason = "postfix needs root"
	}
	switch {
	case reason == "":
	case os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1":
		t.Skipf("skipped: %s", reason)
	default:
		t.Fatalf("%s (PENSTOCK_TEST_SKIP_REAL=1 skips)", reason)
	}
}

// binary returns the path of Postfix's command, or "" if Postfix is not installed. PATH may lack
// the directory of the command.
func binary() string {
	for _, name := range []string{"postfix", "/usr/sbin/postfix"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func (s *Server) writeFiles(t testing.TB) {
	t.Helper()
	relaytest.NoError(t, os.Chmod(s.root, 0o755))
	uid := userID(t, "postfix")
	for _, dir := range []string{"etc", "queue", "data", "mails"} {
		relaytest.NoError(t, os.Mkdir(filepath.Join(s.root, dir), 0o755))
	}
	for _, dir := range []string{"data", "mails"} {
		relaytest.NoError(t, os.Chown(filepath.Join(s.root, dir), uid, -1))
	}
	keyAndCertificate, _ := Certificate(t)
	access := fmt.Sprintf("%s 450 4.7.1 Greylisted, try again later\n%s 550 5.1.1 No such user\n", Greylisted, Rejected)
	relaytest.NoError(t,
		os.WriteFile(s.certificate(), keyAndCertificate, 0o600),
		os.WriteFile(filepath.Join(s.root, "addr"), []byte(s.Addr), 0o600),
		os.WriteFile(filepath.Join(s.config(), "main.cf"), mainCF(s.root, uid), 0o644),
		os.WriteFile(filepath.Join(s.config(), "master.cf"), s.masterCF(), 0o644),
		os.WriteFile(filepath.Join(s.config(), "rcpt"), []byte(access), 0o644),
	)
}

func mainCF(root string, uid int) []byte {
	return fmt.Appendf(nil, `compatibility_level = 3.6
queue_directory = %[1]s/queue
data_directory = %[1]s/data
maillog_file = %[1]s/log
maillog_file_prefixes = %[1]s
myhostname = mx.%[2]s
inet_interfaces = loopback-only
inet_protocols = ipv4
mydestination =
alias_maps =
mynetworks = 127.0.0.0/8
local_transport = error:no local mail
default_transport = error:no relaying
virtual_mailbox_domains = %[2]s
virtual_mailbox_base = %[1]s/mails
virtual_mailbox_maps = static:all/
virtual_minimum_uid = 1
virtual_uid_maps = static:%[3]d
virtual_gid_maps = static:%[3]d
smtpd_recipient_restrictions = check_recipient_access texthash:%[1]s/etc/rcpt, reject_unauth_destination
smtpd_relay_restrictions = reject_unauth_destination
smtpd_tls_chain_files = %[1]s/etc/tls.pem
smtpd_tls_security_level = may
smtpd_peername_lookup = no
`, root, Domain, uid)
}

func (s *Server) masterCF() []byte {
	lines := []string{
		s.Addr + " inet n - n - - smtpd",
		"pickup unix n - n 60 1 pickup", "cleanup unix n - n - 0 cleanup", "qmgr unix n - n 300 1 qmgr",
		"tlsmgr unix - - n 1000? 1 tlsmgr", "rewrite unix - - n - - trivial-rewrite", "bounce unix - - n - 0 bounce",
		"defer unix - - n - 0 bounce", "trace unix - - n - 0 bounce", "proxymap unix - - n - - proxymap",
		"error unix - - n - - error", "retry unix - - n - - error", "virtual unix - n n - - virtual",
		"anvil unix - - n - 1 anvil", "postlog unix-dgram n - n - 1 postlogd", "",
	}
	return []byte(strings.Join(lines, "\n"))
}

// await waits until the server greets.
func (s *Server) await(t testing.TB) {
	t.Helper()
	relaytest.Eventually(t, "postfix greets", func() (any, bool) {
		conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
		if err != nil {
			return err, false
		}
		defer conn.Close()
		greeting := make([]byte, 4)
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		n, _ := conn.Read(greeting)
		return greeting[:n], bytes.Equal(greeting[:n], []byte("220 "))
	})
}

// NewRecipient returns an address to which no other test sends mails.
func NewRecipient() string { return fmt.Sprintf("test%x@%s", mathrand.Uint64(), Domain) }

// Mails returns the complete mails to an address that have arrived, in no particular order. An
// accepted mail may arrive a moment later, see Wait.
func (s *Server) Mails(t testing.TB, recipient string) []string {
	t.Helper()
	var mails []string
	for _, file := range relaytest.Must(filepath.Glob(filepath.Join(s.root, "mails", "all", "new", "*")))(t) {
		mail := string(relaytest.Must(os.ReadFile(file))(t))
		if strings.Contains(mail, "\nDelivered-To: "+recipient+"\n") {
			mails = append(mails, mail)
		}
	}
	return mails
}

// Wait waits until at least n mails to an address have arrived and returns them.
func (s *Server) Wait(t testing.TB, recipient string, n int) []string {
	t.Helper()
	var mails []string
	relaytest.Eventually(t, fmt.Sprintf("%d mails arrive", n), func() (any, bool) {
		mails = s.Mails(t, recipient)
		return len(mails), len(mails) >= n
	})
	return mails
}

func userID(t testing.TB, name string) int {
	t.Helper()
	return relaytest.Must(strconv.Atoi(relaytest.Must(user.Lookup(name))(t).Uid))(t)
}

// Certificate makes a self-signed certificate for 127.0.0.1 and localhost. It returns the PEM of
// the key and the certificate, and a pool that trusts the certificate.
func Certificate(t testing.TB) ([]byte, *x509.CertPool) {
	t.Helper()
	key := relaytest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der := relaytest.Must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	parsed := relaytest.Must(x509.ParseCertificate(der))(t)
	secret := relaytest.Must(x509.MarshalPKCS8PrivateKey(key))(t)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return slices.Concat(
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	), pool
}
