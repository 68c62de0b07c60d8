package local

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Source is the folder of another project's module that a go.mod below internal/testing names. It is downloaded if it is not there.
func Source(t testing.TB, below, module string) string {
	t.Helper()
	var found struct{ Dir string }
	if err := json.Unmarshal([]byte(command(t, "-C", "../testing/"+below, "mod", "download", "-json", module)), &found); err != nil {
		t.Fatalf("finding the source of %s: %v", module, err)
	}
	return found.Dir
}

// Tool is a program that a go.mod below internal/testing names as a tool. It is built if it is not there. Only this user may run it.
func Tool(t testing.TB, below, name string) string {
	t.Helper()
	return strings.TrimSpace(command(t, "-C", "../testing/"+below, "tool", "-n", name))
}

// Build builds a program of another project's module, with the dependencies that the module itself names. Every user may run it: pods of other
// projects often do not run as root.
func Build(t testing.TB, source, folder string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "trainyard-test-program-")
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, filepath.Base(folder))
	command(t, "-C", source, "build", "-o", program, "./"+folder)
	return program
}

// command runs go, which must succeed, and returns what it prints.
func command(t testing.TB, args ...string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			output = exit.Stderr
		}
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}
