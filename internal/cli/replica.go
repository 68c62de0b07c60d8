package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/trainyard/trainyard/internal/yard"
)

// replicaTarget is the container of a replica, for the verbs that reach into it: exec, cp and port-forward.
type replicaTarget struct {
	target
	container string
}

func addReplicaTarget(cmd *cobra.Command, t *replicaTarget) {
	addTarget(cmd, &t.target)
	cmd.Flags().StringVarP(&t.container, "container", "c", "", "another container than the one that trains")
}

// reached is a replica's container that runs now.
type reached struct {
	yard      *yard.Yard
	job       *yard.Job
	pod       *corev1.Pod
	container string
	// config is the access to the cluster, completed for requests about pods.
	config *rest.Config
}

// reach finds the container of a replica. An empty name is the only replica of the job.
func (t *replicaTarget) reach(ctx context.Context, jobName, replica string) (*reached, error) {
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	y, j, err := t.find(ctx, jobName)
	if err != nil {
		return nil, err
	}
	if replica, err = chooseReplica(j, replica); err != nil {
		return nil, err
	}
	pods, err := y.Pods(ctx, j)
	if err != nil {
		return nil, t.explain(err)
	}
	for i := range pods {
		if name, attempt := yard.ReplicaOf(&pods[i]); name != replica || attempt != j.Status.Attempt {
			continue
		}
		r := &reached{y, j, &pods[i], yard.ContainerOf(j, &pods[i]), forPods(config)}
		return r, t.choose(r)
	}
	return nil, fmt.Errorf("%s of %s has no pod now: %s says why", replica, j.Job.Name, hint(y, j, "why"))
}

// chooseReplica checks the name of a replica. A job with one replica needs none.
func chooseReplica(j *yard.Job, name string) (string, error) {
	all := replicasOf(j.Job)
	if name == "" && len(all) == 1 {
		return shortName(all[0]), nil
	}
	if name == "" {
		return "", usageError{fmt.Errorf("%s has %d replicas: name one of %s", j.Job.Name, len(all), replicaList(j.Job))}
	}
	r, err := findReplica(j.Job, name)
	return shortName(r), err
}

// choose selects the container that the flag names, and refuses one that does not run.
func (t *replicaTarget) choose(r *reached) error {
	var names []string
	for _, c := range r.pod.Spec.Containers {
		names = append(names, c.Name)
		if c.Name == t.container {
			r.container = c.Name
		}
	}
	if t.container != "" && r.container != t.container {
		return usageError{fmt.Errorf("%s has no container %s: it has %s", r.pod.Name, t.container, strings.Join(names, ", "))}
	}
	if r.pod.Status.Phase == corev1.PodSucceeded || r.pod.Status.Phase == corev1.PodFailed {
		return fmt.Errorf("%s has ended: %s shows what it wrote", r.pod.Name, hint(r.yard, r.job, "logs"))
	}
	for _, c := range r.pod.Status.ContainerStatuses {
		if c.Name == r.container && c.State.Running != nil {
			return nil
		}
	}
	return fmt.Errorf("%s does not run yet: %s says what it waits for", r.pod.Name, hint(r.yard, r.job, "why"))
}

// forPods completes the access to a cluster for requests about pods.
func forPods(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}
