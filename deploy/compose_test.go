// Package deploy_test validates the compose file and the Helm chart as far as that is
// possible without a container runtime, and checks the links, tables and names of tests in the
// documentation.
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

func TestComposeServicesHaveHealthChecksAndLocalPorts(t *testing.T) {
	c, _ := readCompose(t)
	image, err := os.ReadFile("Dockerfile")
	relaytest.NoError(t, err)
	for _, service := range []string{"penstock", "postgres", "redis", "influxdb", "mail", "prometheus", "grafana"} {
		if _, ok := c.Services[service]; !ok {
			t.Errorf("compose.yaml has no service %s", service)
		}
	}
	for name, s := range c.Services {
		if s.Healthcheck == nil && (s.Build == nil || !strings.Contains(string(image), "HEALTHCHECK ")) {
			t.Errorf("%s has no health check", name)
		}
		for dependency, d := range s.DependsOn {
			if _, ok := c.Services[dependency]; !ok || d.Condition != "service_healthy" {
				t.Errorf("%s depends on %s with the condition %q, want service_healthy", name, dependency, d.Condition)
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s publishes %s, want a port of 127.0.0.1", name, port)
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
		t.Errorf("the image runs as %q, want 10001:10001", users)
	}
}

// secrets.sh generates every secret that the compose file requires. A second run changes nothing.
func TestSecretsAreGeneratedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".env")
	generate := func() string {
		if output, err := exec.Command("./secrets.sh", file).CombinedOutput(); err != nil {
			t.Fatalf("secrets.sh: %v\n%s", err, output)
		}
		raw, err := os.ReadFile(file)
		relaytest.NoError(t, err)
		return string(raw)
	}
	secrets := generate()
	if repeated := generate(); repeated != secrets {
		t.Errorf("the second run changes the secrets:\n%s\n%s", secrets, repeated)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, error %v, want 0600", info.Mode(), err)
	}
	var generated, required []string
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=[0-9a-f]{48}$`).FindAllStringSubmatch(secrets, -1) {
		generated = append(generated, m[1])
	}
	_, text := readCompose(t)
	for _, m := range regexp.MustCompile(`\$\{(\w+):\?`).FindAllStringSubmatch(text, -1) {
		required = append(required, m[1])
	}
	slices.Sort(generated)
	slices.Sort(required)
	if required = slices.Compact(required); !slices.Equal(generated, required) {
		t.Errorf("secrets.sh generates %q, want the variables of compose.yaml %q", generated, required)
	}
}

// The test is skipped without docker's compose plugin.
func TestDockerAcceptsTheComposeFile(t *testing.T) {
	if output, err := exec.Command("docker", "compose", "version").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: docker compose is not installed: %v %s", err, output)
	}
	file := filepath.Join(t.TempDir(), ".env")
	if output, err := exec.Command("./secrets.sh", file).CombinedOutput(); err != nil {
		t.Fatalf("secrets.sh: %v\n%s", err, output)
	}
	if output, err := exec.Command("docker", "compose", "--env-file", file, "-f", "compose.yaml", "config", "--quiet").CombinedOutput(); err != nil {
		t.Errorf("docker compose config: %v\n%s", err, output)
	}
}
