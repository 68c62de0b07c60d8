// Package promtool lets Prometheus' own tool judge expressions and alerts in tests, and the series that a program exports. hack/setup.sh
// installs promtool from Debian's package of Prometheus.
package promtool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/yaml"
)

// Run runs promtool in a directory, and fails the test if it is not content.
func Run(t testing.TB, dir string, arguments ...string) {
	t.Helper()
	cmd := exec.Command("promtool", arguments...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

// Series are what Prometheus stores of an export, as in name{label="value"}, with a value each.
func Series(exported []*dto.MetricFamily) map[string]float64 {
	all := map[string]float64{}
	for _, family := range exported {
		for _, m := range family.Metric {
			add := func(suffix string, value float64, more ...string) {
				var labels []string
				for _, l := range m.Label {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
				all[family.GetName()+suffix+"{"+strings.Join(append(labels, more...), ",")+"}"] = value
			}
			switch h := m.GetHistogram(); {
			case h != nil:
				for _, bucket := range h.Bucket {
					add("_bucket", float64(bucket.GetCumulativeCount()), fmt.Sprintf("le=%q", fmt.Sprint(bucket.GetUpperBound())))
				}
				add("_bucket", float64(h.GetSampleCount()), `le="+Inf"`)
				add("_count", float64(h.GetSampleCount()))
				add("_sum", h.GetSampleSum())
			default:
				add("", m.GetCounter().GetValue()+m.GetGauge().GetValue()+m.GetUntyped().GetValue())
			}
		}
	}
	return all
}

// Expressions are the queries of a dashboard for Grafana, for all namespaces.
func Expressions(t testing.TB, dashboard []byte) (all []string) {
	t.Helper()
	var content struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(dashboard, &content); err != nil {
		t.Fatal(err)
	}
	for _, panel := range content.Panels {
		for _, target := range panel.Targets {
			all = append(all, strings.ReplaceAll(target.Expr, "$namespace", ".*"))
		}
	}
	return all
}

// Answers checks that each expression has an answer where Prometheus has stored these series for an hour.
func Answers(t testing.TB, series map[string]float64, expressions []string) {
	t.Helper()
	type object map[string]any
	var input, tests []object
	for _, name := range slices.Sorted(maps.Keys(series)) {
		input = append(input, object{"series": name, "values": fmt.Sprintf("%gx60", series[name])})
	}
	for _, expression := range expressions {
		tests = append(tests, object{"expr": "count(" + expression + ") > bool 0", "eval_time": "60m", "exp_samples": []object{{"labels": "{}", "value": 1}}})
	}
	text, err := yaml.Marshal(object{"tests": []object{{"interval": "1m", "input_series": input, "promql_expr_test": tests}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "answers.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	Run(t, dir, "test", "rules", "answers.yaml")
}

// Shape is a series without the values of its labels: its name and the sorted names of its labels.
func Shape(t testing.TB, series string) string {
	t.Helper()
	name, rest, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	var labels []string
	for rest != "" {
		label, after, ok := strings.Cut(rest, `="`)
		end := strings.IndexByte(after, '"')
		if !ok || end < 0 {
			t.Fatalf("%s is not a series", series)
		}
		labels = append(labels, strings.Trim(label, ", "))
		rest = after[end+1:]
	}
	slices.Sort(labels)
	return name + "{" + strings.Join(labels, ",") + "}"
}

// Tested are the series that a file of tests gives to Prometheus.
func Tested(t testing.TB, file string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var content struct {
		Tests []struct {
			Series []struct{ Series string } `json:"input_series"`
		}
	}
	if err := yaml.Unmarshal(bytes.TrimSpace(text), &content); err != nil {
		t.Fatal(err)
	}
	for _, test := range content.Tests {
		for _, s := range test.Series {
			all = append(all, s.Series)
		}
	}
	return all
}
