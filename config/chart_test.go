package config

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/testing/promtool"
)

// prometheusObject reads a kind of the Prometheus operator, whose types we do not have.
func prometheusObject(document string) (runtime.Object, *schema.GroupVersionKind, error) {
	object := &unstructured.Unstructured{}
	err := yaml.UnmarshalStrict([]byte(document), &object.Object)
	kind := object.GroupVersionKind()
	return object, &kind, err
}

func enabled(more ...any) map[string]any {
	values := map[string]any{"enabled": true}
	for i := 0; i < len(more); i += 2 {
		values[more[i].(string)] = more[i+1]
	}
	return values
}

func TestOptionalObjectsOfTheChart(t *testing.T) {
	for _, row := range []struct {
		sentence string
		values   map[string]any
		kind     string
		want     bool
	}{
		{"one replica has no disruption budget", nil, "PodDisruptionBudget", false},
		{"two replicas have a disruption budget", map[string]any{"replicas": 2}, "PodDisruptionBudget", true},
		{"two replicas can do without one", map[string]any{"replicas": 2, "podDisruptionBudget": false}, "PodDisruptionBudget", false},
		{"one replica can have one", map[string]any{"podDisruptionBudget": true}, "PodDisruptionBudget", true},
		{"no network policy", nil, "NetworkPolicy", false},
		{"a network policy", map[string]any{"networkPolicy": enabled()}, "NetworkPolicy", true},
		{"no ServiceMonitor", nil, "ServiceMonitor", false},
		{"a ServiceMonitor", map[string]any{"serviceMonitor": enabled()}, "ServiceMonitor", true},
		{"no PrometheusRule", nil, "PrometheusRule", false},
		{"a PrometheusRule", map[string]any{"prometheusRule": enabled()}, "PrometheusRule", true},
		{"no dashboard", nil, "ConfigMap", false},
		{"a dashboard for Grafana", map[string]any{"grafanaDashboard": enabled()}, "ConfigMap", true},
		{"no rights for MPIJobs", nil, "ClusterRole/trainyard-operator-mpi", false},
		{"rights for MPIJobs", map[string]any{"mpi": true}, "ClusterRole/trainyard-operator-mpi", true},
		{"rights for MPIJobs in one namespace", map[string]any{"mpi": true, "watchNamespace": "team"}, "Role/trainyard-operator-mpi", true},
	} {
		name := row.kind
		if !strings.Contains(name, "/") {
			name += "/trainyard-operator"
		}
		if got := helmed(t, row.values)[name] != nil; got != row.want {
			t.Errorf("%s: there is one: %t, want %t", row.sentence, got, row.want)
		}
	}
}

func TestTheChartCanTraceAllJobs(t *testing.T) {
	for _, traced := range []bool{true, false} {
		deployment := helmed(t, map[string]any{"traceContext": traced})["Deployment/trainyard-operator"].(*appsv1.Deployment)
		if got := slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, "--trace-context"); got != traced {
			t.Errorf("traceContext %t: the flag is there: %t", traced, got)
		}
	}
}

func TestAnOperatorWithoutLeaseIsReplacedAfterItsEnd(t *testing.T) {
	for leaderElect, want := range map[bool]appsv1.DeploymentStrategyType{true: "", false: appsv1.RecreateDeploymentStrategyType} {
		deployment := helmed(t, map[string]any{"leaderElect": leaderElect})["Deployment/trainyard-operator"].(*appsv1.Deployment)
		if got := deployment.Spec.Strategy.Type; got != want {
			t.Errorf("leaderElect %t: strategy %q, want %q", leaderElect, got, want)
		}
	}
}

func TestTheNetworkPolicyOpensBothPorts(t *testing.T) {
	peer := map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"team": "monitoring"}}}
	policy := helmed(t, map[string]any{"networkPolicy": enabled("metricsFrom", []any{peer})})["NetworkPolicy/trainyard-operator"].(*networkingv1.NetworkPolicy)
	open := map[int]int{}
	for _, rule := range policy.Spec.Ingress {
		open[rule.Ports[0].Port.IntValue()] = len(rule.From)
	}
	if diff := cmp.Diff(map[int]int{8080: 1, 8081: 0}, open); diff != "" {
		t.Errorf("the number of peers of each port (-want +got):\n%s", diff)
	}
}

// alert is a row of the table in docs/operations.md, and a rule of the chart.
type alert struct{ Name, Summary, Expression, WhatToDo string }

func TestTheChartHasTheDocumentedAlerts(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## What to watch\n")
	var documented []alert
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)`: (.+?) \\| `(.+?)` \\| (.+) \\|$").FindAllStringSubmatch(section, -1) {
		documented = append(documented, alert{row[1], row[2], row[3], strings.ReplaceAll(row[4], "`", "")})
	}
	if rows := strings.Count(section, "\n| ") - 2; len(documented) != rows || rows < 1 {
		t.Fatalf("the table has %d rows, and %d of them are read as alerts", rows, len(documented))
	}

	rule := helmed(t, map[string]any{"prometheusRule": enabled()})["PrometheusRule/trainyard-operator"].(*unstructured.Unstructured)
	groups, _, _ := unstructured.NestedSlice(rule.Object, "spec", "groups")
	var installed []alert
	for _, group := range groups {
		rules, _, _ := unstructured.NestedSlice(group.(map[string]any), "rules")
		for _, r := range rules {
			field := func(path ...string) string {
				value, _, _ := unstructured.NestedString(r.(map[string]any), path...)
				return value
			}
			installed = append(installed, alert{field("alert"), field("annotations", "summary"), field("expr"), field("annotations", "description")})
		}
	}
	if diff := cmp.Diff(documented, installed); diff != "" {
		t.Errorf("alerts (-docs/operations.md +chart):\n%s", diff)
	}
}

// TestAlerts lets Prometheus judge the alerts: each fires in a case of testdata/alerts.yaml, and not in the others.
func TestAlerts(t *testing.T) {
	const rules = "../charts/trainyard/alerts/trainyard.yaml"
	promtool.Run(t, ".", "check", "rules", rules)

	tests, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(text), -1) {
		if !regexp.MustCompile(`alertname: ` + alert[1] + `, .*exp_alerts`).Match(tests) {
			t.Errorf("no test lets %s fire", alert[1])
		}
	}
	dir := t.TempDir()
	silent := regexp.MustCompile(`(?m)^ +(annotations|summary|description):.*\n`).ReplaceAll(text, nil) // the tests would have to repeat them
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "rules.yaml"), silent, 0o600), os.WriteFile(filepath.Join(dir, "tests.yaml"), tests, 0o600)); err != nil {
		t.Fatal(err)
	}
	promtool.Run(t, dir, "test", "rules", "tests.yaml")
}
