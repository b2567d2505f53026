package operations

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// writeCertificate writes a certificate for 127.0.0.1 with a serial number, and its key.
func writeCertificate(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	relaytest.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "penstock"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	relaytest.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	relaytest.NoError(t, err)
	relaytest.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	relaytest.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// serialOf connects to the gateway, and returns the serial number of its certificate.
func serialOf(t *testing.T, g *e2e.Gateway) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(g.URL(), "https://"), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec,noctx // the test needs only the serial number
	relaytest.NoError(t, err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// TestTLSAndHangup runs the program with a certificate. SIGHUP replaces the certificate and the
// log level while a connection stays open.
func TestTLSAndHangup(t *testing.T) {
	t.Parallel()
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml"))
	cert, key := filepath.Join(g.Dir, "cert.pem"), filepath.Join(g.Dir, "key.pem")
	configure := func(level string) {
		g.Configure(fmt.Sprintf("tls: {cert_file: %q, key_file: %q}\nlog: {level: %s, access: true}\ndebug: {listen: %q}\n", cert, key, level, porttest.Address(t)))
	}
	writeCertificate(t, cert, key, 1)
	configure("info")
	pool := x509.NewCertPool()
	text, err := os.ReadFile(cert)
	relaytest.NoError(t, err)
	pool.AppendCertsFromPEM(text)
	g.HTTP = &http.Client{Timeout: relaytest.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(g.HTTP.CloseIdleConnections)
	g.Spawn()
	awaitLog := func(line string) {
		t.Helper()
		relaytest.Eventually(t, line, func() (any, bool) { return g.Logs.Tail(10), strings.Contains(g.Logs.String(), line) })
	}
	t.Run("requests with large bodies pass", func(t *testing.T) {
		acme := g.WithToken("acme-all-0123456")
		e2e.PostWebhook(t, acme, "/webhooks/lpwan", `{"deviceId": "sealed", "temperature": 1, "note": "`+strings.Repeat("x", 100_000)+`"}`)
		alive := g.WithToken("").Get("/healthz")
		alive.Expect(t, 200, `{"status": "alive"}`)
		relaytest.Equal(t, "Strict-Transport-Security", alive.Header.Get("Strict-Transport-Security"), "max-age=31536000")
		if got := serialOf(t, g); got != 1 {
			t.Errorf("serial number = %d, want 1", got)
		}
		if m := e2e.Metrics(t, g.WithToken("").Get("/metrics").Body); m["penstock_tls_certificate_expiry_timestamp_seconds"] < float64(time.Now().Unix()) {
			t.Error("the metric with the expiry of the certificate is missing or in the past")
		}
	})
	t.Run("HTTP requests are not answered", func(t *testing.T) {
		if resp, err := http.Get("http" + strings.TrimPrefix(g.URL(), "https") + "/healthz"); err == nil { //nolint:noctx // it fails at once
			resp.Body.Close()
			t.Error("the HTTP request was answered, want an error")
		}
	})
	t.Run("profiles are served on another address", func(t *testing.T) {
		url := regexp.MustCompile(`msg="profiles are served" url=(\S+)`).FindStringSubmatch(g.Logs.String())
		if url == nil {
			t.Fatalf("log = %s\nwant the address of the profiles", g.Logs.Tail(30))
		}
		resp, err := http.Get(url[1] + "goroutine?debug=1") //nolint:noctx // of this machine
		relaytest.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("status = %d, want 200", resp.StatusCode)
		}
		g.WithToken("").Get("/debug/pprof/").Mentions(t, 404)
	})
	t.Run("SIGHUP exchanges the certificate and sets the level", func(t *testing.T) {
		writeCertificate(t, cert, key, 2)
		if got := serialOf(t, g); got != 1 {
			t.Errorf("serial number before the signal = %d, want 1", got)
		}
		configure("warn")
		relaytest.NoError(t, g.Process.Process.Signal(syscall.SIGHUP))
		relaytest.Eventually(t, "the new certificate", func() (any, bool) { n := serialOf(t, g); return n, n == 2 })
		relaytest.Eventually(t, "requests write no INFO lines at the level WARN", func() (any, bool) {
			oldCount := strings.Count(g.Logs.String(), "msg=request ")
			g.WithToken("").Get("/healthz").Expect(t, 200, `{"status": "alive"}`) // over the open connection
			newCount := strings.Count(g.Logs.String(), "msg=request ")
			return newCount - oldCount, newCount == oldCount
		})
	})
	t.Run("a reload of invalid files changes nothing", func(t *testing.T) {
		relaytest.NoError(t, os.WriteFile(cert, []byte("torn"), 0o600))
		g.Configure("log: {level: loud}")
		relaytest.NoError(t, g.Process.Process.Signal(syscall.SIGHUP))
		awaitLog("certificate not reloaded; the current one is still used")
		awaitLog("configuration not reloaded, because it is invalid")
		if got := serialOf(t, g); got != 2 {
			t.Errorf("serial number = %d, want 2", got)
		}
	})
}
