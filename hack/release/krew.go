package main

import (
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// publicationPlace stands for the address at which the files are published.
const publicationPlace = "https://PLACE-OF-PUBLICATION"

// writeKrew writes the manifest by which krew, kubectl's plugin manager, finds the archives.
func writeKrew(s source, archives []archive, out string) error {
	var platforms []any
	for _, a := range archives {
		bin := a.name
		if a.os == "windows" {
			bin += ".exe"
		}
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": a.os, "arch": a.arch}},
			"uri":      publicationPlace + "/" + s.version + "/" + a.file, "sha256": a.sum, "bin": bin,
			"files": []any{map[string]any{"from": bin, "to": "."}, map[string]any{"from": "LICENSE", "to": "."}},
		})
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]any{"name": "trainyard"},
		"spec": map[string]any{
			"version": "v" + s.number(), "homepage": publicationPlace, "platforms": platforms,
			"shortDescription": "Run distributed training jobs",
			"description":      "Runs PyTorchJobs, TFJobs, TrainJobs and others with their run policies, and shows why a job is as it is.",
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "trainyard-krew.yaml"), text, 0o644)
}
