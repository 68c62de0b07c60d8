package layout

import (
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// systems are those other than Linux for which the command line is built.
var systems = []string{"darwin", "windows"}

// TestOtherSystemsHaveNoLocalCluster checks what the command line links on macOS and Windows.
func TestOtherSystemsHaveNoLocalCluster(t *testing.T) {
	for _, system := range systems {
		for _, dependency := range dependencies(t, "./cmd/trainyard", "GOOS="+system) {
			if hasPrefix(dependency, []string{"k8s.io/kubernetes/cmd", "go.etcd.io/etcd/server", module + "internal/cluster", module + "internal/procrun", module + "internal/enclave"}) {
				t.Errorf("on %s it depends on %s", system, dependency)
			}
		}
	}
}

// TestNothingIsMissingOnOtherSystems checks that whatever our packages use exists on macOS and Windows: in our files for that system, and in
// Go's library there. A compiler would find more, but it needs minutes: it compiles a thousand packages of others for each system.
func TestNothingIsMissingOnOtherSystems(t *testing.T) {
	before := build.Default
	defer func() { build.Default = before }()
	for _, system := range systems {
		build.Default.GOOS, build.Default.CgoEnabled = system, false
		c := &checker{fset: token.NewFileSet(), packages: map[string]*types.Package{}}
		c.library = importer.ForCompiler(c.fset, "source", nil)
		checked := 0
		for _, dependency := range dependencies(t, "./cmd/trainyard", "GOOS="+system, "CGO_ENABLED=0") {
			if strings.HasPrefix(dependency, module) {
				checked++
				if _, err := c.Import(dependency); err != nil {
					t.Errorf("%s on %s: %v", dependency, system, err)
				}
			}
		}
		for _, err := range c.missing {
			t.Errorf("on %s: %v", system, err)
		}
		if checked < 20 {
			t.Errorf("on %s only %d packages were checked", system, checked)
		}
	}
}

// checker checks the types of our packages against Go's library. What is imported from elsewhere is unknown, and so is every type that is
// made of it. go/types reports no errors about those.
type checker struct {
	fset     *token.FileSet
	library  types.Importer
	packages map[string]*types.Package
	// missing are the names that are used and not declared, or declared twice.
	missing []error
}

var (
	errElsewhere = errors.New("a package from elsewhere")
	version      = regexp.MustCompile(`([^/]+)/v\d+"$`)
	aboutNames   = regexp.MustCompile(`: (?:undefined: (\S+)$|\S+ redeclared)`)
)

func (c *checker) Import(path string) (*types.Package, error) {
	first, _, _ := strings.Cut(path, "/")
	switch {
	case c.packages[path] != nil:
		return c.packages[path], nil
	case !strings.Contains(first, "."):
		return c.library.Import(path)
	case !strings.HasPrefix(path, module):
		return nil, errElsewhere
	}
	listed, err := build.Default.ImportDir(filepath.Join("../../..", strings.TrimPrefix(path, module)), 0)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	versioned := map[string]bool{} // go/types takes klog/v2 for a package v2, and reports klog
	for _, name := range listed.GoFiles {
		file, err := parser.ParseFile(c.fset, filepath.Join(listed.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
		for _, spec := range file.Imports {
			if match := version.FindStringSubmatch(spec.Path.Value); match != nil {
				versioned[match[1]] = true
			}
		}
	}
	config := types.Config{Importer: c, Error: func(err error) {
		if match := aboutNames.FindStringSubmatch(err.Error()); match != nil && !versioned[match[1]] {
			c.missing = append(c.missing, err)
		}
	}}
	c.packages[path], _ = config.Check(path, c.fset, files, nil)
	return c.packages[path], nil
}
