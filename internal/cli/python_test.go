package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// The blocks of docs/python.md do what the page says. They are run as one program, with the test as trainyard.
func TestThePageForPython(t *testing.T) {
	t.Parallel()
	d, dir := newDesk(t), t.TempDir()
	page, err := os.ReadFile("../../docs/python.md")
	if err != nil {
		t.Fatal(err)
	}
	program := ""
	for _, block := range regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		program += block[1] + "\n"
	}
	write(t, filepath.Join(dir, "page.py"), program)
	config, err := clientcmd.LoadFromFile(local.Shared(t).Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Contexts {
		c.Namespace = d.Namespace
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Without flags run would start a cluster of its own.
	script := fmt.Sprintf("#!/bin/bash\nverb=$1; shift\nexec -a %s %s \"$verb\" --kubeconfig=%s --image=none \"$@\"\n", trainyardName, self, kubeconfig)
	if err := os.WriteFile(filepath.Join(dir, "trainyard"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/bin/python3", filepath.Join(dir, "page.py"))
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig)
	d.expect(finish(d, cmd), 0, `^worker-0 \| rank 0$`, `^worker-1 \| rank 1$`, `^Succeeded 1 0$`,
		`^Succeeded PyTorchJob from-python is successfully completed`, `^from-python-worker-0 rank 0 of 2$`, `^from-python-worker-1 rank 1 of 2$`)
}
