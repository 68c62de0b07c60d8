package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// terminal is a person's, by tmux: what is typed goes to the foreground as keys do, and what is seen is what the screen shows.
type terminal struct {
	*testing.T
	socket, code string
}

// openTerminal runs trainyard with these arguments in a terminal of 30 lines. A shell notes its exit code in a file: tmux itself
// loses it now and then.
func openTerminal(t *testing.T, args ...string) terminal {
	t.Helper()
	return openTerminalWith(t, "NO_COLOR=", args...)
}

// openTerminalWith runs it with a variable.
func openTerminalWith(t *testing.T, variable string, args ...string) terminal {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	named := filepath.Join(dir, trainyardName) // a shell starts programs by their path alone, and ours goes by its name
	if err := os.Symlink(executable, named); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(dir, "settings")
	write(t, settings, "set-option -g remain-on-exit on\n")
	term := terminal{t, filepath.Join(dir, "tmux"), filepath.Join(dir, "code")}
	term.tmux(append([]string{"-f", settings, "new-session", "-d", "-e", variable, "-x", "120", "-y", "30", "-s", "desk", "--",
		"sh", "-c", `trap : INT; "$@"; echo $? > "$0.new" && mv "$0.new" "$0"`, term.code, named}, args...)...)
	t.Cleanup(func() { term.tmux("kill-server") })
	return term
}

func (t terminal) tmux(args ...string) string {
	t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", t.socket}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// press sends a key.
func (t terminal) press(key string) {
	t.Helper()
	t.tmux("send-keys", "-t", "desk", key)
}

// sees waits until the screen, or what has scrolled off it, shows all patterns.
func (t terminal) sees(patterns ...string) {
	t.Helper()
	(&local.World{TB: t.T}).Eventually("the screen", func() error {
		shown := t.tmux("capture-pane", "-p", "-t", "desk", "-S", "-")
		for _, pattern := range patterns {
			if !regexp.MustCompile(`(?m)` + pattern).MatchString(shown) {
				return fmt.Errorf("no %q on it:\n%s", pattern, shown)
			}
		}
		return nil
	})
}

// coloured is the screen with its colours.
func (t terminal) coloured() string {
	t.Helper()
	return t.tmux("capture-pane", "-e", "-p", "-t", "desk", "-S", "-")
}

// ends waits for the program's end and checks its exit code.
func (t terminal) ends(code int) {
	t.Helper()
	var got []byte
	(&local.World{TB: t.T}).Eventually("the program's end", func() (err error) {
		if got, err = os.ReadFile(t.code); err != nil {
			return fmt.Errorf("%w; the screen:\n%s", err, t.tmux("capture-pane", "-p", "-t", "desk", "-S", "-"))
		}
		return nil
	})
	if strings.TrimSpace(string(got)) != strconv.Itoa(code) {
		t.Errorf("it ends with code %s, want %d", got, code)
	}
}

// The run has its own cluster here. The terminal sends Ctrl-C to all its processes, and it must not stop the cluster before the job.
func TestCtrlCOnceStopsTheJobGracefully(t *testing.T) {
	t.Parallel()
	term := openTerminal(t, "run", "--data-dir="+t.TempDir(), "--name=patient", "--deadline=1h", "--retries=2", "--",
		"sh", "-c", `trap 'echo bye; exit 0' TERM; echo ready; while true; do sleep 0.1; done`)
	term.sees(`^worker-0 \| ready$`, `^patient · running · 1/1 ready · attempt 1 of 3 · \S+ · \S+ to the deadline$`)
	term.press("C-c")
	term.ends(130)
	term.sees(`^» stopping patient; Ctrl-C again kills it\.$`, `^worker-0 \| bye$`, `^» patient is stopped\.$`)
}

// The job ignores SIGTERM, and its grace period is an hour.
func TestCtrlCTwiceStopsTheJobAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, strings.Replace(job("stubborn", 1, "trap '' TERM; echo ready; while true; do sleep 0.1; done"),
		"terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 3600", 1))
	term := openTerminal(t, "run", "-f", file, "--namespace="+d.Namespace, "--kubeconfig="+local.Shared(t).Kubeconfig())
	term.sees(`^worker-0 \| ready$`)
	term.press("C-c")
	term.sees(`^stopping · Ctrl-C again kills it$`)
	term.press("C-c")
	term.ends(130)
	d.Eventually("nothing is left", func() error {
		if o := d.types("get", "stubborn"); o.Code != 1 {
			return fmt.Errorf("the job is there:\n%s", o.Stdout)
		}
		return nil
	})
	if pods := d.Kubectl("get", "pods", "-o", "name"); pods != "" {
		t.Errorf("left: %s", pods)
	}
}

// A progress bar moves in the live line. It is printed when another line comes, and when it is complete. Without a terminal the same
// lines are printed when they are complete, even if the connection breaks during a line.
func TestProgressIsSeenAsItMoves(t *testing.T) {
	t.Parallel()
	d, wire, stage := newDesk(t), newWire(t, local.Shared(t).Kubeconfig()), stage(t.TempDir())
	script := strings.Join([]string{
		"echo hello", stage.until("begin"), `printf '\r10%%' >&2`, stage.until("more"), `printf '\r20%%\r\033[31m50%%' >&2`, stage.until("word"), "echo between",
		stage.until("rest"), `printf '\r90%%' >&2`, stage.until("end"), `printf '\r100%%\nno newline' >&2`,
	}, "; ")
	term := openTerminal(t, "run", "--image=none", "--name=bar", "--namespace="+d.Namespace, "--kubeconfig="+local.Shared(t).Kubeconfig(), "--", "sh", "-c", script)
	term.sees(`^worker-0 \| hello$`)
	follower := d.follows(wire, "bar")
	d.Eventually("the follower's first line", func() error { return found(follower.said(), "worker-0 | hello") })
	stage.give(t, "begin")
	term.sees(`^bar · running · .* · worker-0: 10%$`)
	wire.Cut()
	stage.give(t, "more")
	term.sees(`^bar · running · .* · worker-0: 50%$`)
	d.expect(d.types("logs", "bar"), 0, `\Aworker-0 \| hello\nworker-0 \| \x1b\[31m50%\n\z`)
	stage.give(t, "word")
	term.sees(`^worker-0 \| between$`, `^bar · running · .*s$`)
	wire.Mend()
	d.Eventually("what the cut kept from the follower", func() error { return found(follower.said(), "worker-0 | between") })
	stage.give(t, "rest")
	term.sees(`^bar · running · .* · worker-0: 90%$`)
	stage.give(t, "end")
	term.ends(0)
	term.sees(`^worker-0 \| 50%\nworker-0 \| between\nworker-0 \| 100%\nworker-0 \| no newline\n\nbar succeeded`)
	follower.ends(t)
	if got, want := follower.wordsOf("worker-0"), "hello \033[31m50% between 100% no newline"; got != want {
		t.Errorf("`logs -f` says %q, want %q", got, want)
	}
}

// JSON output has no live line, even on a terminal.
func TestJSONHasNoLiveLine(t *testing.T) {
	t.Parallel()
	d, stage := newDesk(t), stage(t.TempDir())
	term := openTerminal(t, "run", "--image=none", "--name=read", "-o=json", "--namespace="+d.Namespace, "--kubeconfig="+local.Shared(t).Kubeconfig(),
		"--", "sh", "-c", stage.until("begin")+"; echo hello; "+stage.until("end"))
	term.sees(`^\{.*"type":"running"`)
	stage.give(t, "begin")
	term.sees(`"text":"hello"`)
	if shown := term.tmux("capture-pane", "-p", "-t", "desk", "-S", "-"); strings.Contains(shown, "read · ") {
		t.Errorf("there is a live line:\n%s", shown)
	}
	stage.give(t, "end")
	term.ends(0)
}
