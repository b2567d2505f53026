// Package deploy_test validates the compose file and the Helm chart as far as that is
// possible without a container runtime.
package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/penstock/penstock/relay/relaytest"
)

type compose struct {
	Services map[string]struct {
		Image, Build any
		DependsOn    map[string]struct{ Condition string } `yaml:"depends_on"`
		Healthcheck  *struct{ Test []string }
		Ports        []string
		Volumes      []string
	}
	Volumes map[string]any
}

func readCompose(t *testing.T) (compose, string) {
	t.Helper()
	raw, err := os.ReadFile("compose.yaml")
	relaytest.NoError(t, err)
	var c compose
	relaytest.NoError(t, yaml.Unmarshal(raw, &c))
	return c, string(raw)
}

func TestComposeWaitsForHealthAndKeepsItsPortsToItself(t *testing.T) {
	c, _ := readCompose(t)
	image, err := os.ReadFile("Dockerfile")
	relaytest.NoError(t, err)
	for _, wanted := range []string{"penstock", "postgres", "redis", "influxdb", "mail", "prometheus", "grafana"} {
		if _, ok := c.Services[wanted]; !ok {
			t.Errorf("there is no service %s", wanted)
		}
	}
	for name, s := range c.Services {
		if s.Healthcheck == nil && (s.Build == nil || !strings.Contains(string(image), "HEALTHCHECK ")) {
			t.Errorf("%s has no health check", name)
		}
		for other, d := range s.DependsOn {
			if _, ok := c.Services[other]; !ok || d.Condition != "service_healthy" {
				t.Errorf("%s depends on %s with the condition %q", name, other, d.Condition)
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s opens %s to the network", name, port)
			}
		}
		for _, v := range s.Volumes {
			if source, _, _ := strings.Cut(v, ":"); !strings.HasPrefix(source, ".") {
				if _, ok := c.Volumes[source]; !ok {
					t.Errorf("%s mounts %s, which is not declared", name, source)
				}
			}
		}
	}
}

func TestTheImageRunsWithoutRoot(t *testing.T) {
	image, err := os.ReadFile("Dockerfile")
	relaytest.NoError(t, err)
	users := regexp.MustCompile(`(?m)^USER (.*)$`).FindAllStringSubmatch(string(image), -1)
	if len(users) == 0 || users[len(users)-1][1] != "10001:10001" {
		t.Errorf("the image runs as %q", users)
	}
}

// secrets.sh generates every secret that the compose file insists on, once.
func TestSecretsAreGeneratedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".env")
	generate := func() string {
		if out, err := exec.Command("./secrets.sh", file).CombinedOutput(); err != nil {
			t.Fatalf("secrets.sh: %v\n%s", err, out)
		}
		raw, err := os.ReadFile(file)
		relaytest.NoError(t, err)
		return string(raw)
	}
	first := generate()
	if second := generate(); second != first {
		t.Errorf("the second run changes the secrets:\n%s\n%s", first, second)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	var generated, wanted []string
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=[0-9a-f]{48}$`).FindAllStringSubmatch(first, -1) {
		generated = append(generated, m[1])
	}
	_, text := readCompose(t)
	for _, m := range regexp.MustCompile(`\$\{(\w+):\?`).FindAllStringSubmatch(text, -1) {
		wanted = append(wanted, m[1])
	}
	slices.Sort(generated)
	slices.Sort(wanted)
	if wanted = slices.Compact(wanted); !slices.Equal(generated, wanted) {
		t.Errorf("secrets.sh generates %q and compose.yaml wants %q", generated, wanted)
	}
}

// Where docker has its compose plugin, it reads the file itself.
func TestDockerReadsTheComposeFile(t *testing.T) {
	if out, err := exec.Command("docker", "compose", "version").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: docker compose is not installed: %v %s", err, out)
	}
	file := filepath.Join(t.TempDir(), ".env")
	if out, err := exec.Command("./secrets.sh", file).CombinedOutput(); err != nil {
		t.Fatalf("secrets.sh: %v\n%s", err, out)
	}
	if out, err := exec.Command("docker", "compose", "--env-file", file, "-f", "compose.yaml", "config", "--quiet").CombinedOutput(); err != nil {
		t.Errorf("docker compose config: %v\n%s", err, out)
	}
}
