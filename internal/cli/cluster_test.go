package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// desk is where a person types commands: a namespace of the shared cluster.
type desk struct{ *local.World }

func newDesk(t *testing.T) desk {
	t.Helper()
	return desk{local.New(t)}
}

// command is trainyard with these arguments, about the desk's namespace. What follows "--" is left at the end.
func (d desk) command(args ...string) *exec.Cmd {
	flags := []string{"--namespace=" + d.Namespace, "--kubeconfig=" + d.Kubeconfig()}
	return &exec.Cmd{Path: "/proc/self/exe", Args: append(append([]string{trainyardName, args[0]}, flags...), args[1:]...), Env: os.Environ()}
}

func (d desk) types(args ...string) local.Outcome {
	d.Helper()
	return finish(d, d.command(args...))
}

func finish(d desk, cmd *exec.Cmd) local.Outcome {
	d.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.Fatal(err)
	}
	return local.Outcome{Stdout: out.String(), Stderr: errOut.String(), Code: cmd.ProcessState.ExitCode()}
}

// expect checks an outcome: its exit code, and what must be found in what was printed.
func (d desk) expect(o local.Outcome, code int, patterns ...string) {
	d.Helper()
	complaints := ""
	if o.Code != code {
		complaints = fmt.Sprintf("exit code %d, want %d\n", o.Code, code)
	}
	for _, pattern := range patterns {
		if !regexp.MustCompile(`(?m)` + pattern).MatchString(o.Stdout + o.Stderr) {
			complaints += fmt.Sprintf("no %q in what was printed\n", pattern)
		}
	}
	if complaints != "" {
		d.Errorf("%sstandard output:\n%s\nstandard error:\n%s", complaints, o.Stdout, o.Stderr)
	}
}

// refuses checks that a command said in one sentence why it did not do what was asked, and nothing else.
func (d desk) refuses(o local.Outcome, code int, why string) {
	d.Helper()
	d.expect(o, code)
	if o.Stdout != "" || !regexp.MustCompile(`(?m)\Atrainyard: .*`+why+`.*\n\z`).MatchString(o.Stderr) {
		d.Errorf("not the one sentence %q\nstandard output:\n%s\nstandard error:\n%s", why, o.Stdout, o.Stderr)
	}
}

// run is a job by `trainyard run` from a shell script.
func (d desk) run(script string, flags ...string) *exec.Cmd {
	return d.command(append(append([]string{"run", "--image=none"}, flags...), "--", "sh", "-c", script)...)
}

func TestRunEndsWithTheJobsOutcome(t *testing.T) {
	for _, row := range []struct {
		name, script string
		flags        []string
		code         int
		says         []string
	}{
		{"it succeeds", "echo hello from $RANK of $WORLD_SIZE", []string{"--nodes=2", "--name=good"}, 0,
			[]string{`^worker-0 \| hello from 0 of 2$`, `^worker-1 \| hello from 1 of 2$`, `^good succeeded after \d+s\.$`}},
		{"it fails and its last lines are printed", "echo no data; exit 7", []string{"--name=bad"}, 1,
			[]string{`^bad failed after`, `Worker 0 .* exited with code 7`, `^    \| no data$`}},
		{"its deadline passes", "sleep 600", []string{"--name=late", "--deadline=2s"}, 124,
			[]string{`^late passed its deadline of 2s\.$`, `activeDeadlineSeconds 2`}},
		{"a worker is lost in the middle and all restart", "sleep 1; exit $((RANK * (1 - TRAINYARD_ATTEMPT)))",
			[]string{"--name=again", "--nodes=2", "--retries=1"}, 0,
			[]string{`^» again is restarting: Worker 1 .* exited with code 1; retry 1 of 1\.$`, `^again succeeded after .*, with 2 attempts, 1 retry\.$`, `^  attempt 1 `}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.expect(finish(d, d.run(row.script, row.flags...)), row.code, row.says...)
		})
	}
}

func TestLookingAtJobs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, job("demo", 2, "echo step $RANK; while true; do sleep 0.1; done"))
	d.expect(d.types("submit", "-f", file), 0, "PyTorchJob demo is submitted")
	d.refuses(d.types("submit", "-f", file), 1, "job demo exists and is not finished")
	d.expect(d.types("wait", "demo", "--for=running"), 0, `^demo is running\.$`)
	d.expect(d.types("get"), 0, `^NAME +KIND +STATE +READY +ATTEMPT +RETRIES +AGE`, `^demo +PyTorchJob +Running +2/2 +1 +0/1 `)
	d.expect(d.types("get", "demo", "-o", "yaml"), 0, `^kind: PyTorchJob$`, `^    attempt: 0|^  attempt: 0`)
	d.Eventually("both have written", func() error { return found(d.types("logs", "demo").Stdout, "step 0", "step 1") })
	d.expect(d.types("logs", "demo", "--replica=worker-1"), 0, `\Aworker-1 \| step 1\n\z`)
	d.expect(d.types("why", "demo"), 0, `^demo has been running for \d+s, with 2 of 2 replicas ready\.`)
	d.expect(d.types("events", "demo"), 0, `\+\d+s   demo +is created`, `demo +is running`)
	d.expect(d.types("top"), 0, `^demo +worker-0 +trainyard `)
	d.expect(d.types("wait", "demo", "--timeout=100ms"), 124, "demo is still running after 100ms")
	d.expect(d.types("resume", "demo"), 0, `^demo is not suspended\.$`)
	d.expect(d.types("suspend", "demo"), 0, `^demo is suspended\.$`)
	d.expect(d.types("suspend", "demo"), 0, `^demo is suspended already\.$`)
	d.expect(d.types("wait", "demo", "--for=suspended"), 0)
	d.expect(d.types("why", "demo"), 0, "`trainyard resume demo --kubeconfig .* -n "+d.Namespace+"` starts it again")
	d.Eventually("that is noted", func() error { return found(d.types("events", "demo").Stdout, "is suspended") })
	d.goesForward(d.types("events", "demo").Stdout, "is created", "is suspended")
	d.expect(d.types("resume", "demo"), 0, "demo is resumed")
	d.expect(d.types("scale", "demo", "1"), 0, "demo is scaled to 1")
	d.Eventually("one replica is ready", func() error { return found(d.types("get", "demo").Stdout, "Running", "1/1") })
	d.expect(d.types("delete", "demo"), 0, "demo is deleted")
	d.expect(d.types("get"), 0, "There are no jobs in namespace")
}

// goesForward checks that the times of a timeline never go back, and that these things appear in this order, the first
// of them first of all.
func (d desk) goesForward(timeline string, things ...string) {
	d.Helper()
	last := time.Duration(0)
	for n, line := range strings.Split(strings.TrimSpace(timeline), "\n") {
		at, err := time.ParseDuration(strings.TrimPrefix(strings.Fields(line)[0], "+"))
		if err != nil || at < last {
			d.Errorf("%q goes back: %v", line, err)
		}
		last = at
		if len(things) > 0 && strings.Contains(line, things[0]) {
			things = things[1:]
		} else if n == 0 {
			d.Errorf("it begins with %q", line)
		}
	}
	if len(things) > 0 {
		d.Errorf("no %q, or not where it belongs", things)
	}
	if d.Failed() {
		d.Log(timeline)
	}
}

// A Worker that holds memory and one that computes.
func TestTopShowsWhatReplicasUse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, job("busy", 2, "[ $RANK = 0 ] || while :; do :; done; head -c 64M /dev/zero | tail -c 64M | sleep 600"))
	d.expect(d.types("submit", "-f", file), 0)
	other := newDesk(t)
	other.expect(other.types("submit", "--name=quiet", "--", "sleep", "600"), 0)
	shows := func(o local.Outcome, rows ...string) error {
		for _, row := range rows {
			if !regexp.MustCompile(`(?m)` + row).MatchString(o.Stdout) {
				return fmt.Errorf("no %q in\n%s%s", row, o.Stdout, o.Stderr)
			}
		}
		return nil
	}
	d.Eventually("figures", func() error {
		return shows(d.types("top", "busy"), `^JOB +REPLICA +NODE +CPU +MEMORY +GPUS$`,
			`^busy +worker-0 +trainyard +\d+m +(6[4-9]|[789]\d|\d{3,})Mi +0$`, `^busy +worker-1 +trainyard +[1-9]\d*m +\d+Mi +0$`)
	})
	d.Eventually("figures of both namespaces", func() error {
		return shows(d.types("top", "-A"), `^NAMESPACE +JOB +REPLICA +NODE +CPU +MEMORY +GPUS$`,
			"^"+d.Namespace+` +busy +worker-1 +trainyard +[1-9]\d*m +\d+Mi +0$`, "^"+other.Namespace+` +quiet +worker-0 +trainyard +\d+m +\d+Mi +0$`)
	})
	if o := d.types("top"); shows(o, "busy") != nil || shows(o, "quiet") == nil {
		t.Errorf("of one namespace it shows\n%s", o.Stdout)
	}
}

// Under the name kubectl-trainyard it is a plugin of kubectl, which finds it in PATH.
func TestKubectlsPlugin(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(executable, filepath.Join(bin, pluginName)); err != nil {
		t.Fatal(err)
	}
	kubectl := func(args ...string) local.Outcome {
		cmd := local.CLI(append([]string{"kubectl", "trainyard"}, args...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+local.Shared(t).Kubeconfig(), "PATH="+bin+":"+os.Getenv("PATH"))
		return finish(d, cmd)
	}
	d.expect(kubectl("get", "-n", d.Namespace), 0, "^There are no jobs in namespace "+d.Namespace+`\.$`)
	d.refuses(kubectl("why", "-n", d.Namespace, "nobody"), 1, "there is no such job as nobody")
	d.refuses(kubectl("why"), 2, "no job is named: use `kubectl trainyard why JOB`")
	d.expect(kubectl("run", "--help"), 0, "kubectl trainyard run")
}

func TestWhyAJobDoesNotRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, strings.Replace(job("greedy", 1, "true"), "image: none", "image: none, resources: {limits: {nvidia.com/gpu: 99}}", 1))
	d.expect(d.types("submit", "-f", file), 0)
	d.Eventually("the scheduler's words", func() error {
		return found(d.types("why", "greedy").Stdout, "greedy has been starting for", "Insufficient nvidia.com/gpu", "`trainyard top` shows who uses what")
	})
	d.Kubectl("patch", "pytorchjob", "greedy", "--type=merge", `-p={"spec":{"runPolicy":{"activeDeadlineSeconds":1}}}`)
	d.expect(d.types("wait", "greedy"), 124, `^greedy passed its deadline of 1s\.$`)
	d.expect(d.types("why", "greedy"), 0, `was not running: Worker 0 .* waits: it cannot be scheduled: .*Insufficient nvidia.com/gpu\. Request fewer resources`)
}

// A volume that cannot be mounted shows in nothing but Kubernetes' warnings.
func TestRunSaysWhyAJobDoesNotStart(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, strings.NewReplacer("containers:", "volumes: [{name: data, configMap: {name: late}}]\n          containers:",
		"image: none", "image: none, volumeMounts: [{name: data, mountPath: /data}]").Replace(job("patient", 1, "echo hello")))
	said := &transcript{}
	cmd := d.command("run", "-f", file)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.Eventually("what is missing", func() error {
		return said.has(`(?m)^» patient is starting: pod patient-worker-0: MountVolume\.SetUp failed for volume "data" : configmap "late" not found\.$`)
	})
	d.Kubectl("create", "configmap", "late")
	if err := cmd.Wait(); err != nil || said.has(`(?m)^patient succeeded after `) != nil {
		t.Errorf("%v:\n%s", err, said)
	}
}

func TestMistakesOnACluster(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, strings.Replace(job("wrong", 1, "true"), "backoffLimit: 1", "backoffLimit: -1", 1))
	d.refuses(d.types("submit", "-f", file), 2, "spec.runPolicy.backoffLimit")
	for _, row := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"why", "nobody"}, 1, "there is no such job as nobody in namespace .*: `trainyard (get|history)` lists the jobs"},
		{[]string{"why"}, 2, "no job is named: use `trainyard why JOB`"},
		{[]string{"get", "--context=elsewhere"}, 2, `context "elsewhere" does not exist`},
		{[]string{"wait", "nobody", "--for=ever"}, 2, "--for ever: use end, running"},
		{[]string{"scale", "nobody", "many"}, 2, "many is not a number of replicas"},
		{[]string{"run"}, 2, "nothing to run"},
		{[]string{"run", "--", "true"}, 2, "a cluster needs an image"},
	} {
		d.refuses(d.types(row.args...), row.code, row.says)
	}
}

// If no cluster runs, run starts one and stops it again.
func TestRunStartsAClusterOfItsOwn(t *testing.T) {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{trainyardName, "run", "--data-dir=" + t.TempDir(), "--", "sh", "-c", "echo hello; pwd"}, Env: os.Environ()}
	d := desk{&local.World{TB: t}}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	d.expect(finish(d, cmd), 0, `^The local cluster is ready`, `^worker-0 \| hello$`, `^worker-0 \| `+regexp.QuoteMeta(here)+`$`, `^sh-\w+ succeeded`)
}

func TestTheLogStaysWhenTheRetriesAreUsedUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.expect(finish(d, d.run("echo attempt $TRAINYARD_ATTEMPT; exit 1", "--name=lost", "--retries=1")), 1, `^lost failed after \w+, with 2 attempts, 1 retry\.$`)
	d.expect(d.types("logs", "lost"), 0, `^worker-0 \| attempt 1\n\z`)
}

func TestWhatCannotBeDoneToAJobIsSaid(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, job("demo", 1, "while true; do sleep 0.1; done"))
	d.expect(d.types("submit", "-f", file), 0)
	write(t, file, job("over", 1, "true"))
	d.expect(d.types("submit", "-f", file), 0, "Follow it with `trainyard attach over --kubeconfig .* -n "+d.Namespace+"`")
	d.expect(d.types("wait", "over"), 0)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.yaml")
	write(t, elsewhere, strings.Replace(job("demo", 1, "true"), "{name: demo}", "{name: demo, namespace: team-a}", 1))
	for _, row := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"scale", "demo", "0"}, 2, "demo needs at least one replica: use 1 or more, or `trainyard suspend demo --kubeconfig " + local.Shared(t).Kubeconfig() + " -n " + d.Namespace + "`"},
		{[]string{"scale", "demo", "2", "--role=master"}, 2, "demo has no role master to scale: it has worker"},
		{[]string{"scale", "over", "2"}, 1, "job over has ended: there is nothing to scale"},
		{[]string{"logs", "demo", "--attempt=2"}, 2, "demo has no attempt 2: its last is 1"},
		{[]string{"logs", "demo", "--attempt=0"}, 2, "they are counted from 1"},
		{[]string{"logs", "demo", "--since=-3s"}, 2, "--since -3s: use a positive time"},
		{[]string{"submit", "-f", file, "--namespace=nowhere"}, 2, "there is no namespace nowhere"},
		{[]string{"submit", "-f", elsewhere}, 2, "there is no namespace team-a"},
	} {
		d.refuses(d.types(row.args...), row.code, regexp.QuoteMeta(row.says))
	}
	d.Eventually("the shell is offered both", func() error { // completion has a short timeout
		shell := d.command("why", "")
		shell.Args = slices.Insert(shell.Args, 1, "__complete")
		return found(finish(d, shell).Stdout, "demo\tPyTorchJob, ", "over\tPyTorchJob, succeeded\n")
	})
}

// Runs at the same time share the cluster that the first of them starts, and it stays for the last.
func TestRunsShareACluster(t *testing.T) {
	t.Parallel()
	d, stage, dir := desk{&local.World{TB: t}}, stage(t.TempDir()), t.TempDir()
	first, host := d.begins("first", dir, stage.until("first"))
	second, guest := d.begins("second", dir, stage.until("second"))
	stage.give(t, "first")
	d.Eventually("the first ends, and stays", func() error {
		return first.has(`(?m)^first succeeded`, `(?m)^» the local cluster stays while another run uses it; Ctrl-C twice ends both\.$`)
	})
	stage.give(t, "second")
	for said, cmd := range map[*transcript]*exec.Cmd{first: host, second: guest} {
		_ = cmd.Wait()
		d.expect(local.Outcome{Stdout: said.String(), Code: cmd.ProcessState.ExitCode()}, 0, `^\w+ succeeded`)
	}
}

// begins starts a run on a local cluster of its own, or of an earlier one, and returns when it trains.
func (d desk) begins(name, dataDir, script string, flags ...string) (*transcript, *exec.Cmd) {
	d.Helper()
	said := &transcript{}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Env: os.Environ(), Stdout: said, Stderr: said,
		Args: slices.Concat([]string{trainyardName, "run", "--data-dir=" + dataDir, "--name=" + name}, flags, []string{"--", "sh", "-c", "echo hello; " + script})}
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = cmd.Process.Kill() })
	d.Eventually(name+" trains", func() error { return said.has(`(?m)^worker-0 \| hello$`) })
	return said, cmd
}

// A run on another's cluster ends when that is stopped, and says how its job goes on.
func TestAGuestEndsWithTheCluster(t *testing.T) {
	t.Parallel()
	d, stage, dir := desk{&local.World{TB: t}}, stage(t.TempDir()), t.TempDir()
	first, host := d.begins("first", dir, stage.until("first"))
	second, guest := d.begins("second", dir, "exec sleep 600")
	stage.give(t, "first")
	d.Eventually("the first ends, and stays", func() error { return first.has(`(?m)^» the local cluster stays`) })
	for range 2 {
		if err := host.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		d.Eventually("a warning", func() error {
			return first.has(`(?m)^» another run still trains on this cluster; Ctrl-C again ends it, too\.$`)
		})
	}
	_, _ = host.Wait(), guest.Wait()
	d.expect(local.Outcome{Stdout: second.String(), Code: guest.ProcessState.ExitCode()}, 1,
		"^trainyard: the local cluster was stopped before the job ended; `trainyard up` starts it again$")
}

// A run whose cluster is killed under it says so, and ends.
func TestRunEndsWithItsCluster(t *testing.T) {
	t.Parallel()
	d := desk{&local.World{TB: t}}
	said, cmd := d.begins("killed", t.TempDir(), "exec sleep 600")
	if err := syscall.Kill(local.Below(cmd.Process.Pid)[0].Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	d.expect(local.Outcome{Stdout: said.String(), Code: cmd.ProcessState.ExitCode()}, 1, `^trainyard: the local cluster ended by itself; cluster.log in the data directory says why$`)
}

func job(name string, workers int, script string) string {
	return strings.NewReplacer("NAME", name, "WORKERS", string(rune('0'+workers)), "SCRIPT", script).Replace(`apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: NAME}
spec:
  runPolicy: {backoffLimit: 1}
  pytorchReplicaSpecs:
    Worker:
      replicas: WORKERS
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - {name: pytorch, image: none, command: [sh, -c, "SCRIPT"]}
`)
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
