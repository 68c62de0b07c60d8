package procrun

import (
	"fmt"
	"os"
	"strings"

	"github.com/trainyard/trainyard/internal/procrun/pid1"
)

// CheckKernel refuses a kernel that cannot run containers as this package does.
func CheckKernel() error {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return checkKernel(pid1.CopiesMounts(), strings.TrimSpace(string(release)))
}

func checkKernel(copiesMounts bool, release string) error {
	if copiesMounts {
		return nil
	}
	return fmt.Errorf("the local cluster needs Linux 5.2 or newer, and this is %s; in a container, its seccomp profile must allow open_tree and move_mount", release)
}
