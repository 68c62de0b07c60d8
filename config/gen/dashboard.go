package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// dashboardFile is the dashboard for Grafana, which the chart installs.
const dashboardFile = "../charts/trainyard/dashboards/trainyard.json"

// panel is a plot of the dashboard: queries of Prometheus with the names of their lines.
type panel struct {
	title, unit string
	queries     [][2]string
}

// selected is what the variable of the dashboard selects.
const selected = `job_namespace=~"$namespace"`

// quantiles are the queries of a histogram.
func quantiles(metric string) [][2]string {
	query := `histogram_quantile(%s, sum by (le) (rate(` + metric + `_bucket{` + selected + `}[15m])))`
	return [][2]string{{fmt.Sprintf(query, "0.5"), "half of them"}, {fmt.Sprintf(query, "0.99"), "99 %"}}
}

var panels = []panel{
	{"Jobs by state", "short", [][2]string{{`sum by (state) (trainyard_jobs{` + selected + `})`, "{{state}}"}}},
	{"Jobs that ended, per hour", "short", [][2]string{{`sum by (result) (increase(trainyard_job_duration_seconds_count{` + selected + `}[1h]))`, "{{result}}"}}},
	{"How long a job has been waiting, at most", "s", [][2]string{{`max by (job_namespace) (trainyard_oldest_waiting_job_seconds{` + selected + `})`, "{{job_namespace}}"}}},
	{"How long jobs take", "s", quantiles("trainyard_job_duration_seconds")},
	{"From the creation until the first attempt", "s", quantiles("trainyard_job_queue_seconds")},
	{"From the start of an attempt until all replicas have nodes", "s", quantiles("trainyard_job_schedule_seconds")},
	{"From the start until all replicas run", "s", quantiles("trainyard_job_time_to_running_seconds")},
	{"From a failure until all replicas run again", "s", quantiles("trainyard_job_time_to_recover_seconds")},
	{"GPUs by use, as the mean of a day", "short", [][2]string{{`sum by (use) (rate(trainyard_gpu_seconds_total{` + selected + `}[1d]))`, "{{use}}"}}},
	{"Restarts per hour", "short", [][2]string{{`sum by (framework) (increase(training_operator_jobs_restarted_total{` + selected + `}[1h]))`, "{{framework}}"}}},
	{"Failures of replicas, per hour", "short", [][2]string{{`sum by (class, reason) (increase(trainyard_job_failures_total{` + selected + `}[1h]))`, "{{class}}: {{reason}}"}}},
	{"Pods that were force-deleted, per hour", "short", [][2]string{{`sum by (node_state) (increase(trainyard_pods_force_deleted_total{` + selected + `}[1h]))`, "{{node_state}}"}}},
	{"How late deadlines are acted on", "s", quantiles("trainyard_job_deadline_lateness_seconds")},
	{"Errors of the operator, a second", "ops", [][2]string{{`sum by (controller) (rate(controller_runtime_reconcile_errors_total[15m]))`, "{{controller}}"}}},
	{"How late the recorder records logs, at most", "s", [][2]string{{`max(trainyard_recorder_lag_seconds)`, "seconds"}}},
	{"What the recorder could not record, per hour", "short", [][2]string{
		{`sum(increase(trainyard_recorder_gaps_total[1h]))`, "gaps in logs"}, {`sum(increase(trainyard_recorder_write_errors_total[1h]))`, "errors that are retried"},
	}},
	{"Jobs that wait for the operator", "short", [][2]string{{`sum by (name) (workqueue_depth)`, "{{name}}"}}},
}

// writeDashboard writes the dashboard, two panels in a row.
func writeDashboard() error {
	type object map[string]any
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var all []object
	for i, p := range panels {
		var targets []object
		for j, q := range p.queries {
			targets = append(targets, object{"refId": string(rune('A' + j)), "expr": q[0], "legendFormat": q[1], "datasource": source})
		}
		all = append(all, object{
			"id": i + 1, "title": p.title, "type": "timeseries", "datasource": source, "targets": targets, "gridPos": object{"x": i % 2 * 12, "y": i / 2 * 8, "w": 12, "h": 8},
			"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
		})
	}
	variables := []object{
		{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
		{"name": "namespace", "type": "query", "datasource": source, "query": "label_values(training_operator_jobs_created_total, job_namespace)", "label": "Namespace", "includeAll": true, "allValue": ".*",
			"multi": true, "refresh": 2, "current": object{"text": "All", "value": "$__all"}},
	}
	text, err := json.MarshalIndent(object{
		"uid": "trainyard", "title": "Trainyard", "tags": []string{"training"}, "schemaVersion": 39, "editable": true, "refresh": "1m", "time": object{"from": "now-24h", "to": "now"},
		"templating": object{"list": variables}, "panels": all,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(dashboardFile, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the dashboard: %w", err)
	}
	return nil
}
