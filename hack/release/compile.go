package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// program is a compiled program of one platform.
type program struct {
	name, os, arch, file string
}

// Programs.
const (
	commandLine = "trainyard"
	operator    = "trainyard-operator"
	agent       = "trainyard-agent"
	recorder    = "trainyard-recorder"
)

// platforms are where each program runs. The local cluster is a part of the command line on Linux only.
var platforms = []program{
	{name: commandLine, os: "linux", arch: "amd64"},
	{name: commandLine, os: "linux", arch: "arm64"},
	{name: commandLine, os: "darwin", arch: "amd64"},
	{name: commandLine, os: "darwin", arch: "arm64"},
	{name: commandLine, os: "windows", arch: "amd64"},
	{name: operator, os: "linux", arch: "amd64"},
	{name: operator, os: "linux", arch: "arm64"},
	{name: agent, os: "linux", arch: "amd64"},
	{name: agent, os: "linux", arch: "arm64"},
	{name: recorder, os: "linux", arch: "amd64"},
	{name: recorder, os: "linux", arch: "arm64"},
}

// tags are those of `make build`: without this one the linker keeps all symbols for plugins of kustomize, which do not exist.
const tags = "kustomize_disable_go_plugin_support"

// compile builds all programs into a directory. They need no C libraries, and contain no path of this machine.
func compile(ctx context.Context, s source, dir string) ([]program, error) {
	flags := fmt.Sprintf("-s -w -buildid= -X k8s.io/component-base/version.gitVersion=%s -X github.com/trainyard/trainyard/internal/cli.Version=%s", s.kubernetes, s.version)
	var built []program
	for _, p := range platforms {
		fmt.Printf("building %s for %s/%s\n", p.name, p.os, p.arch)
		p.file = filepath.Join(dir, p.name+"_"+p.os+"_"+p.arch)
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", flags, "-o", p.file, "./cmd/"+p.name)
		cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOOS="+p.os, "GOARCH="+p.arch)
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("building %s for %s/%s: %w", p.name, p.os, p.arch, err)
		}
		built = append(built, p)
	}
	return built, nil
}
