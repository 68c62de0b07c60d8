package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/testing/admission"
)

// job is a TrainJob with a runtime and these lines of spec.
func job(lines ...string) string {
	return named("mnist", "runtimeRef: {name: torch-distributed}", lines...)
}

func named(name string, lines string, more ...string) string {
	return fmt.Sprintf("apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: %s}\nspec:\n  %s\n", name,
		strings.Join(append([]string{lines}, more...), "\n  "))
}

// runtimeWith is a runtime whose one step trains, with these lines of spec.
func runtimeWith(lines ...string) string {
	step := "template: {spec: {replicatedJobs: [{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, " +
		"spec: {template: {spec: {containers: [{name: node, image: torch}]}}}}}]}}"
	return "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\nmetadata: {name: torch}\nspec:\n  " +
		strings.Join(append(lines, step), "\n  ") + "\n"
}

// patch is a TrainJob with a patch of the step node's pods.
func patch(pod string, more ...string) string {
	return job(append(more, "runtimePatches: [{manager: kueue.x-k8s.io/manager, trainingRuntimeSpec: {template: {spec: {replicatedJobs: "+
		"[{name: node, template: {spec: {template: {spec: "+pod+"}}}}]}}}}]")...)
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	long := strings.Repeat("a", 57)
	for _, row := range []struct{ name, manifest, refusal string }{
		{"no runtime", named("mnist", "suspend: true"), "spec.runtimeRef: Required value"},
		{"a runtime without a name", named("mnist", "runtimeRef: {kind: TrainingRuntime}"), "spec.runtimeRef.name: Required value"},
		{"an empty name", named("mnist", "runtimeRef: {name: ''}"),
			`spec.runtimeRef.name: Invalid value: "": spec.runtimeRef.name in body should be at least 1 chars long`},
		{"a kind that is none", named("mnist", "runtimeRef: {name: a, kind: Deployment}"),
			"spec.runtimeRef: Invalid value: there is no such kind of runtime: use TrainingRuntime or ClusterTrainingRuntime of trainer.kubeflow.org"},
		{"a group that is none", named("mnist", "runtimeRef: {name: a, apiGroup: apps}"),
			"spec.runtimeRef: Invalid value: there is no such kind of runtime: use TrainingRuntime or ClusterTrainingRuntime of trainer.kubeflow.org"},
		{"a name with a dot", named("mnist.v2", "runtimeRef: {name: a}"),
			"metadata.name: Invalid value: the job's Service has the same name, so use lower-case letters, digits and '-', a letter first and no '-' last"},
		{"a name that leaves no room for pods", named(long, "runtimeRef: {name: a}"),
			"metadata.name: Invalid value: pods are named <name>-<step>-<index> and have at most 63 characters: use a shorter name (40 characters fit the usual steps)"},
		{"no nodes", job("trainer: {numNodes: 0}"),
			"spec.trainer.numNodes: Invalid value: 0: spec.trainer.numNodes in body should be greater than or equal to 1"},
		{"no processes", job("trainer: {numProcPerNode: 0}"),
			"spec.trainer.numProcPerNode: Invalid value: 0: spec.trainer.numProcPerNode in body should be greater than or equal to 1"},
		{"one variable twice", job("trainer: {env: [{name: A, value: b}, {name: A, value: c}]}"),
			`spec.trainer.env[1]: Duplicate value: {"name":"A"}`},
		{"a dataset without a scheme", job("initializer: {dataset: {storageUri: data}}"),
			`spec.initializer.dataset.storageUri: Invalid value: "data": storageUri is an address with a scheme, as in hf://user/name or s3://bucket/path`},
		{"a model without a path", job("initializer: {model: {storageUri: 'hf://'}}"),
			`spec.initializer.model.storageUri: Invalid value: "hf://": storageUri is an address with a scheme, as in hf://user/name or s3://bucket/path`},
		{"no time at all", job("activeDeadlineSeconds: 0"),
			"spec.activeDeadlineSeconds: Invalid value: 0: spec.activeDeadlineSeconds in body should be greater than or equal to 1"},
		{"negative ttl", job("ttlSecondsAfterFinished: -1"),
			"spec.ttlSecondsAfterFinished: Invalid value: -1: spec.ttlSecondsAfterFinished in body should be greater than or equal to 0"},
		{"unknown manager", job("managedBy: somebody"),
			`spec.managedBy: Unsupported value: "somebody": supported values: "trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue"`},
		{"a patch of nobody", job("runtimePatches: [{manager: kueue}]"),
			`spec.runtimePatches[0].manager: Invalid value: "kueue": manager is a path below a domain, as in kueue.x-k8s.io/manager`},
		{"two patches of one manager", job("runtimePatches: [{manager: a/b}, {manager: a/b}]"),
			`spec.runtimePatches[1]: Duplicate value: {"manager":"a/b"}`},
		{"a patched environment", patch("{containers: [{name: node, env: [{name: A, value: b}]}]}"),
			"spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec.containers: Invalid value: " +
				"the environment of node, dataset-initializer and model-initializer is set in spec.trainer.env and spec.initializer: move it there"},

		{"a runtime without a spec", "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\nmetadata: {name: a}", "spec: Required value"},
		{"an empty runtime", "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\nmetadata: {name: a}\nspec: {}",
			"spec: Invalid value: 0: spec in body should have at least 1 properties"},
		{"two frameworks", runtimeWith("mlPolicy: {torch: {}, jax: {}}"),
			"spec.mlPolicy: Invalid value: mlPolicy names several frameworks: keep one of torch, mpi, flux, jax and xgboost"},
		{"no nodes in a runtime", runtimeWith("mlPolicy: {numNodes: 0}"),
			"spec.mlPolicy.numNodes: Invalid value: 0: spec.mlPolicy.numNodes in body should be greater than or equal to 1"},
		{"a fixed number of elastic nodes", runtimeWith("mlPolicy: {numNodes: 2, torch: {elasticPolicy: {minNodes: 1, maxNodes: 4}}}"),
			"spec.mlPolicy: Invalid value: numNodes and torch.elasticPolicy exclude each other: remove numNodes, the number of nodes is between minNodes and maxNodes"},
		{"min above max", runtimeWith("mlPolicy: {torch: {elasticPolicy: {minNodes: 4, maxNodes: 2}}}"),
			"spec.mlPolicy.torch.elasticPolicy: Invalid value: minNodes is more than maxNodes: lower the one or raise the other"},
		{"min below 1", runtimeWith("mlPolicy: {torch: {elasticPolicy: {minNodes: 0}}}"),
			"spec.mlPolicy.torch.elasticPolicy.minNodes: Invalid value: 0: spec.mlPolicy.torch.elasticPolicy.minNodes in body should be greater than or equal to 1"},
		{"negative restarts", runtimeWith("mlPolicy: {torch: {elasticPolicy: {minNodes: 1, maxRestarts: -1}}}"),
			"spec.mlPolicy.torch.elasticPolicy.maxRestarts: Invalid value: -1: spec.mlPolicy.torch.elasticPolicy.maxRestarts in body should be greater than or equal to 0"},
		{"node among the further containers", runtimeWith("mlPolicy: {torch: {envInjection: {targets: [{jobName: a, containerNames: [node]}]}}}"),
			"spec.mlPolicy.torch.envInjection.targets[0].containerNames: Invalid value: the container node always gets these variables: remove it"},
		{"unknown MPI", runtimeWith("mlPolicy: {mpi: {mpiImplementation: Intel}}"),
			`spec.mlPolicy.mpi.mpiImplementation: Unsupported value: "Intel": supported values: "OpenMPI", ""`},
		{"no Flux processes", runtimeWith("mlPolicy: {flux: {numProcPerNode: 0}}"),
			"spec.mlPolicy.flux.numProcPerNode: Invalid value: 0: spec.mlPolicy.flux.numProcPerNode in body should be greater than or equal to 1"},
		{"two gang schedulers", runtimeWith("podGroupPolicy: {coscheduling: {}, volcano: {}}"),
			"spec.podGroupPolicy: Invalid value: podGroupPolicy names two schedulers: keep coscheduling or volcano"},
		{"unknown cleanPodPolicy", runtimeWith("runPolicy: {cleanPodPolicy: Sometimes}"),
			`spec.runPolicy.cleanPodPolicy: Unsupported value: "Sometimes": supported values: "None", "Running", "All"`},
		{"negative backoffLimit", runtimeWith("runPolicy: {backoffLimit: -1}"),
			"spec.runPolicy.backoffLimit: Invalid value: -1: spec.runPolicy.backoffLimit in body should be greater than or equal to 0"},
		{"a step of many Jobs", strings.Replace(runtimeWith(), "{name: node, template", "{name: node, replicas: 2, template", 1),
			"spec.template: Invalid value: a step is one Job: leave out replicas, and set mlPolicy.numNodes for the number of pods that train"},
		{"a dependency on nothing in particular", strings.Replace(runtimeWith(), "{name: node, template", "{name: node, dependsOn: [{name: a, status: Started}], template", 1),
			`spec.template.spec.replicatedJobs[0].dependsOn[0].status: Unsupported value: "Started": supported values: "Ready", "Complete"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, refusals := admission.Admit(t, admission.Parse(t, row.manifest), nil)
			if diff := cmp.Diff([]string{row.refusal}, refusals); diff != "" {
				t.Errorf("refusals (-want +got):\n%s\nof\n%s", diff, row.manifest)
			}
		})
	}
}

func TestAcceptedAsItIs(t *testing.T) {
	for _, row := range []struct{ name, manifest string }{
		{"the least", job()},
		{"a runtime of the namespace", named("mnist", "runtimeRef: {name: mine, kind: TrainingRuntime, apiGroup: trainer.kubeflow.org}")},
		{"everything of a trainer", job("trainer: {image: a, command: [b], args: [c], env: [{name: D, value: e}], numNodes: 2, numProcPerNode: 3, resourcesPerNode: {limits: {cpu: 1}}}")},
		{"data and model", job("initializer: {dataset: {storageUri: 'hf://a/b', secretRef: {name: s}}, model: {storageUri: '', env: [{name: A}]}}")},
		{"a patch of everything", patch("{serviceAccountName: a, volumes: [{name: v, emptyDir: {}}], containers: [{name: node, volumeMounts: [{name: v, mountPath: /v}]}, {name: side, env: [{name: A}]}], " +
			"tolerations: [{key: gpu}], nodeSelector: {a: b}, schedulingGates: [{name: g}], imagePullSecrets: [{name: s}], terminationGracePeriodSeconds: 0, securityContext: {runAsUser: 1}}")},
		{"all metadata of a patch that Trainer stores", strings.Replace(patch("{}"), "{template: {spec: {replicatedJobs",
			"{template: {metadata: {name: a, namespace: b, finalizers: [c/d], labels: {e: f}, annotations: {g: h}}, spec: {replicatedJobs", 1)},
		{"left to MultiKueue", job("managedBy: kueue.x-k8s.io/multikueue")},
		{"gone at once", job("ttlSecondsAfterFinished: 0", "activeDeadlineSeconds: 1")},
		{"a runtime without a framework", runtimeWith()},
		{"an elastic runtime", runtimeWith("mlPolicy: {torch: {elasticPolicy: {minNodes: 1, maxNodes: 4, maxRestarts: 0, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}}}")},
		{"an elastic runtime without bounds", runtimeWith("mlPolicy: {torch: {elasticPolicy: {maxRestarts: 1}}}")},
		{"a runtime with a whole policy", runtimeWith("runPolicy: {cleanPodPolicy: All, ttlSecondsAfterFinished: 0, activeDeadlineSeconds: 1, backoffLimit: 0}")},
	} {
		t.Run(row.name, func(t *testing.T) {
			dropped, refusals := admission.Admit(t, admission.Parse(t, row.manifest), nil)
			if len(dropped)+len(refusals) > 0 {
				t.Errorf("dropped %q, refused %q:\n%s", dropped, refusals, row.manifest)
			}
		})
	}
}

func TestEdits(t *testing.T) {
	const frozen = "only numNodes of trainer can be changed: create a new job"
	suspended := "runtimePatches can only be changed while the job is suspended: set suspend to true with the change, and to false after it"
	for _, row := range []struct{ name, before, after, refusal string }{
		{"suspended", job(), job("suspend: true"), ""},
		{"scaled", job("trainer: {image: a, numNodes: 1}"), job("trainer: {image: a, numNodes: 3}"), ""},
		{"scaled from the runtime's number", job(), job("trainer: {numNodes: 3}"), ""},
		{"back to the runtime's number", job("trainer: {numNodes: 3}"), job(), ""},
		{"another runtime", job(), named("mnist", "runtimeRef: {name: other}"), "spec.runtimeRef: Invalid value: runtimeRef cannot be changed: create a new job"},
		{"another image", job("trainer: {image: a}"), job("trainer: {image: b}"), `spec.trainer.image: Invalid value: "b": image cannot be changed: create a new job`},
		{"another command", job("trainer: {command: [a]}"), job("trainer: {command: [b]}"), "spec.trainer.command: Invalid value: command cannot be changed: create a new job"},
		{"other arguments", job("trainer: {args: [a]}"), job("trainer: {args: [a, b]}"), "spec.trainer.args: Invalid value: args cannot be changed: create a new job"},
		{"another environment", job("trainer: {env: [{name: A, value: a}]}"), job("trainer: {env: [{name: A, value: b}]}"),
			"spec.trainer.env: Invalid value: env cannot be changed: create a new job"},
		{"other resources", job("trainer: {resourcesPerNode: {limits: {cpu: 1}}}"), job("trainer: {resourcesPerNode: {limits: {cpu: 2}}}"),
			"spec.trainer.resourcesPerNode: Invalid value: resourcesPerNode cannot be changed: create a new job"},
		{"more processes", job("trainer: {numProcPerNode: 1}"), job("trainer: {numProcPerNode: 2}"),
			"spec.trainer.numProcPerNode: Invalid value: 2: numProcPerNode cannot be changed: create a new job"},
		{"an image where there was none", job("trainer: {numNodes: 1}"), job("trainer: {numNodes: 1, image: a}"), "spec.trainer: Invalid value: " + frozen},
		{"a trainer where there was none", job(), job("trainer: {command: [a]}"), "spec.trainer: Invalid value: " + frozen},
		{"no trainer any more", job("trainer: {env: [{name: A, value: a}]}"), job(), "spec.trainer: Invalid value: " + frozen},
		{"another dataset", job("initializer: {dataset: {storageUri: 'a://b'}}"), job("initializer: {dataset: {storageUri: 'a://c'}}"),
			"spec.initializer: Invalid value: initializer cannot be changed: create a new job"},
		{"a dataset where there was none", job(), job("initializer: {dataset: {storageUri: 'a://c'}}"),
			"spec.initializer: Invalid value: initializer cannot be changed: create a new job"},
		{"another deadline", job("activeDeadlineSeconds: 1"), job("activeDeadlineSeconds: 2"),
			"spec.activeDeadlineSeconds: Invalid value: 2: activeDeadlineSeconds cannot be changed: create a new job"},
		{"a deadline where there was none", job(), job("activeDeadlineSeconds: 1"),
			"spec.activeDeadlineSeconds: Invalid value: activeDeadlineSeconds cannot be changed: create a new job"},
		{"no deadline any more", job("activeDeadlineSeconds: 1"), job(),
			"spec.activeDeadlineSeconds: Invalid value: activeDeadlineSeconds cannot be changed: create a new job"},
		{"another ttl", job("ttlSecondsAfterFinished: 1"), job("ttlSecondsAfterFinished: 2"), ""},
		{"another manager", job("managedBy: kueue.x-k8s.io/multikueue"), job("managedBy: trainer.kubeflow.org/trainjob-controller"),
			`spec.managedBy: Invalid value: "trainer.kubeflow.org/trainjob-controller": managedBy cannot be changed: create a new job`},
		{"a patch of a running job", job(), patch("{nodeSelector: {a: b}}"), "spec.runtimePatches: Invalid value: " + suspended},
		{"another patch of a running job", patch("{nodeSelector: {a: b}}"), patch("{nodeSelector: {a: c}}"), "spec.runtimePatches: Invalid value: " + suspended},
		{"a patch of a suspended job", job("suspend: true"), patch("{nodeSelector: {a: b}}", "suspend: true"), ""},
		{"a patch as the job is let run", job("suspend: true"), patch("{nodeSelector: {a: b}}", "suspend: false"), ""},
		{"a runtime's failure policy", runtimeWith(), strings.Replace(runtimeWith(), "{spec: {replicatedJobs", "{spec: {failurePolicy: {maxRestarts: 3}, replicatedJobs", 1), ""},
		{"another failure policy", strings.Replace(runtimeWith(), "{spec: {replicatedJobs", "{spec: {failurePolicy: {maxRestarts: 3}, replicatedJobs", 1),
			strings.Replace(runtimeWith(), "{spec: {replicatedJobs", "{spec: {failurePolicy: {maxRestarts: 4}, replicatedJobs", 1), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := admission.Parse(t, row.before)
			if _, refusals := admission.Admit(t, before, nil); len(refusals) > 0 {
				t.Fatalf("the job before is refused: %q", refusals)
			}
			_, refusals := admission.Admit(t, admission.Parse(t, row.after), before)
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

func TestTyposAreSeen(t *testing.T) {
	for manifest, want := range map[string]string{
		strings.Replace(runtimeWith(), "image: torch", "imgae: torch", 1): "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers[0].imgae",
		patch("{nodeSelectors: {a: b}}"):                                  "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec.nodeSelectors",
	} {
		dropped, _ := admission.Admit(t, admission.Parse(t, manifest), nil)
		if diff := cmp.Diff([]string{want}, dropped); diff != "" {
			t.Errorf("unknown fields (-want +got):\n%s", diff)
		}
	}
}
