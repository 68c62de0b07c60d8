// Command release builds what a person downloads: archives of the command line for each platform, a Debian package, images of the
// operator and of the command line as OCI archives, the chart, a manifest for krew, a list of contents (SBOM) for each program, and
// checksums. It needs Go and git, and no container engine. The same commit gives the same bytes: times come from the commit, and
// nothing depends on the directory or the machine. `-verify` builds a second time from a fresh copy and compares.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	version := flag.String("version", "", "the version, as in v0.1.0 (default: what git describes)")
	out := flag.String("out", "dist", "the directory to write to; it must not exist or be empty")
	verify := flag.Bool("verify", false, "build again from a fresh copy of the commit, and compare")
	flag.Parse()
	if err := run(ctx, *version, *out, *verify); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, version, out string, verify bool) error {
	source, err := sourceOf(ctx, ".", version)
	if err != nil {
		return err
	}
	if err := build(ctx, source, out); err != nil || !verify {
		return err
	}
	return rebuild(ctx, source, out)
}

// build compiles the programs and puts everything together in out.
func build(ctx context.Context, s source, out string) error {
	if left, err := os.ReadDir(out); err == nil && len(left) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or name another directory with -out", out)
	}
	work, err := os.MkdirTemp("", "trainyard-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // only temporary files
	programs, err := compile(ctx, s, work)
	if err != nil {
		return err
	}
	if err := assemble(s, programs, out); err != nil {
		return err
	}
	files, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			return err
		}
		fmt.Printf("%9.1f MB  %s\n", float64(info.Size())/1e6, filepath.Join(out, f.Name()))
	}
	return nil
}

// source is what is released.
type source struct {
	dir, version string
	// time is the commit's, and the time of all files.
	time time.Time
	// kubernetes is the version of the Kubernetes that is linked in.
	kubernetes string
}

func sourceOf(ctx context.Context, dir, version string) (source, error) {
	seconds, err := output(ctx, dir, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return source{}, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("reading the commit's time: %w", err)
	}
	if version == "" {
		if version, err = output(ctx, dir, "git", "describe", "--tags", "--always", "--dirty"); err != nil {
			return source{}, err
		}
	}
	kubernetes, err := output(ctx, dir, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	return source{dir, version, time.Unix(unix, 0).UTC(), kubernetes}, err
}

// rebuild builds from a fresh copy of the commit in another directory, and compares the checksums of all files.
func rebuild(ctx context.Context, s source, first string) error {
	copied, err := os.MkdirTemp("", "trainyard-again-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(copied) //nolint:errcheck // only temporary files
	s.dir = filepath.Join(copied, "source")
	if _, err := output(ctx, ".", "git", "clone", "--quiet", "--no-local", ".", s.dir); err != nil {
		return err
	}
	again := filepath.Join(copied, "dist")
	if err := build(ctx, s, again); err != nil {
		return err
	}
	was, err := os.ReadFile(filepath.Join(first, sumsFile))
	if err != nil {
		return err
	}
	is, err := os.ReadFile(filepath.Join(again, sumsFile))
	if err != nil {
		return err
	}
	if string(was) != string(is) {
		return errors.New("the second build differs: the tree has changes that are not committed, or the build is not reproducible\n" + string(was) + "\n" + string(is))
	}
	fmt.Println("The second build is equal.")
	return nil
}

// output runs a command and returns what it prints, without the last newline.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return strings.TrimSpace(string(text)), nil
}
