package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// writeChart packages the chart with the version of the release.
func writeChart(s source, out string) error {
	root := filepath.Join(s.dir, "charts", "trainyard")
	var files []file
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(filepath.Dir(root), name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if filepath.Base(name) == "Chart.yaml" {
			content = versioned(content, s)
		}
		files = append(files, file{filepath.ToSlash(inside), 0o644, content})
		return err
	})
	if err != nil {
		return err
	}
	data, err := compressed(s.time, files...)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, fmt.Sprintf("trainyard-chart_%s.tgz", s.number())), data, 0o644)
}

var semantic = regexp.MustCompile(`^\d+\.\d+\.\d+`)

// versioned sets both versions of a chart. Helm wants a semantic version; a commit that has no tag gets 0.0.0 with its name behind it.
func versioned(chart []byte, s source) []byte {
	version := s.number()
	if !semantic.MatchString(version) {
		version = "0.0.0-" + version
	}
	chart = regexp.MustCompile(`(?m)^version:.*$`).ReplaceAll(chart, []byte("version: "+version))
	return regexp.MustCompile(`(?m)^appVersion:.*$`).ReplaceAll(chart, fmt.Appendf(nil, "appVersion: %q", s.version))
}
