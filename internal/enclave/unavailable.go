package enclave

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrUnavailable says that this machine lets the caller make no enclave.
var ErrUnavailable = errors.New("this machine does not let you create namespaces")

func unavailable(cause error) error {
	return fmt.Errorf("%w: %s (%w)", ErrUnavailable, remedy(setting), cause)
}

// setting reads one of the kernel's settings, empty if this kernel does not have it.
func setting(name string) string {
	content, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(content))
}

// remedy says what allows user namespaces, by which of the machine's settings forbids them.
func remedy(setting func(name string) string) string {
	const sentence = "as root, `sysctl %s` allows them"
	switch {
	case setting("user/max_user_namespaces") == "0": // Red Hat's way, and a hardened machine's
		return fmt.Sprintf(sentence, "user.max_user_namespaces=15000")
	case setting("kernel/unprivileged_userns_clone") == "0": // Debian's
		return fmt.Sprintf(sentence, "kernel.unprivileged_userns_clone=1")
	case setting("kernel/apparmor_restrict_unprivileged_userns") == "1": // Ubuntu's
		return fmt.Sprintf(sentence, "kernel.apparmor_restrict_unprivileged_userns=0") + ", or an AppArmor profile with `userns,` for this program"
	}
	return "run as root, or allow user namespaces; in a container start it with --privileged"
}
