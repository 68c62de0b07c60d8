package v1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	pytorchPod = "template: {spec: {containers: [{name: pytorch, image: train}]}}"
	tfPod      = "template: {spec: {containers: [{name: tensorflow, image: train}]}}"
)

// pytorch is a valid PyTorchJob with one difference: each line is an indented piece of its spec, and replaces the default roles if it
// names roles.
func pytorch(spec string) string {
	if !strings.Contains(spec, "pytorchReplicaSpecs") {
		spec += "\n  pytorchReplicaSpecs: {Master: {" + pytorchPod + "}, Worker: {replicas: 3, " + pytorchPod + "}}"
	}
	return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: mnist}\nspec:\n  " + spec
}

// tf is the same for a TFJob.
func tf(spec string) string {
	if !strings.Contains(spec, "tfReplicaSpecs") {
		spec += "\n  tfReplicaSpecs: {Chief: {" + tfPod + "}, Worker: {replicas: 3, " + tfPod + "}}"
	}
	return "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: mnist}\nspec:\n  " + spec
}

// roles is a map of roles in which every "Role=n" has n replicas, and "Role" leaves the number out.
func roles(pod string, all ...string) string {
	var entries []string
	for _, role := range all {
		name, count, given := strings.Cut(role, "=")
		if given {
			count = "replicas: " + count + ", "
		}
		entries = append(entries, name+": {"+count+pod+"}")
	}
	return "{" + strings.Join(entries, ", ") + "}"
}

func pytorchRoles(all ...string) string {
	return pytorch("pytorchReplicaSpecs: " + roles(pytorchPod, all...))
}
func jax(all ...string) string {
	pod := "template: {spec: {containers: [{name: jax, image: train}]}}"
	return "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: mnist}\nspec: {jaxReplicaSpecs: " + roles(pod, all...) + "}"
}
func xgboost(all ...string) string {
	pod := "template: {spec: {containers: [{name: xgboost, image: train}]}}"
	return "apiVersion: kubeflow.org/v1\nkind: XGBoostJob\nmetadata: {name: mnist}\nspec: {xgbReplicaSpecs: " + roles(pod, all...) + "}"
}
func paddle(spec string, all ...string) string {
	pod := "template: {spec: {containers: [{name: paddle, image: train}]}}"
	return "apiVersion: kubeflow.org/v1\nkind: PaddleJob\nmetadata: {name: mnist}\nspec: {" + spec + "paddleReplicaSpecs: " + roles(pod, all...) + "}"
}
func mpi(spec string, all ...string) string {
	pod := "template: {spec: {containers: [{name: mpi, image: train}]}}"
	return "apiVersion: kubeflow.org/v1\nkind: MPIJob\nmetadata: {name: mnist}\nspec: {" + spec + "mpiReplicaSpecs: " + roles(pod, all...) + "}"
}
func tfRoles(all ...string) string { return tf("tfReplicaSpecs: " + roles(tfPod, all...)) }

func named(name, manifest string) string {
	return strings.Replace(manifest, "name: mnist", "name: "+name, 1)
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, row := range []struct{ name, manifest, refusal string }{
		{"unknown cleanPodPolicy", pytorch("runPolicy: {cleanPodPolicy: Sometimes}"),
			`spec.runPolicy.cleanPodPolicy: Unsupported value: "Sometimes": supported values: "None", "Running", "All"`},
		{"unknown flat cleanPodPolicy", tf("cleanPodPolicy: all"),
			`spec.cleanPodPolicy: Unsupported value: "all": supported values: "None", "Running", "All"`},
		{"more replicas than any cluster runs", pytorchRoles("Worker=10001"),
			"spec.pytorchReplicaSpecs.Worker.replicas: Invalid value: 10001: spec.pytorchReplicaSpecs.Worker.replicas in body should be less than or equal to 10000"},
		{"negative ttl", pytorch("runPolicy: {ttlSecondsAfterFinished: -1}"),
			"spec.runPolicy.ttlSecondsAfterFinished: Invalid value: -1: spec.runPolicy.ttlSecondsAfterFinished in body should be greater than or equal to 0"},
		{"negative flat ttl", tf("ttlSecondsAfterFinished: -1"),
			"spec.ttlSecondsAfterFinished: Invalid value: -1: spec.ttlSecondsAfterFinished in body should be greater than or equal to 0"},
		{"no time at all", pytorch("runPolicy: {activeDeadlineSeconds: 0}"),
			"spec.runPolicy.activeDeadlineSeconds: Invalid value: 0: spec.runPolicy.activeDeadlineSeconds in body should be greater than or equal to 1"},
		{"no time at all, flat", pytorch("activeDeadlineSeconds: 0"),
			"spec.activeDeadlineSeconds: Invalid value: 0: spec.activeDeadlineSeconds in body should be greater than or equal to 1"},
		{"negative backoffLimit", tf("runPolicy: {backoffLimit: -1}"),
			"spec.runPolicy.backoffLimit: Invalid value: -1: spec.runPolicy.backoffLimit in body should be greater than or equal to 0"},
		{"negative flat backoffLimit", tf("backoffLimit: -3"),
			"spec.backoffLimit: Invalid value: -3: spec.backoffLimit in body should be greater than or equal to 0"},

		{"cleanPodPolicy in two places", pytorch("cleanPodPolicy: All\n  runPolicy: {cleanPodPolicy: None}"),
			"spec: Invalid value: spec.cleanPodPolicy and spec.runPolicy.cleanPodPolicy differ: remove spec.cleanPodPolicy"},
		{"ttl in two places", tf("ttlSecondsAfterFinished: 0\n  runPolicy: {ttlSecondsAfterFinished: 1}"),
			"spec: Invalid value: spec.ttlSecondsAfterFinished and spec.runPolicy.ttlSecondsAfterFinished differ: remove spec.ttlSecondsAfterFinished"},
		{"deadline in two places", pytorch("activeDeadlineSeconds: 10\n  runPolicy: {activeDeadlineSeconds: 20}"),
			"spec: Invalid value: spec.activeDeadlineSeconds and spec.runPolicy.activeDeadlineSeconds differ: remove spec.activeDeadlineSeconds"},
		{"backoffLimit in two places", tf("backoffLimit: 1\n  runPolicy: {backoffLimit: 2}"),
			"spec: Invalid value: spec.backoffLimit and spec.runPolicy.backoffLimit differ: remove spec.backoffLimit"},

		{"unknown manager", pytorch("runPolicy: {managedBy: somebody}"),
			`spec.runPolicy.managedBy: Unsupported value: "somebody": supported values: "kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"`},
		{"unknown restartPolicy", pytorch("pytorchReplicaSpecs: {Worker: {restartPolicy: Perhaps, " + pytorchPod + "}}"),
			`spec.pytorchReplicaSpecs.Worker.restartPolicy: Unsupported value: "Perhaps": supported values: "Always", "OnFailure", "Never", "ExitCode"`},
		{"unknown successPolicy", tf("successPolicy: MostWorkers"),
			`spec.successPolicy: Unsupported value: "MostWorkers": supported values: "", "AllWorkers"`},
		{"unknown rendezvous", pytorch("elasticPolicy: {rdzvBackend: mpi}"),
			`spec.elasticPolicy.rdzvBackend: Unsupported value: "mpi": supported values: "", "c10d", "etcd", "etcd-v2"`},

		{"no spec", "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: mnist}", "spec: Required value"},
		{"an XGBoostJob without a Master", xgboost("Worker=2"), "spec.xgbReplicaSpecs: Invalid value: an XGBoostJob has exactly one Master: add the role Master with replicas 1"},
		{"an XGBoostJob with two Masters", xgboost("Master=2"), "spec.xgbReplicaSpecs: Invalid value: an XGBoostJob has exactly one Master: add the role Master with replicas 1"},
		{"a role that an XGBoostJob does not have", xgboost("Master", "PS"), "spec.xgbReplicaSpecs: Invalid value: unknown role PS: use Master or Worker"},
		{"a PaddleJob without replicas", paddle("", "Master=0"), "spec.paddleReplicaSpecs: Invalid value: the job has no replicas: add a Master or a Worker with replicas of at least 1"},
		{"a role that a PaddleJob does not have", paddle("", "Worker", "PS"), "spec.paddleReplicaSpecs: Invalid value: unknown role PS: use Master or Worker"},
		{"an elastic PaddleJob without Workers", paddle("elasticPolicy: {}, ", "Master"), "spec: Invalid value: elasticPolicy is about Workers and the job has none: add the role Worker to paddleReplicaSpecs"},
		{"an MPIJob without a Launcher", mpi("", "Worker=2"), "spec.mpiReplicaSpecs: Invalid value: an MPIJob has exactly one Launcher: add the role Launcher with replicas 1"},
		{"an MPIJob with two Launchers", mpi("", "Launcher=2", "Worker"), "spec.mpiReplicaSpecs: Invalid value: an MPIJob has exactly one Launcher: add the role Launcher with replicas 1"},
		{"a role that an MPIJob does not have", mpi("", "Launcher", "Master"), "spec.mpiReplicaSpecs: Invalid value: unknown role Master: use Launcher or Worker"},
		{"an unknown MPI", mpi("mpiImplementation: LAM, ", "Launcher"), `spec.mpiImplementation: Unsupported value: "LAM": supported values: "OpenMPI", "Intel", "MPICH"`},
		{"an unknown creation of the Launcher", mpi("launcherCreationPolicy: Later, ", "Launcher"), `spec.launcherCreationPolicy: Unsupported value: "Later": supported values: "AtStartup", "WaitForWorkersReady"`},
		{"negative slots", mpi("slotsPerWorker: -1, ", "Launcher"), "spec.slotsPerWorker: Invalid value: -1: spec.slotsPerWorker in body should be greater than or equal to 0"},
		{"a role that a JAXJob does not have", jax("Master", "Worker"), "spec.jaxReplicaSpecs: Invalid value: unknown role Master: use Worker"},
		{"a JAXJob without replicas", jax("Worker=0"), "spec.jaxReplicaSpecs: Invalid value: the job has no replicas: add a Worker with replicas of at least 1"},
		{"a JAXJob's role twice", jax("Worker", "worker"), "spec.jaxReplicaSpecs: Invalid value: a role is there twice, in different letter case: keep one of them"},
		{"a name too long for a JAXJob", named(long[:54], jax("Worker=11")),
			"metadata.name: Invalid value: pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"},
		{"no roles", "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: mnist}\nspec: {}", "spec.tfReplicaSpecs: Required value"},
		{"empty roles", pytorchRoles(),
			"spec.pytorchReplicaSpecs: Invalid value: the job has no replicas: add a Master or a Worker with replicas of at least 1"},
		{"all roles at 0", pytorchRoles("Master=0", "Worker=0"),
			"spec.pytorchReplicaSpecs: Invalid value: the job has no replicas: add a Master or a Worker with replicas of at least 1"},
		{"TF roles empty", tfRoles(),
			"spec.tfReplicaSpecs: Invalid value: the job has no replica whose end could end it: add a Chief, a Master or a Worker with replicas of at least 1"},
		{"parameter servers alone", tfRoles("PS=2", "Evaluator", "Worker=0"),
			"spec.tfReplicaSpecs: Invalid value: the job has no replica whose end could end it: add a Chief, a Master or a Worker with replicas of at least 1"},
		{"negative replicas", pytorchRoles("Worker=-1"),
			"spec.pytorchReplicaSpecs.Worker.replicas: Invalid value: -1: spec.pytorchReplicaSpecs.Worker.replicas in body should be greater than or equal to 0"},
		{"unknown PyTorch role", pytorchRoles("Master", "Helper"),
			"spec.pytorchReplicaSpecs: Invalid value: unknown role Helper: use Master or Worker"},
		{"a PyTorchJob has no Chief", pytorchRoles("Chief", "Worker"),
			"spec.pytorchReplicaSpecs: Invalid value: unknown role Chief: use Master or Worker"},
		{"unknown TF role", tfRoles("Worker", "Launcher"),
			"spec.tfReplicaSpecs: Invalid value: unknown role Launcher: use Chief, Master, PS, Worker or Evaluator"},
		{"one role in two spellings", pytorchRoles("Worker", "worker"),
			"spec.pytorchReplicaSpecs: Invalid value: a role is set twice, in different letter case: keep one of them"},
		{"one TF role in two spellings", tfRoles("PS", "Ps", "Worker"),
			"spec.tfReplicaSpecs: Invalid value: a role is set twice, in different letter case: keep one of them"},
		{"two Masters", pytorchRoles("Master=2", "Worker"),
			"spec.pytorchReplicaSpecs: Invalid value: a PyTorchJob has at most one Master: set its replicas to 1 and make the others Workers"},
		{"two masters in lower case", pytorchRoles("master=2"),
			"spec.pytorchReplicaSpecs: Invalid value: a PyTorchJob has at most one Master: set its replicas to 1 and make the others Workers"},
		{"two Chiefs", tfRoles("Chief=2"),
			"spec.tfReplicaSpecs: Invalid value: a TFJob has at most one Chief or Master together: set the replicas of one to 1, remove the other, and make the others Workers"},
		{"a Chief and a Master", tfRoles("Chief", "master=1", "Worker=2"),
			"spec.tfReplicaSpecs: Invalid value: a TFJob has at most one Chief or Master together: set the replicas of one to 1, remove the other, and make the others Workers"},
		{"a role without a container", pytorch("pytorchReplicaSpecs: {Worker: {replicas: 2}}"),
			"spec.pytorchReplicaSpecs[Worker]: Invalid value: template.spec.containers is empty: add the container that trains"},
		{"a role with an empty list of containers", tf("tfReplicaSpecs: {Worker: {template: {spec: {containers: []}}}}"),
			"spec.tfReplicaSpecs[Worker]: Invalid value: template.spec.containers is empty: add the container that trains"},

		{"min above max", pytorch("elasticPolicy: {minReplicas: 4, maxReplicas: 2}"),
			"spec.elasticPolicy: Invalid value: minReplicas is more than maxReplicas: lower the one or raise the other"},
		{"min below 1", pytorch("elasticPolicy: {minReplicas: 0, maxReplicas: 2}"),
			"spec.elasticPolicy.minReplicas: Invalid value: 0: spec.elasticPolicy.minReplicas in body should be greater than or equal to 1"},
		{"elastic without Workers", pytorch("elasticPolicy: {minReplicas: 1}\n  pytorchReplicaSpecs: " + roles(pytorchPod, "Master")),
			"spec: Invalid value: elasticPolicy is about Workers and the job has none: add the role Worker to pytorchReplicaSpecs"},
		{"an autoscaler for a role in lower case", pytorch("elasticPolicy: {maxReplicas: 2, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}\n  pytorchReplicaSpecs: " + roles(pytorchPod, "worker")),
			"spec: Invalid value: with elasticPolicy.metrics the role must be spelled Worker: the autoscaler finds the number of replicas under that name only"},
		{"processes per node in two places", pytorch("nprocPerNode: gpu\n  elasticPolicy: {nProcPerNode: 2}"),
			"spec: Invalid value: spec.nprocPerNode and spec.elasticPolicy.nProcPerNode are the same setting: remove spec.elasticPolicy.nProcPerNode"},

		{"a name with a dot", named("mnist.v2", pytorchRoles("Worker")),
			"metadata.name: Invalid value: the job's Service has the same name, so use lower-case letters, digits and '-', a letter first and no '-' last"},
		{"a name that begins with a digit", named("2nd", tfRoles("Worker")),
			"metadata.name: Invalid value: the job's Service has the same name, so use lower-case letters, digits and '-', a letter first and no '-' last"},
		{"64 characters with Worker 0: -worker-0 leaves 54", named(long[:55], pytorchRoles("Worker=10")),
			"metadata.name: Invalid value: pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"},
		{"64 characters with Worker 10: -worker-10 leaves 53", named(long[:54], pytorchRoles("Worker=11")),
			"metadata.name: Invalid value: pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"},
		{"64 characters once the autoscaler has its way", named(long[:54], pytorch("elasticPolicy: {maxReplicas: 11}")),
			"metadata.name: Invalid value: pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"},
		{"64 characters with Evaluator 0: -evaluator-0 leaves 51", named(long[:52], tfRoles("Worker", "Evaluator")),
			"metadata.name: Invalid value: pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (42 characters always fit)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, refusals := admit(t, parse(t, row.manifest), nil)
			if diff := cmp.Diff([]string{row.refusal}, refusals); diff != "" {
				t.Errorf("refusals (-want +got):\n%s\nof\n%s", diff, row.manifest)
			}
		})
	}
}

func TestAcceptedAsItIs(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, row := range []struct{ name, manifest string }{
		{"a Master without replicas", pytorchRoles("Master", "Worker=2")},
		{"a Master of 0 beside Workers", pytorchRoles("Master=0", "Worker=2")},
		{"Workers of 0 beside a Master", pytorchRoles("Master=1", "Worker=0")},
		{"a role of 0 needs no container", pytorch("pytorchReplicaSpecs: {Master: {" + pytorchPod + "}, Worker: {replicas: 0}}")},
		{"PyTorch roles in lower case", pytorchRoles("master", "worker=2")},
		{"PyTorch roles in upper case", pytorchRoles("MASTER", "WORKER=2")},
		{"TF roles in any case", tfRoles("chief", "Ps=2", "WORKER=3", "evaluator")},
		{"a Chief of 0 beside a Master", tfRoles("Chief=0", "Master", "Worker=2")},
		{"both places, and equal", pytorch("cleanPodPolicy: All\n  ttlSecondsAfterFinished: 0\n  activeDeadlineSeconds: 1\n  backoffLimit: 0\n" +
			"  runPolicy: {cleanPodPolicy: All, ttlSecondsAfterFinished: 0, activeDeadlineSeconds: 1, backoffLimit: 0}")},
		{"different fields in each place", tf("cleanPodPolicy: None\n  runPolicy: {backoffLimit: 3}")},
		{"a pod name of 63 characters: Worker 9", named(long[:54], pytorchRoles("Worker=10"))},
		{"a pod name of 63 characters: Worker 10", named(long[:53], pytorchRoles("Worker=11"))},
		{"a pod name of 63 characters: the autoscaler's Worker 10", named(long[:53], pytorch("elasticPolicy: {maxReplicas: 11}"))},
		{"a pod name of 63 characters: Evaluator 0", named(long[:51], tfRoles("Worker", "Evaluator"))},
		{"a role of 0 makes no pod name", named(long[:52], tfRoles("Worker", "Evaluator=0"))},
		{"the name that always fits", named(long[:45], pytorchRoles("Worker=10000"))},
		{"the name that always fits a TFJob", named(long[:42], tfRoles("Worker", "Evaluator=10000"))},
		{"min equals max", pytorch("elasticPolicy: {minReplicas: 2, maxReplicas: 2}")},
		{"an elastic job in lower case", pytorch("elasticPolicy: {minReplicas: 1}\n  pytorchReplicaSpecs: " + roles(pytorchPod, "worker"))},
		{"left to MultiKueue", pytorch("runPolicy: {managedBy: kueue.x-k8s.io/multikueue}")},
		{"ephemeral containers, which no client may lose", pytorch("pytorchReplicaSpecs: {Worker: {template: {spec: {" +
			"containers: [{name: pytorch, image: train}], ephemeralContainers: [{name: debug, image: tools, targetContainerName: pytorch}]}}}}")},
		{"an empty successPolicy", tf(`successPolicy: ""`)},
	} {
		t.Run(row.name, func(t *testing.T) {
			dropped, refusals := admit(t, parse(t, row.manifest), nil)
			if len(dropped)+len(refusals) > 0 {
				t.Errorf("dropped %q, refused %q:\n%s", dropped, refusals, row.manifest)
			}
		})
	}
}

func TestEdits(t *testing.T) {
	for _, row := range []struct{ name, before, after, refusal string }{
		{"the queue is kept", pytorch("runPolicy: {schedulingPolicy: {queue: a}}"), pytorch("runPolicy: {schedulingPolicy: {queue: a}, suspend: true}"), ""},
		{"the queue is changed", pytorch("runPolicy: {schedulingPolicy: {queue: a}}"), pytorch("runPolicy: {schedulingPolicy: {queue: b}}"),
			`spec.runPolicy.schedulingPolicy.queue: Invalid value: "b": queue cannot be changed: create a new job`},
		{"a running job is given to MultiKueue", pytorch("nprocPerNode: gpu"), pytorch("runPolicy: {managedBy: kueue.x-k8s.io/multikueue}"),
			"spec: Invalid value: spec.runPolicy.managedBy cannot be changed: create a new job"},
		{"a job is taken from MultiKueue", tf("runPolicy: {managedBy: kueue.x-k8s.io/multikueue}"), tf("backoffLimit: 1"),
			"spec: Invalid value: spec.runPolicy.managedBy cannot be changed: create a new job"},
		{"the default manager is written out", tf("backoffLimit: 1"), tf("runPolicy: {managedBy: kubeflow.org/training-operator}"), ""},
		{"replicas are scaled", pytorchRoles("Worker=2"), pytorchRoles("Worker=5"), ""},
		{"replicas are scaled beyond the name", named(strings.Repeat("a", 54), pytorchRoles("Worker=2")), named(strings.Repeat("a", 54), pytorchRoles("Worker=12")),
			"metadata.name: Invalid value: pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"},
		{"a job that was stored before there were rules, its status is written", named(strings.Repeat("a", 60)+".b", pytorchRoles("Worker=2")),
			named(strings.Repeat("a", 60)+".b", pytorchRoles("Worker=2")) + "\nstatus: {attempt: 1}", ""},
		{"likewise of the other kind", named(strings.Repeat("a", 70), tfRoles("Worker=2")), named(strings.Repeat("a", 70), tfRoles("Worker=2")) + "\nstatus: {attempt: 1}", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, refusals := admit(t, parse(t, row.after), parse(t, row.before))
			var want []string
			if row.refusal != "" {
				want = []string{row.refusal}
			}
			if diff := cmp.Diff(want, refusals); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTyposInATemplateAreSeen(t *testing.T) {
	object := parse(t, pytorch("pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: train, resource: {}}]}}}}"))
	dropped, _ := admit(t, object, nil)
	if diff := cmp.Diff([]string{"spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].resource"}, dropped); diff != "" {
		t.Errorf("unknown fields (-want +got):\n%s", diff)
	}
}

func TestLabelsOfATemplateAreKept(t *testing.T) {
	object := parse(t, pytorch("pytorchReplicaSpecs: {Worker: {template: {metadata: {labels: {team: a}, annotations: {b: c}}, spec: {containers: [{name: pytorch}]}}}}"))
	admit(t, object, nil)
	labels, _, _ := unstructured.NestedStringMap(object.Object, "spec", "pytorchReplicaSpecs", "Worker", "template", "metadata", "labels")
	if labels["team"] != "a" {
		t.Errorf("labels after admission: %v", labels)
	}
}
