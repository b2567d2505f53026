package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/penstock/penstock/relay/relaytest"
)

// tool returns the path of a program that make deps installs into .tools/bin. It skips the test if
// the program is missing, because only these tests need it and building it takes minutes.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../.tools/bin/" + name)
	relaytest.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED: %s is not installed; make deps installs it", name)
	}
	return path
}

// render returns the chart's objects by kind and name, and their manifests. The error is the output
// of helm.
func render(t *testing.T, values ...string) (map[string]map[string]any, []byte, error) {
	t.Helper()
	args := []string{"template", "site", "helm", "--namespace", "iot", "--kube-version", "1.33.0"}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	cmd := exec.Command(tool(t, "helm"), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	manifests, err := cmd.Output()
	if err != nil {
		return nil, nil, errors.New(stderr.String())
	}
	objects := map[string]map[string]any{}
	for d := yaml.NewDecoder(bytes.NewReader(manifests)); ; {
		var o map[string]any
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return objects, manifests, nil
		} else if err != nil {
			t.Fatalf("the chart renders invalid YAML: %v\n%s", err, manifests)
		}
		if o != nil {
			objects[valueAt(o, "kind").(string)+" "+valueAt(o, "metadata", "name").(string)] = o
		}
	}
}

// valueAt returns the value at a path of keys and indexes in a document, or nil.
func valueAt(v any, path ...any) any {
	for _, p := range path {
		switch key := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[key]
		case int:
			list, _ := v.([]any)
			if key >= len(list) {
				return nil
			}
			v = list[key]
		}
	}
	return v
}

func allOptions() []string {
	return []string{"replicas=3", "secrets.PENSTOCK_DATABASE_URL=postgres://db/penstock", "ingress.enabled=true", "ingress.className=nginx",
		"ingress.tlsSecret=cert", "serviceMonitor.enabled=true", "serviceMonitor.labels.release=prometheus", "journal.storageClass=fast", "podAnnotations.team=iot", "nodeSelector.disk=ssd", "imagePullSecrets[0].name=registry"}
}

func TestHelmLintAcceptsTheChart(t *testing.T) {
	if output, err := exec.Command(tool(t, "helm"), "lint", "--strict", "--kube-version", "1.33.0", "helm").CombinedOutput(); err != nil {
		t.Errorf("helm lint: %v\n%s", err, output)
	}
}

// The test is skipped if kubeconform cannot fetch the schemas.
func TestObjectsOfTheChartMatchTheSchemasOfKubernetes(t *testing.T) {
	_, manifests, err := render(t, allOptions()...)
	relaytest.NoError(t, err)
	cmd := exec.Command(tool(t, "kubeconform"), "-strict", "-summary", "-skip", "ServiceMonitor", "-kubernetes-version", "1.33.0")
	cmd.Stdin = bytes.NewReader(manifests)
	output, err := cmd.CombinedOutput()
	if strings.Contains(string(output), "failed downloading schema") {
		t.Skipf("SKIPPED: kubeconform cannot fetch the schemas of Kubernetes from here: %.200s", output)
	}
	if err != nil {
		t.Errorf("kubeconform: %v\n%s", err, output)
	}
}

func TestTheChartRendersItsValues(t *testing.T) {
	objects, _, err := render(t, allOptions()...)
	relaytest.NoError(t, err)
	set := objects["StatefulSet site-penstock"]
	pod, container := valueAt(set, "spec", "template", "spec"), valueAt(set, "spec", "template", "spec", "containers", 0)
	for name, tc := range map[string]struct {
		got, want any
	}{
		"runs without root":                       {valueAt(pod, "securityContext", "runAsNonRoot"), true},
		"cannot change its image":                 {valueAt(container, "securityContext", "readOnlyRootFilesystem"), true},
		"has a startup probe":                     {valueAt(container, "startupProbe", "httpGet", "path"), "/healthz"},
		"has a liveness probe":                    {valueAt(container, "livenessProbe", "httpGet", "path"), "/healthz"},
		"has a readiness probe":                   {valueAt(container, "readinessProbe", "httpGet", "path"), "/healthz"},
		"mounts the volume of the journal":        {valueAt(set, "spec", "volumeClaimTemplates", 0, "metadata", "name"), valueAt(container, "volumeMounts", 0, "name")},
		"retains the journal when removed":        {valueAt(set, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"), "Retain"},
		"has a headless service for the gateways": {valueAt(objects["Service site-penstock-gateways"], "metadata", "name"), valueAt(set, "spec", "serviceName")},
		"allows one eviction at a time":           {valueAt(objects["PodDisruptionBudget site-penstock"], "spec", "maxUnavailable"), 1},
		"limits evictions of its own pods":        {valueAt(objects["PodDisruptionBudget site-penstock"], "spec", "selector", "matchLabels", "app.kubernetes.io/instance"), valueAt(set, "spec", "template", "metadata", "labels", "app.kubernetes.io/instance")},
		"reads its secret":                        {valueAt(container, "envFrom", 0, "secretRef", "name"), valueAt(objects["Secret site-penstock"], "metadata", "name")},
		"reads its settings":                      {valueAt(pod, "volumes", 0, "configMap", "name"), valueAt(objects["ConfigMap site-penstock"], "metadata", "name")},
		"has an ingress to its service":           {valueAt(objects["Ingress site-penstock"], "spec", "rules", 0, "http", "paths", 0, "backend", "service", "name"), valueAt(objects["Service site-penstock"], "metadata", "name")},
		"has a monitor with the label":            {valueAt(objects["ServiceMonitor site-penstock"], "metadata", "labels", "release"), "prometheus"},
		"scrapes each gateway":                    {valueAt(objects["ServiceMonitor site-penstock"], "spec", "selector", "matchLabels", "app.kubernetes.io/component"), valueAt(objects["Service site-penstock-gateways"], "metadata", "labels", "app.kubernetes.io/component")},
		"scrapes a port of the service":           {valueAt(objects["ServiceMonitor site-penstock"], "spec", "endpoints", 0, "port"), valueAt(objects["Service site-penstock-gateways"], "spec", "ports", 0, "name")},
		"does not scrape a gateway twice":         {valueAt(objects["Service site-penstock"], "metadata", "labels", "app.kubernetes.io/component") == nil, true},
		"stops gateways after at least 30 s":      {valueAt(pod, "terminationGracePeriodSeconds").(int) >= 30, true},
		"starts the number of replicas":           {valueAt(set, "spec", "replicas"), 3},
		"does not start gateways one by one":      {valueAt(set, "spec", "podManagementPolicy"), "Parallel"},
		"gets no settings of other services":      {valueAt(pod, "enableServiceLinks"), false},
	} {
		if tc.got == nil || tc.got != tc.want {
			t.Errorf("the chart %s: got %v, want %v", name, tc.got, tc.want)
		}
	}
}

func TestTheChartRefusesInvalidValues(t *testing.T) {
	for name, tc := range map[string]struct{ value, want string }{
		"several gateways on SQLite":     {"replicas=2", "need PostgreSQL"},
		"an unknown value":               {"replica=2", "replica"},
		"a secret that is not a setting": {"secrets.PASSWORD=x", "PASSWORD"},
		"an invalid type of service":     {"service.type=Cluster", "service"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := render(t, tc.value); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want it to contain %q", err, tc.want)
			}
		})
	}
	if _, _, err := render(t); err != nil {
		t.Errorf("error with the default values: %v", err)
	}
}
