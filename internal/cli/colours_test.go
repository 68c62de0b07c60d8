package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// Each replica has a colour of its own on a terminal, unless the person wants none.
func TestReplicasHaveTheirOwnColours(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	there := []string{"--namespace=" + d.Namespace, "--kubeconfig=" + local.Shared(t).Kubeconfig()}
	run := append(append([]string{"run", "--image=none", "--name=demo", "--nodes=2"}, there...), "--", "sh", "-c", "echo one; echo two")
	term := openTerminal(t, run...)
	term.ends(0)
	term.sees(`^demo succeeded`)
	colours := map[string]string{}
	prefixed := regexp.MustCompile(`(?m)^\x1b\[(\d+)m(worker-[01])\x1b\[(?:0|39)m \| (?:one|two)$`)
	lines := prefixed.FindAllStringSubmatch(term.coloured(), -1)
	for _, line := range lines {
		if had := colours[line[2]]; had != "" && had != line[1] {
			t.Errorf("%s changes its colour from %s to %s", line[2], had, line[1])
		}
		colours[line[2]] = line[1]
	}
	if len(lines) != 4 || colours["worker-0"] == colours["worker-1"] {
		t.Errorf("%d coloured lines, of colours %v:\n%q", len(lines), colours, term.coloured())
	}

	plain := openTerminalWith(t, "NO_COLOR=1", append([]string{"logs", "demo"}, there...)...)
	plain.ends(0)
	plain.sees(`^worker-0 \| two$`, `^worker-1 \| two$`)
	for where, shown := range map[string]string{"with NO_COLOR": plain.coloured(), "without a terminal": d.types("logs", "demo").Stdout} {
		if strings.Contains(shown, "\x1b") || strings.Count(shown, " | ") != 4 {
			t.Errorf("%s there is %q", where, shown)
		}
	}
}
