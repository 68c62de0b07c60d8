//go:build ignore

// Staticcheck as a tool of `go vet`, which analyses one package at a time and keeps the results in the build cache. `make lint` builds
// and runs it. The build tag keeps it out of `go build ./...`, because its dependencies are in go.tools.mod.
//
// The staticcheck command analyses all dependencies first, which is all of Kubernetes. This tool skips them. So it does not find uses
// of what a dependency calls deprecated (SA1019). Unused code (U1000) is found by golangci-lint.
package main

import (
	"encoding/json"
	"log"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
)

func main() {
	if skipDependency(os.Args[len(os.Args)-1]) {
		return
	}
	var analyzers []*analysis.Analyzer
	for _, group := range [][]*lint.Analyzer{simple.Analyzers, staticcheck.Analyzers, stylecheck.Analyzers} {
		for _, a := range group {
			if !a.Doc.NonDefault {
				analyzers = append(analyzers, named(a.Analyzer))
			}
		}
	}
	unitchecker.Main(analyzers...)
}

// named adds the name of the check to its messages, as the staticcheck command does.
func named(a *analysis.Analyzer) *analysis.Analyzer {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		report := pass.Report
		pass.Report = func(d analysis.Diagnostic) {
			d.Message += " (" + a.Name + ")"
			report(d)
		}
		return run(pass)
	}
	return a
}

// skipDependency reports whether `go vet` asks only for facts about a package, because another one imports it. There are none then.
func skipDependency(config string) bool {
	if !strings.HasSuffix(config, ".cfg") {
		return false
	}
	data, err := os.ReadFile(config)
	if err != nil {
		log.Fatal(err)
	}
	var unit unitchecker.Config
	if err := json.Unmarshal(data, &unit); err != nil {
		log.Fatal(err)
	}
	if !unit.VetxOnly {
		return false
	}
	if err := os.WriteFile(unit.VetxOutput, nil, 0o666); err != nil {
		log.Fatal(err)
	}
	return true
}
