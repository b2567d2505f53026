package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// The signature of SHA256SUMS is valid for the key that made it, and invalid after a hash has
// changed.
func TestSHA256SUMSIsSigned(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("minisign"); err != nil {
		if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
			t.Skipf("SKIPPED: %v; make deps installs it", err)
		}
		t.Fatalf("%v: run make deps, or set PENSTOCK_TEST_SKIP_REAL=1 to skip this test", err)
	}
	dir := t.TempDir()
	public, secret := filepath.Join(dir, "public"), filepath.Join(dir, "secret")
	if output, err := run(dir, "minisign", "-G", "-W", "-p", public, "-s", secret); err != nil {
		t.Fatalf("minisign -G: %v\n%s", err, output)
	}
	sums := filepath.Join(dir, "SHA256SUMS")
	relaytest.NoError(t, os.WriteFile(sums, []byte("00  penstock-linux-amd64\n"), 0o600))
	if output, err := run(".", "./sign.sh", dir); err == nil {
		t.Errorf("sign.sh signs a release without a key:\n%s", output)
	}
	sign := exec.Command("./sign.sh", dir)
	sign.Env = append(os.Environ(), "MINISIGN_SECRET_KEY="+string(relaytest.Must(os.ReadFile(secret))(t)))
	if output, err := sign.CombinedOutput(); err != nil {
		t.Fatalf("sign.sh: %v\n%s", err, output)
	}
	if output, err := run(dir, "minisign", "-V", "-p", public, "-m", sums); err != nil {
		t.Errorf("the signature is invalid: %v\n%s", err, output)
	}
	relaytest.NoError(t, os.WriteFile(sums, []byte("01  penstock-linux-amd64\n"), 0o600))
	if output, err := run(dir, "minisign", "-V", "-p", public, "-m", sums); err == nil {
		t.Errorf("the signature is valid for other hashes:\n%s", output)
	}
}
