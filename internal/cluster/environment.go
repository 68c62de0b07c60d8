package cluster

import (
	"slices"
	"strings"
)

// inherited names what containers take over from the person's shell: what finds their programs, their Python environment and
// their language. A name that ends in an underscore stands for all that begin with it. All else is the pod's to say.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_", "TZ", "VIRTUAL_ENV", "CONDA_", "PYENV_", "LD_LIBRARY_PATH",
}

// Inherited is the part of an environment that containers inherit.
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
	return kept
}
