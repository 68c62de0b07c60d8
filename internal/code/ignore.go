package code

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// IgnoreFile names, in a directory, what is left out of its bundle. Its lines are patterns like those of .gitignore.
const IgnoreFile = ".trainyardignore"

// alwaysIgnored are left out unless a line of the file takes them back with "!": what other tools keep beside the code, and files in
// which people keep passwords, because everyone who may read the namespace can read the bundle.
var alwaysIgnored = []string{
	".git/", ".hg/", ".svn/", "__pycache__/", "*.pyc", ".venv/", "venv/", ".mypy_cache/", ".pytest_cache/", ".ruff_cache/", ".ipynb_checkpoints/",
	"node_modules/", ".DS_Store", ".env",
}

// patterns decide what is left out. The last pattern that matches decides.
type patterns []pattern

type pattern struct {
	text string
	// back says that the pattern takes something back, dirs that it is about directories only, rooted that it is a whole path.
	back, dirs, rooted bool
}

// readPatterns reads the patterns of a directory.
func readPatterns(dir string) (patterns, error) {
	text, err := os.ReadFile(filepath.Join(dir, IgnoreFile))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var all patterns
	for _, line := range append(append([]string{}, alwaysIgnored...), strings.Split(string(text), "\n")...) {
		if p, ok := parse(line); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

func parse(line string) (pattern, bool) {
	line = strings.TrimSpace(line)
	if line == "" || strings.HasPrefix(line, "#") {
		return pattern{}, false
	}
	var p pattern
	line, p.back = strings.CutPrefix(line, "!")
	line, p.dirs = strings.CutSuffix(line, "/")
	line = strings.TrimPrefix(line, "**/")
	p.rooted = strings.Contains(line, "/")
	p.text = strings.TrimPrefix(line, "/")
	return p, p.text != ""
}

// ignored reports whether a path is left out. The path is relative, with slashes.
func (all patterns) ignored(name string, isDir bool) bool {
	out := false
	for _, p := range all {
		if p.dirs && !isDir {
			continue
		}
		subject := path.Base(name)
		if p.rooted {
			subject = name
		}
		if matched, err := path.Match(p.text, subject); matched && err == nil {
			out = !p.back
		}
	}
	return out
}
