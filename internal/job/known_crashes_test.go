package job

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The end of what torchrun of torch 1.13 prints on Python 3.11.
const torchrunCrash = `    self._pcontext = start_processes(
                     ^^^^^^^^^^^^^^^^
  File "/usr/lib/python3/dist-packages/torch/distributed/elastic/multiprocessing/__init__.py", line 207, in start_processes
    redirs = to_map(redirects, nprocs)
             ^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/usr/lib/python3/dist-packages/torch/distributed/elastic/multiprocessing/api.py", line 162, in to_map
    map[i] = val_or_map.get(i, Std.NONE)
             ^^^^^^^^^^^^^^
AttributeError: 'NoneType' object has no attribute 'get'
`

func TestAKnownCrashSaysWhatToDo(t *testing.T) {
	const do = "torchrun of torch 1 crashes on Python 3.11: set PET_REDIRECTS=1 and PET_TEE=1, or use a newer torch"
	for _, row := range []struct{ sentence, log, want string }{
		{"torchrun's own crash", torchrunCrash, ": " + do},
		{"the same error in the training", "  File \"train.py\", line 3, in to_map\nAttributeError: 'NoneType' object has no attribute 'get'\n",
			"; it last said: AttributeError: 'NoneType' object has no attribute 'get'"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			f := newFailure(&corev1.Pod{}, Replica{}, Application, &corev1.ContainerStateTerminated{ExitCode: 1, Message: row.log})
			if got := f.lastLine(); got != row.want {
				t.Errorf("it says %q, want %q", got, row.want)
			}
			if !strings.Contains(f.Message, "AttributeError") {
				t.Errorf("the log is lost: %s", f.Message)
			}
		})
	}
}
