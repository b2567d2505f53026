package release_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// system is a temporary copy of this machine's file system: an overlay in mount, PID and network
// namespaces of its own. Packages are installed in it as on the machine, with its shell, adduser
// and systemd's helpers, without effect on the machine and its services. systemd does not run
// in it.
type system struct {
	t       *testing.T
	pid     string
	version string // of the release's package in /tmp/release of the copy
}

// newSystem creates the copy. It skips the test if this process is not root, a tool is missing or
// the kernel does not permit the namespaces.
func newSystem(t *testing.T) *system {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can install the Debian package in a copy of the file system")
	}
	for _, tool := range []string{"dpkg", "unshare", "nsenter", "setpriv", "adduser", "deb-systemd-helper"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: the installation of the Debian package needs %s: %v", tool, err)
		}
	}
	const start = `set -e
mount -t tmpfs -o mode=755 tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount -t tmpfs tmpfs "$1/root/tmp"
mount -t tmpfs tmpfs "$1/root/run"
ip link set lo up || ifconfig lo up
cp -r "$2" "$1/root/tmp/release"
echo ready
exec chroot "$1/root" sleep infinity`
	dir, version := packages(t)
	cmd := exec.Command("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--propagation", "private",
		"sh", "-c", start, "sh", t.TempDir(), dir)
	stdout, err := cmd.StdoutPipe()
	relaytest.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	relaytest.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ready := make([]byte, len("ready\n"))
	if n, _ := stdout.Read(ready); n == 0 {
		_ = cmd.Wait()
		t.Skipf("SKIPPED: root cannot make a copy of the file system on this machine: %s", stderr.String())
	}
	children := fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid)
	child, err := os.ReadFile(children)
	if err != nil || len(child) == 0 {
		t.Fatalf("%s: %v", children, err)
	}
	return &system{t: t, pid: strings.TrimSpace(string(child)), version: version}
}

// laterVersion is a version higher than any release. packages builds a package with this version
// and the release's binary.
const laterVersion = "999.0.0"

// packages returns a directory with the packages of the release and of laterVersion, and the
// release's version.
func packages(t *testing.T) (dir, version string) {
	t.Helper()
	dir = t.TempDir()
	release := relaytest.Must(filepath.Glob(filepath.Join(released(t), "*.deb")))(t)
	if len(release) != 1 {
		t.Fatalf("the release has the packages %q, want one package", release)
	}
	name := filepath.Base(release[0])
	relaytest.NoError(t, os.Link(release[0], filepath.Join(dir, name)))
	binary := filepath.Join(released(t), "penstock-linux-"+runtime.GOARCH)
	if text, err := run("../..", "deploy/release/package.sh", nfpm(t), runtime.GOARCH, "v"+laterVersion, binary, dir); err != nil {
		t.Fatalf("package.sh: %v\n%s", err, text)
	}
	version = strings.TrimSuffix(strings.TrimPrefix(name, "penstock_"), "_"+runtime.GOARCH+".deb")
	return dir, version
}

// try runs a shell command in the copy and returns its output without surrounding white space.
func (s *system) try(command string) (string, error) {
	cmd := exec.Command("nsenter", "--target", s.pid, "--mount", "--pid", "--net", "--root", "--wd", "sh", "-c", command)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"}
	output, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

// run runs a shell command that must succeed.
func (s *system) run(command string) string {
	s.t.Helper()
	output, err := s.try(command)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", command, err, output)
	}
	return output
}

// expect runs a command and compares its output.
func (s *system) expect(command, want string) {
	s.t.Helper()
	if got := s.run(command); got != want {
		s.t.Errorf("%s prints\n%s\nwant\n%s", command, got, want)
	}
}

// install installs the package of a version.
func (s *system) install(version string) {
	s.t.Helper()
	s.run("dpkg --install /tmp/release/penstock_" + version + "_*.deb")
	s.expect("dpkg-query -W -f='${Status} ${Version}' penstock", "install ok installed "+version)
}

// serve starts the command of the systemd unit as the unit's user and waits until it is healthy.
// stop ends it.
func (s *system) serve() (stop func()) {
	s.t.Helper()
	setting := func(key string) string {
		return s.run(`sed -n 's/^` + key + `=//p' /usr/lib/systemd/system/penstock.service`)
	}
	user := setting("User")
	s.run(fmt.Sprintf("cd %s; setpriv --reuid=%s --regid=%s --init-groups env %s %s </dev/null >/tmp/log 2>&1 & echo $! >/tmp/pid",
		setting("WorkingDirectory"), user, setting("Group"), setting("Environment"), setting("ExecStart")))
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err := s.try("penstock healthcheck"); err == nil {
			break
		}
		if _, err := s.try("test -e /proc/$(cat /tmp/pid)/exe"); err != nil || time.Now().After(deadline) {
			s.t.Fatalf("the installed gateway is not healthy:\n%s", s.run("cat /tmp/log"))
		}
	}
	return func() {
		s.t.Helper()
		s.run("kill $(cat /tmp/pid); while [ -e /proc/$(cat /tmp/pid)/exe ]; do sleep 0.05; done")
	}
}

// The package is installed, started, upgraded, removed, installed again and purged. Settings and
// data are kept until the purge.
func TestTheDebianPackageIsInstalledUpgradedRemovedAndPurged(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	_, _ = s.try("dpkg --purge penstock; deluser --quiet penstock")

	s.install(s.version)
	s.expect("stat -c '%U:%G %a' /var/lib/penstock", "penstock:penstock 700")
	s.expect("stat -c '%U:%G %a' /etc/penstock", "root:penstock 750")
	s.expect("dpkg --listfiles penstock | grep man1/", "/usr/share/man/man1/penstock.1.gz")
	s.expect("penstock check-config /etc/penstock/penstock.yaml >/dev/null && echo valid", "valid")
	s.expect("readlink /etc/systemd/system/multi-user.target.wants/penstock.service", "/lib/systemd/system/penstock.service")
	stop := s.serve()
	s.expect("stat -c '%U %a' /var/lib/penstock/admin-token", "penstock 600")
	s.expect("ls /var/lib/penstock | grep demo-token || echo none", "none")
	stop()
	token := s.run("cat /var/lib/penstock/admin-token")

	s.run("echo '# changed by the operator' >>/etc/penstock/penstock.yaml; systemctl --quiet disable penstock.service")
	s.install(laterVersion)
	s.expect("tail -1 /etc/penstock/penstock.yaml", "# changed by the operator")
	s.expect("ls /etc/systemd/system/multi-user.target.wants/penstock.service 2>/dev/null || echo disabled", "disabled")
	stop = s.serve()
	s.expect("cat /var/lib/penstock/admin-token", token)
	stop()

	s.run("dpkg --remove penstock")
	s.expect("ls /usr/bin/penstock 2>/dev/null || echo gone", "gone")
	s.expect("cat /var/lib/penstock/admin-token", token)
	s.expect("tail -1 /etc/penstock/penstock.yaml", "# changed by the operator")

	s.install(laterVersion)
	s.expect("cat /var/lib/penstock/admin-token", token)
	s.run("dpkg --purge penstock")
	s.expect("ls -d /var/lib/penstock /etc/penstock 2>/dev/null || echo gone", "gone")
	s.expect("id -un penstock", "penstock")
}
