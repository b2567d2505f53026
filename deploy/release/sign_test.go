package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// The signature of SHA256SUMS holds for the key that made it, and no longer once a hash
// has changed.
func TestSHA256SUMSIsSigned(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("minisign"); err != nil {
		if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
			t.Skipf("skipped: %v, and PENSTOCK_TEST_SKIP_REAL=1", err)
		}
		t.Fatalf("%v: make deps installs it (PENSTOCK_TEST_SKIP_REAL=1 skips)", err)
	}
	dir := t.TempDir()
	public, secret := filepath.Join(dir, "public"), filepath.Join(dir, "secret")
	if out, err := run(dir, "minisign", "-G", "-W", "-p", public, "-s", secret); err != nil {
		t.Fatalf("minisign -G: %v\n%s", err, out)
	}
	sums := filepath.Join(dir, "SHA256SUMS")
	relaytest.NoError(t, os.WriteFile(sums, []byte("00  penstock-linux-amd64\n"), 0o600))
	if out, err := run(".", "./sign.sh", dir); err == nil {
		t.Errorf("a release is signed without a key:\n%s", out)
	}
	sign := exec.Command("./sign.sh", dir)
	sign.Env = append(os.Environ(), "MINISIGN_SECRET_KEY="+string(relaytest.Must(os.ReadFile(secret))(t)))
	if out, err := sign.CombinedOutput(); err != nil {
		t.Fatalf("sign.sh: %v\n%s", err, out)
	}
	if out, err := run(dir, "minisign", "-V", "-p", public, "-m", sums); err != nil {
		t.Errorf("the signature does not hold: %v\n%s", err, out)
	}
	relaytest.NoError(t, os.WriteFile(sums, []byte("01  penstock-linux-amd64\n"), 0o600))
	if out, err := run(dir, "minisign", "-V", "-p", public, "-m", sums); err == nil {
		t.Errorf("the signature holds for other hashes:\n%s", out)
	}
}
