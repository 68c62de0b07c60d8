package procrun

import "testing"

// An old kernel cannot be had in a test.
func TestOldKernelsAreRefused(t *testing.T) {
	if err := CheckKernel(); err != nil {
		t.Errorf("this one: %v", err)
	}
	const want = "the local cluster needs Linux 5.2 or newer, and this is 4.18.0-553.el8; in a container, its seccomp profile must allow open_tree and move_mount"
	if err := checkKernel(false, "4.18.0-553.el8"); err == nil || err.Error() != want {
		t.Errorf("an old one: %v", err)
	}
}
