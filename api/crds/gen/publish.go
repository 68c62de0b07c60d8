package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// chart is where Helm needs the definitions. Helm reads only files inside a chart, so it gets copies.
const chart = "../../charts/trainyard/crds"

// publish lists the definitions for kustomize and copies them into the chart.
func publish(files []string) error {
	if err := os.RemoveAll(chart); err != nil {
		return fmt.Errorf("emptying the chart's definitions: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(chart, filepath.Dir(jobSet)), 0o755); err != nil {
		return fmt.Errorf("creating the directory of the chart's definitions: %w", err)
	}
	for _, file := range append([]string{jobSet}, files...) {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a finished definition: %w", err)
		}
		if err := os.WriteFile(filepath.Join(chart, file), data, 0o644); err != nil {
			return fmt.Errorf("copying %s into the chart: %w", file, err)
		}
	}
	list := header + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - " + strings.Join(files, "\n  - ") + "\n"
	return os.WriteFile("kustomization.yaml", []byte(list), 0o644)
}
