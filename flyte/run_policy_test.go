package flyte

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCleanPodPolicy(t *testing.T) {
	for _, c := range []struct {
		in   string
		want CleanPodPolicy
	}{
		{"None", CleanPodNone}, {"all", CleanPodAll}, {"Running", CleanPodRunning},
		{"none", CleanPodNone}, {"All", CleanPodAll}, {"ALL", CleanPodAll}, {"running", CleanPodRunning},
		{"CLEANPOD_POLICY_NONE", CleanPodNone}, {"CLEANPOD_POLICY_ALL", CleanPodAll}, {"CLEANPOD_POLICY_RUNNING", CleanPodRunning},
	} {
		if got, err := ParseCleanPodPolicy(c.in); got != c.want || err != nil {
			t.Errorf("%q reads as %q (error %v), want %q", c.in, got, err, c.want)
		}
	}
	for _, bad := range []string{"", " all", "Finished", "CLEANPOD_POLICY_", "2"} {
		if got, err := ParseCleanPodPolicy(bad); err == nil {
			t.Errorf("%q reads as %q, want an error", bad, got)
		}
	}
}

func TestRunPolicyReportsWhatIsLost(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy RunPolicy
		want   []string
	}{
		{"everything set: nothing is lost",
			RunPolicy{CleanPodAll, new(int32(1)), new(int32(1)), new(int32(1))}, nil},
		{"a backoff limit of 0",
			RunPolicy{CleanPodPolicy: CleanPodAll, BackoffLimit: new(int32(0))},
			[]string{"runPolicy.backoffLimit: Flyte's message cannot distinguish 0 from unset: there is no retry limit [zero-lost]"}},
		{"a time to live of 0",
			RunPolicy{CleanPodPolicy: CleanPodNone, TTLSecondsAfterFinished: new(int32(0))},
			[]string{"runPolicy.ttlSecondsAfterFinished: Flyte's message cannot distinguish 0 from unset: the finished job is never deleted [zero-lost]"}},
		{"no clean pod policy beside a backoff limit",
			RunPolicy{BackoffLimit: new(int32(4))},
			[]string{"runPolicy.cleanPodPolicy: unset, but a run policy is given, so Flyte asks for None: pods that still run are left running [zero-lost]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			custom, err := PyTorch{Worker: Group{Replicas: 1}, RunPolicy: &c.policy}.CustomConfig()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, lines(custom.Warnings)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCustomConfigRefuses(t *testing.T) {
	elastic := func(change func(*Elastic)) Config {
		e := NewElastic(Nodes(2), 1)
		change(&e)
		return e
	}
	for _, c := range []struct {
		name   string
		config Config
		want   string
	}{
		{"an unknown clean pod policy", elastic(func(e *Elastic) { e.RunPolicy = &RunPolicy{CleanPodPolicy: "Finished"} }),
			`elastic config: runPolicy.cleanPodPolicy: clean pod policy "Finished" is unknown: want None, all or Running`},
		{"a deadline of 0", elastic(func(e *Elastic) { e.RunPolicy = &RunPolicy{ActiveDeadlineSeconds: new(int32(0))} }),
			`elastic config: runPolicy.activeDeadlineSeconds: 0 is not a deadline: want at least 1`},
		{"a negative backoff limit", elastic(func(e *Elastic) { e.RunPolicy = &RunPolicy{BackoffLimit: new(int32(-1))} }),
			`elastic config: runPolicy.backoffLimit: -1 is negative`},
		{"no nodes", elastic(func(e *Elastic) { e.NNodes = Nodes(0) }), `elastic config: nnodes 0: want at least 1 node`},
		{"more nodes at least than at most", elastic(func(e *Elastic) { e.NNodes = NNodes{Min: 4, Max: 2} }),
			`elastic config: nnodes 4:2: the minimum is above the maximum`},
		{"no processes", elastic(func(e *Elastic) { e.NprocPerNode = 0 }),
			`elastic config: elasticConfig.nprocPerNode: 0 processes on a node: want at least 1`},
		{"an unknown rendezvous", elastic(func(e *Elastic) { e.RdzvBackend = "mpi" }),
			`elastic config: elasticConfig.rdzvBackend: "mpi" is unknown: want c10d, etcd or etcd-v2`},
		{"negative restarts", elastic(func(e *Elastic) { e.MaxRestarts = -1 }), `elastic config: elasticConfig.maxRestarts: -1 is negative`},
		{"a restart policy Flyte lacks", PyTorch{Worker: Group{Replicas: 1, Replica: Replica{RestartPolicy: "ExitCode"}}},
			`pytorch config: workerReplicas.restartPolicy: "ExitCode" is unknown to Flyte: want Never, OnFailure or Always`},
		{"negative replicas", TensorFlow{PS: Group{Replicas: -1}}, `tensorflow config: psReplicas.replicas: -1 is negative`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.config.CustomConfig()
			if err == nil {
				t.Fatal("it was accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseNNodes(t *testing.T) {
	for in, want := range map[string]NNodes{
		"1":   {1, 1, true},
		"4":   {4, 4, true},
		"2:4": {2, 4, true},
	} {
		if got, err := ParseNNodes(in); got != want || err != nil {
			t.Errorf("%q reads as %+v (error %v), want %+v", in, got, err, want)
		}
	}
	for _, bad := range []string{"", "two", "2:", ":4", "2:4:6", "4:2", "0", "-1", "0:2", "9999999999"} {
		if got, err := ParseNNodes(bad); err == nil {
			t.Errorf("%q reads as %+v, want an error", bad, got)
		}
	}
}

func TestElasticEnv(t *testing.T) {
	names := func(e Elastic) map[string]string {
		all := map[string]string{}
		for _, v := range e.Env() {
			all[v.Name] = v.Value
		}
		return all
	}
	want := map[string]string{
		"PYTHONUNBUFFERED": "1", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "300", "TORCH_NCCL_ENABLE_MONITORING": "1",
	}
	if diff := cmp.Diff(want, names(NewElastic(Nodes(2), 1))); diff != "" {
		t.Errorf("by default (-want +got):\n%s", diff)
	}
	e := NewElastic(Nodes(2), 8)
	e.NCCLHeartbeatTimeoutSec, e.NCCLEnableMonitoring = nil, false
	e.NCCLAsyncErrorHandling, e.NCCLCollectiveTimeoutSec = true, new(int32(60))
	want = map[string]string{
		"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "FLYTE_NCCL_COLLECTIVE_TIMEOUT_SEC": "60",
	}
	if diff := cmp.Diff(want, names(e)); diff != "" {
		t.Errorf("with all of it turned round (-want +got):\n%s", diff)
	}
}
