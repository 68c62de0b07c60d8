package cluster

import (
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/procrun"
)

// inherited names what containers take over from the person's shell: what finds their programs and libraries, their Python
// environment, environment modules, their language, and the certificates and proxies by which they reach the network. A name that
// ends in an underscore stands for all that begin with it. All else is the pod's to say.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_", "TZ",
	"VIRTUAL_ENV", "CONDA_", "PYENV_", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE",
	"LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CUDA_HOME", "CUDA_PATH",
	"MODULEPATH", "MODULESHOME", "LOADEDMODULES", "_LMFILES_", "LMOD_", "MODULES_",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
}

// FromShell is what a job takes along of a shell: its containers then inherit from that one, and not from the shell that started the
// cluster. Who the person is stays as it is.
func FromShell(environment []string) []string {
	taken := slices.DeleteFunc(Inherited(environment), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(procrun.Identity, name)
	})
	return append(taken, procrun.OwnEnvironment+"=1")
}

// Inherited is the part of an environment that containers inherit, as it is right for them.
func Inherited(environment []string) []string {
	var kept []string
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		if slices.ContainsFunc(inherited, func(i string) bool {
			return name == i || strings.HasSuffix(i, "_") && strings.HasPrefix(name, i)
		}) {
			kept = append(kept, variable)
		}
	}
	return append(kept, podProxies(environment)...)
}
