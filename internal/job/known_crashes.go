package job

import (
	"slices"
	"strings"
)

// knownCrashes are failures that are not the training's own and that no retry cures: what the last lines of the log have, and what to do.
var knownCrashes = []struct {
	marks []string
	do    string
}{
	{ // its default for --redirects and --tee is an enum flag, which Python 3.11 no longer takes for an instance of its class
		[]string{"/torch/distributed/elastic/multiprocessing/api.py", "in to_map", "AttributeError: 'NoneType' object has no attribute 'get'"},
		"torchrun of torch 1 crashes on Python 3.11: set PET_REDIRECTS=1 and PET_TEE=1, or use a newer torch",
	},
}

// explained is the end of a log, with a line that says what to do if the crash is known.
func explained(log string) string {
	if do := remedyOf(log); do != "" {
		return strings.TrimRight(log, "\n") + "\n" + do
	}
	return log
}

func remedyOf(log string) string {
	for _, crash := range knownCrashes {
		if !slices.ContainsFunc(crash.marks, func(mark string) bool { return !strings.Contains(log, mark) }) {
			return crash.do
		}
	}
	return ""
}
