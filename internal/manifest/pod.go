package manifest

import (
	"maps"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest/traceid"
)

// EnvAttempt is the variable that tells a replica which attempt it is part of.
const EnvAttempt = "TRAINYARD_ATTEMPT"

// Pod is the pod of a replica in an attempt. Its host name is its own name, and with the job's Service as subdomain it is
// found as <pod>.<job>: torch recognises the host of its store by that name. The pods of the job also find it as <pod>.
func (m *Manifest) Pod(r job.Replica, attempt int32) *corev1.Pod {
	template := m.Templates[r.Role].DeepCopy()
	name := m.Job.PodName(r)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: m.Job.Namespace, Labels: map[string]string{}, Annotations: template.Annotations,
			Finalizers: template.Finalizers, OwnerReferences: []metav1.OwnerReference{m.owner()},
		},
		Spec: template.Spec,
	}
	maps.Copy(pod.Labels, template.Labels)
	maps.Copy(pod.Labels, m.replicaLabels(r))
	pod.Labels[naming.LabelAttempt] = strconv.Itoa(int(attempt))
	if pod.Annotations == nil && (m.IndexKey != "" || m.Job.Elastic != nil) {
		pod.Annotations = map[string]string{}
	}
	if e := m.Job.Elastic; e != nil && e.Max < math.MaxInt32 { // without a maximum there are no bounds to record
		pod.Annotations[job.AnnotationBounds] = e.Bounds()
	}
	if m.IndexKey != "" {
		pod.Labels[m.IndexKey] = strconv.Itoa(int(r.Index))
		pod.Annotations[m.IndexKey] = pod.Labels[m.IndexKey]
	}
	if r == m.Leader {
		pod.Labels[naming.LabelJobRole] = "master"
	}
	role := m.role(r.Role)
	pod.Spec.RestartPolicy = m.Job.PodRestartPolicy(r)
	pod.Spec.Hostname, pod.Spec.Subdomain = name, m.Job.Name
	m.setEnvironment(pod, r, role, attempt)
	tolerateSilence(&pod.Spec)
	if m.Equip != nil {
		m.Equip(pod, r)
	}
	m.searchJob(&pod.Spec)
	m.joinGang(pod, r, attempt)
	return pod
}

// setEnvironment gives the containers their environment. The termination message of the training container gets the last lines of
// its log, so that they can be read after the pod is gone.
func (m *Manifest) setEnvironment(pod *corev1.Pod, r job.Replica, role job.Role, attempt int32) {
	env := m.Env(r, attempt)
	training := job.TrainingContainer(pod.Spec, role.Container)
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		AddEnv(c, env.Everywhere)
		AddEnv(c, env.Named[c.Name])
		if c.Name == training {
			AddEnv(c, env.Training)
			if c.TerminationMessagePolicy == "" {
				c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
			}
		}
		AddEnv(c, []corev1.EnvVar{{Name: EnvAttempt, Value: strconv.Itoa(int(attempt))}})
		if m.Traced {
			AddEnv(c, []corev1.EnvVar{{Name: traceid.Variable, Value: m.Trace.Context(m.Trace.Replica(attempt, ReplicaName(pod)))}})
		}
	}
}

// ReplicaName is the name of the replica that a pod is, as in worker-0.
func ReplicaName(pod *corev1.Pod) string {
	return pod.Labels[naming.LabelReplicaType] + "-" + pod.Labels[naming.LabelReplicaIndex]
}

// AddEnv adds variables to a container, but for those that it has.
func AddEnv(c *corev1.Container, env []corev1.EnvVar) {
	set := map[string]bool{}
	for _, e := range c.Env {
		set[e.Name] = true
	}
	for _, e := range env {
		if !set[e.Name] {
			c.Env = append(c.Env, e)
		}
	}
}

func (m *Manifest) role(name string) job.Role {
	for _, role := range m.Job.Roles {
		if role.Name == name {
			return role
		}
	}
	return job.Role{Name: name}
}

// jobLabels are those by which all children of a job are found.
func (m *Manifest) jobLabels() map[string]string {
	return map[string]string{
		naming.LabelOperatorName: naming.OperatorName(m.Owner.Kind),
		naming.LabelJobName:      m.Job.Name,
	}
}

// replicaLabels are those by which the pod of a replica is found, whatever its attempt.
func (m *Manifest) replicaLabels(r job.Replica) map[string]string {
	labels := m.jobLabels()
	labels[naming.LabelReplicaType] = strings.ToLower(r.Role)
	labels[naming.LabelReplicaIndex] = strconv.Itoa(int(r.Index))
	return labels
}

// Selector is the label query that finds all pods of a role.
func (m *Manifest) Selector(role string) string {
	labels := m.jobLabels()
	labels[naming.LabelReplicaType] = strings.ToLower(role)
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})
}
