package enclave

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

// Machines with these settings cannot be had in a test, but for the first, which TestRefusalWhereNamespacesAreForbidden is about.
func TestRemedies(t *testing.T) {
	for _, row := range []struct {
		name     string
		settings map[string]string
		want     string
	}{
		{"Red Hat", map[string]string{"user/max_user_namespaces": "0"}, "as root, `sysctl user.max_user_namespaces=15000` allows them"},
		{"Debian", map[string]string{"user/max_user_namespaces": "63000", "kernel/unprivileged_userns_clone": "0"},
			"as root, `sysctl kernel.unprivileged_userns_clone=1` allows them"},
		{"Ubuntu", map[string]string{"kernel/unprivileged_userns_clone": "1", "kernel/apparmor_restrict_unprivileged_userns": "1"},
			"as root, `sysctl kernel.apparmor_restrict_unprivileged_userns=0` allows them, or an AppArmor profile with `userns,` for this program"},
		{"a container", nil, "run as root, or allow user namespaces; in a container start it with --privileged"},
	} {
		if got := remedy(func(name string) string { return row.settings[name] }); got != row.want {
			t.Errorf("%s: %s", row.name, got)
		}
	}
	if err := unavailable(syscall.EPERM); !errors.Is(err, ErrUnavailable) || !errors.Is(err, syscall.EPERM) || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is %v", err)
	}
}
