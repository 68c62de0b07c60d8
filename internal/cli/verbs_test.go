package cli_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// stubborn is shell code that ignores SIGTERM until the test has given a cue.
func (s stage) stubborn(cue string) string {
	return "trap '" + s.until(cue) + "; exit 0' TERM; while :; do sleep 0.1; done"
}

// patient gives the replicas of a manifest an hour to end.
func patient(manifest string) string {
	return strings.Replace(manifest, "terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 3600", 1)
}

// A Worker fails and the other takes its time to end, so that the restart can be looked at. The log of an attempt stays when its pods are gone.
func TestLogsOfOneAttempt(t *testing.T) {
	t.Parallel()
	d, stage := newDesk(t), stage(t.TempDir())
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, patient(job("gang", 2, strings.Join([]string{
		"echo word $TRAINYARD_ATTEMPT", "[ $TRAINYARD_ATTEMPT = 0 ] || { " + stage.until("end") + "; exit 0; }",
		"[ $RANK = 0 ] || { " + stage.until("fail") + "; exit 3; }", stage.stubborn("leave"),
	}, "; "))))
	d.expect(d.types("submit", "-f", file), 0)
	second := d.follows(newWire(t, local.Shared(t).Kubeconfig()), "gang", "--attempt=2")
	d.Eventually("both have written", func() error {
		return found(d.types("logs", "gang", "--attempt=1").Stdout, "worker-0 | word 0\n", "worker-1 | word 0\n")
	})
	stage.give(t, "fail")
	d.expect(d.types("wait", "gang", "--for=restarting"), 0, `^gang is restarting\.$`)
	d.refuses(d.types("logs", "gang", "--attempt=3"), 2, "gang has no attempt 3: its last is 2")
	stage.give(t, "leave")
	d.Eventually("both have written again", func() error {
		return found(d.types("logs", "gang", "--attempt=2").Stdout, "worker-0 | word 1\n", "worker-1 | word 1\n")
	})
	d.Eventually("the log of the first attempt is recorded", func() error {
		return found(d.types("logs", "gang", "--attempt=1").Stdout, "worker-0 | word 0\n", "worker-1 | word 0\n")
	})
	stage.give(t, "end")
	d.expect(d.types("wait", "gang", "--for=succeeded"), 0, `\Agang succeeded after \w+, with 2 attempts, 1 retry\.\n\z`)
	d.refuses(d.types("wait", "gang", "--for=failed"), 1, "job gang has succeeded and will not be failed any more$")
	second.ends(t)
	if w0, w1 := second.wordsOf("worker-0"), second.wordsOf("worker-1"); w0 != "word 1" || w1 != "word 1" {
		t.Errorf("following only the second attempt prints:\n%s", second.said())
	}
}

func TestWaitingForAFailure(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, strings.Replace(job("bad", 1, "exit 3"), "backoffLimit: 1", "backoffLimit: 0", 1))
	d.expect(d.types("submit", "-f", file), 0)
	d.expect(d.types("wait", "bad", "--for=failed"), 0, `\Abad failed after \w+\.\n\z`)
	d.expect(d.types("wait", "bad"), 1, `\Abad failed after \w+\.\n\z`)
}

func TestLogsSince(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, job("talks", 1, "echo old; while :; do sleep 0.1; echo new; done"))
	d.expect(d.types("submit", "-f", file), 0)
	d.Eventually("only new lines are as young as that", func() error {
		o := d.types("logs", "talks", "--since=1s")
		if strings.Contains(o.Stdout, "old") {
			return fmt.Errorf("it is not old yet:\n%s", o.Stdout)
		}
		return found(o.Stdout, "worker-0 | new\n")
	})
	d.expect(d.types("logs", "talks", "--since=1h"), 0, `\Aworker-0 \| old\nworker-0 \| new\n`)
}

func TestJobsOfAllNamespaces(t *testing.T) {
	t.Parallel()
	here, there := newDesk(t), newDesk(t)
	here.expect(finish(here, here.run("true", "--name=near")), 0)
	there.expect(finish(there, there.run("true", "--name=far")), 0)
	near, far := here.Namespace+` +near +PyTorchJob +Succeeded `, there.Namespace+` +far +PyTorchJob +Succeeded `
	here.expect(here.types("get", "-A"), 0, `\ANAMESPACE +NAME +KIND +STATE `, `^`+near, `^`+far)
	if alone := here.types("get").Stdout; strings.Contains(alone, "far") {
		t.Errorf("without -A there is:\n%s", alone)
	}
}

// The roles of a TFJob are scaled each by itself.
func TestScalingARole(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, `apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: servers}
spec:
  tfReplicaSpecs:
    PS: &replica
      replicas: 1
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers: [{name: tensorflow, image: none, command: [sleep, "600"]}]
    Worker: *replica
`)
	d.expect(d.types("submit", "-f", file), 0)
	d.expect(d.types("scale", "servers", "3", "--role=ps"), 0, `\Aservers is scaled to 3\.\n\z`)
	d.expect(d.types("scale", "servers", "2", "--role=Worker"), 0, `\Aservers is scaled to 2\.\n\z`)
	d.Eventually("all are ready", func() error { return found(d.types("get", "servers").Stdout, " 5/5 ") })
	for role, want := range map[string]int{"ps": 3, "worker": 2} {
		if pods := d.Kubectl("get", "pods", "-o", "name", "-l", "training.kubeflow.org/replica-type="+role); strings.Count(pods, "\n") != want {
			t.Errorf("%d of role %s are wanted, and there are\n%s", want, role, pods)
		}
	}
	d.refuses(d.types("scale", "servers", "2", "--role=chief"), 2, "servers has no role chief to scale: it has ps, worker$")
}

// delete --no-wait returns while the replica is still stopping.
func TestDeletingWithoutWaiting(t *testing.T) {
	t.Parallel()
	d, stage := newDesk(t), stage(t.TempDir())
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, patient(job("demo", 1, "echo ready; "+stage.stubborn("leave"))))
	d.expect(d.types("submit", "-f", file), 0)
	d.Eventually("it runs", func() error { return found(d.types("logs", "demo").Stdout, "ready") })
	d.expect(d.types("delete", "demo", "--no-wait"), 0, `\Ademo is being deleted\.\n\z`)
	if pods := d.Kubectl("get", "pods", "-o", "name"); pods != "pod/demo-worker-0\n" {
		t.Errorf("it waited: there is %q", pods)
	}
	d.expect(d.types("get", "demo"), 0, `^demo +PyTorchJob +Deleting `)
	d.expect(d.types("why", "demo"), 0, `^demo is being deleted, and is gone when its pods have ended\.`)
	d.refuses(d.types("suspend", "demo"), 1, "job demo is being deleted: there is nothing to suspend$")
	d.refuses(d.types("scale", "demo", "2"), 1, "job demo is being deleted: there is nothing to scale$")
	stage.give(t, "leave")
	d.Eventually("nothing is left", func() error {
		if left := d.Kubectl("get", "pods,pytorchjobs", "-o", "name"); left != "" {
			return fmt.Errorf("left: %s", left)
		}
		return nil
	})
}

func TestEventsWithRoutineSteps(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.expect(finish(d, d.run("true", "--name=demo")), 0)
	all := ""
	d.Eventually("all is noted", func() error {
		all = d.types("events", "demo", "--all").Stdout
		return found(all, "Container created", "is successfully completed")
	})
	d.goesForward(all, "is created", "Pulling image", "Container created", "Container started", "is successfully completed")
	if some := d.types("events", "demo").Stdout; regexp.MustCompile(`Pulling|pulled|Container created`).MatchString(some) || found(some, "Container started") != nil {
		t.Errorf("without --all it prints:\n%s", some)
	}
}

// Each shell accepts its script, if the shell is installed.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, code := outcome(local.CLI("completion", shell))
		if code != 0 || !strings.Contains(script, "trainyard") {
			t.Errorf("completion %s ends with code %d and prints %q", shell, code, script)
		}
		if _, err := exec.LookPath(shell); err != nil && shell != "bash" {
			continue
		}
		check := exec.Command(shell, "-n", "/dev/stdin")
		check.Stdin = strings.NewReader(script)
		if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s does not take its script: %v\n%s", shell, err, out)
		}
	}
}

// If all pods are deleted at the end, a short one may be gone before its log is opened.
func TestNoLineIsLostWithThePods(t *testing.T) {
	for n := range 5 {
		t.Run(fmt.Sprintf("job %d", n), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.expect(finish(d, d.run("echo hello", "--name=short", "--clean=all")), 0, `\Aworker-0 \| hello\n`, `^short succeeded `)
		})
	}
}

// The last lines, which matter most, come last however many there are.
func TestALongLogIsShownToItsEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := finish(d, d.run("seq 50000", "--name=long"))
	d.expect(o, 0, `^long succeeded after`)
	for verb, out := range map[string]string{"run": o.Stdout, "logs -f": d.types("logs", "-f", "long").Stdout} {
		if lines := strings.Count(out, "\n"); lines != 50000 || !strings.HasSuffix(out, "worker-0 | 50000\n") {
			t.Errorf("%s shows %d lines", verb, lines)
		}
	}
}

// A job with an init container and a container that was restarted in its pod.
func TestWhichLinesOfALog(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, strings.NewReplacer("          containers:", `          initContainers: [{name: fetch, image: none, command: [echo, fetched]}]
          volumes: [{name: data, emptyDir: {}}]
          containers:`, "image: none,", "image: none, volumeMounts: [{name: data, mountPath: /data}],").Replace(
		job("talks", 1, "[ -e /data/again ] || { echo before; touch /data/again; exit 1; }; echo one; echo two; echo three; exec sleep 600")))
	d.expect(d.types("submit", "-f", file), 0)
	d.Eventually("it has been restarted, as its pod's status shows a moment later", func() error {
		return found(d.types("logs", "talks").Stdout, "before", "three")
	})
	d.expect(d.types("logs", "talks"), 0, `\Aworker-0 \| before\nworker-0 \| one\nworker-0 \| two\nworker-0 \| three\n\z`)
	d.expect(d.types("logs", "talks", "--tail=2"), 0, `\Aworker-0 \| two\nworker-0 \| three\n\z`)
	d.expect(d.types("logs", "talks", "--tail=1", "--timestamps"), 0, `\Aworker-0 \| \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z three\n\z`)
	d.expect(d.types("logs", "talks", "--previous"), 0, `\Aworker-0 \| before\n\z`)
	d.expect(d.types("logs", "talks", "-c", "fetch"), 0, `\Aworker-0 \| fetched\n\z`)
	d.refuses(d.types("logs", "talks", "-c", "nobody"), 2, "talks has no container nobody: it has fetch, pytorch$")
	d.refuses(d.types("logs", "talks", "-f", "--previous"), 2, "--previous is about what has ended: leave out -f$")
	d.refuses(d.types("logs", "talks", "--tail=-1"), 2, "--tail -1: use 0 or more$")
	follower := d.follows(newWire(t, local.Shared(t).Kubeconfig()), "talks", "--tail=1")
	d.Eventually("its last line", func() error { return found(follower.said(), "three") })
	d.expect(d.types("delete", "talks"), 0)
	follower.ends(t)
	if got := follower.wordsOf("worker-0"); got != "three" {
		t.Errorf("-f --tail=1 shows %q", got)
	}
}

func TestChoosingJobs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	for name, team := range map[string]string{"a1": "a", "a2": "a", "b1": "b", "b2": "b"} {
		write(t, file, strings.Replace(job(name, 1, "true"), "{name: "+name+"}", "{name: "+name+", labels: {team: "+team+"}}", 1))
		d.expect(d.types("submit", "-f", file), 0)
	}
	d.expect(d.types("get", "-o", "name"), 0, `\Apytorchjob/a1\npytorchjob/a2\npytorchjob/b1\npytorchjob/b2\n\z`)
	d.expect(d.types("ls", "-l", "team=b", "-o", "name"), 0, `\Apytorchjob/b1\npytorchjob/b2\n\z`)
	d.expect(d.types("get", "-l", "team=b", "-o", "wide"), 0, `^NAME +KIND +STATE +READY +ATTEMPT +RETRIES +DISRUPTIONS +AGE +MESSAGE`, `^b2 +PyTorchJob `)
	d.refuses(d.types("get", "a1", "-l", "team=b"), 2, "a name and a selector are two ways to choose")
	d.refuses(d.types("get", "-l", "team in"), 2, "--selector team in: ")
	d.refuses(d.types("delete"), 2, "no job is named: use `trainyard delete JOB`, `trainyard delete --all` or `trainyard delete -l SELECTOR`$")
	d.refuses(d.types("delete", "a1", "--all"), 2, "three ways to choose: use one$")
	d.refuses(d.types("delete", "a1", "nobody"), 1, "there is no such job as nobody")
	d.expect(d.types("delete", "a1", "pytorchjob/a2"), 0, `\Aa1 is deleted\.\na2 is deleted\.\n\z`)
	d.expect(d.types("delete", "-l", "team=b,team!=a"), 0, `\Ab1 is deleted\.\nb2 is deleted\.\n\z`)
	d.expect(d.types("delete", "--all"), 0, `\AThere are no such jobs in namespace `)
}
