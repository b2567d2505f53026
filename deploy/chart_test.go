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

// tool returns a program that make deps installs into .tools/bin, or skips the test
// with the reason: it takes minutes to build, and is needed here only.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../.tools/bin/" + name)
	relaytest.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED: %s is not installed; make deps installs it", name)
	}
	return path
}

// render returns the chart's objects by kind and name. Errors are those of helm.
func render(t *testing.T, values ...string) (map[string]map[string]any, []byte, error) {
	t.Helper()
	args := []string{"template", "site", "helm", "--namespace", "iot", "--kube-version", "1.33.0"}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	cmd := exec.Command(tool(t, "helm"), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, errors.New(stderr.String())
	}
	objects := map[string]map[string]any{}
	for d := yaml.NewDecoder(bytes.NewReader(out)); ; {
		var o map[string]any
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return objects, out, nil
		} else if err != nil {
			t.Fatalf("the chart renders no YAML: %v\n%s", err, out)
		}
		if o != nil {
			objects[at(o, "kind").(string)+" "+at(o, "metadata", "name").(string)] = o
		}
	}
}

// at follows keys and indexes into a document; nil where there is nothing.
func at(v any, path ...any) any {
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

func everything() []string {
	return []string{"replicas=3", "secrets.PENSTOCK_DATABASE_URL=postgres://db/penstock", "ingress.enabled=true", "ingress.className=nginx",
		"ingress.tlsSecret=cert", "serviceMonitor.enabled=true", "serviceMonitor.labels.release=prometheus", "journal.storageClass=fast", "podAnnotations.team=iot", "nodeSelector.disk=ssd", "imagePullSecrets[0].name=registry"}
}

func TestHelmFindsNothingWrong(t *testing.T) {
	if out, err := exec.Command(tool(t, "helm"), "lint", "--strict", "--kube-version", "1.33.0", "helm").CombinedOutput(); err != nil {
		t.Errorf("helm lint: %v\n%s", err, out)
	}
}

// Every object of Kubernetes' own kinds is held against its schemas, which kubeconform fetches.
func TestTheChartKeepsToTheSchemasOfKubernetes(t *testing.T) {
	_, out, err := render(t, everything()...)
	relaytest.NoError(t, err)
	cmd := exec.Command(tool(t, "kubeconform"), "-strict", "-summary", "-skip", "ServiceMonitor", "-kubernetes-version", "1.33.0")
	cmd.Stdin = bytes.NewReader(out)
	text, err := cmd.CombinedOutput()
	if strings.Contains(string(text), "failed downloading schema") {
		t.Skipf("SKIPPED: kubeconform cannot fetch the schemas of Kubernetes from here: %.200s", text)
	}
	if err != nil {
		t.Errorf("kubeconform: %v\n%s", err, text)
	}
}

func TestTheChart(t *testing.T) {
	objects, _, err := render(t, everything()...)
	relaytest.NoError(t, err)
	set := objects["StatefulSet site-penstock"]
	pod, container := at(set, "spec", "template", "spec"), at(set, "spec", "template", "spec", "containers", 0)
	for name, tc := range map[string]struct {
		got, want any
	}{
		"runs without root":                  {at(pod, "securityContext", "runAsNonRoot"), true},
		"cannot change its image":            {at(container, "securityContext", "readOnlyRootFilesystem"), true},
		"asks while it starts":               {at(container, "startupProbe", "httpGet", "path"), "/healthz"},
		"asks whether it lives":              {at(container, "livenessProbe", "httpGet", "path"), "/healthz"},
		"asks whether it takes traffic":      {at(container, "readinessProbe", "httpGet", "path"), "/healthz"},
		"has a volume for the journal":       {at(set, "spec", "volumeClaimTemplates", 0, "metadata", "name"), at(container, "volumeMounts", 0, "name")},
		"keeps the journal when removed":     {at(set, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"), "Retain"},
		"gives the gateways names":           {at(objects["Service site-penstock-gateways"], "metadata", "name"), at(set, "spec", "serviceName")},
		"allows one eviction at a time":      {at(objects["PodDisruptionBudget site-penstock"], "spec", "maxUnavailable"), 1},
		"protects the pods it starts":        {at(objects["PodDisruptionBudget site-penstock"], "spec", "selector", "matchLabels", "app.kubernetes.io/instance"), at(set, "spec", "template", "metadata", "labels", "app.kubernetes.io/instance")},
		"reads its secret":                   {at(container, "envFrom", 0, "secretRef", "name"), at(objects["Secret site-penstock"], "metadata", "name")},
		"reads its settings":                 {at(pod, "volumes", 0, "configMap", "name"), at(objects["ConfigMap site-penstock"], "metadata", "name")},
		"sends the ingress to its service":   {at(objects["Ingress site-penstock"], "spec", "rules", 0, "http", "paths", 0, "backend", "service", "name"), at(objects["Service site-penstock"], "metadata", "name")},
		"has a monitor that is selected":     {at(objects["ServiceMonitor site-penstock"], "metadata", "labels", "release"), "prometheus"},
		"scrapes each gateway":               {at(objects["ServiceMonitor site-penstock"], "spec", "selector", "matchLabels", "app.kubernetes.io/component"), at(objects["Service site-penstock-gateways"], "metadata", "labels", "app.kubernetes.io/component")},
		"scrapes a port that there is":       {at(objects["ServiceMonitor site-penstock"], "spec", "endpoints", 0, "port"), at(objects["Service site-penstock-gateways"], "spec", "ports", 0, "name")},
		"scrapes no gateway twice":           {at(objects["Service site-penstock"], "metadata", "labels", "app.kubernetes.io/component") == nil, true},
		"gives a drain more time than 20 s":  {at(pod, "terminationGracePeriodSeconds").(int) >= 30, true},
		"starts as many as it is told to":    {at(set, "spec", "replicas"), 3},
		"does not start gateways one by one": {at(set, "spec", "podManagementPolicy"), "Parallel"},
		"gets no settings of other services": {at(pod, "enableServiceLinks"), false},
	} {
		if tc.got == nil || tc.got != tc.want {
			t.Errorf("the chart %s: got %v, want %v", name, tc.got, tc.want)
		}
	}
}

func TestTheChartRefusesWhatCannotWork(t *testing.T) {
	for name, tc := range map[string]struct{ value, want string }{
		"several gateways on SQLite":      {"replicas=2", "need PostgreSQL"},
		"a value that it does not know":   {"replica=2", "replica"},
		"a secret that is no setting":     {"secrets.PASSWORD=x", "PASSWORD"},
		"a type of service that is wrong": {"service.type=Cluster", "service"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := render(t, tc.value); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, _, err := render(t); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}
