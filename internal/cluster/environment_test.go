package cluster_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Apply(settings)
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	amount := func(name, divisor string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: name, Divisor: quantity(divisor)}}
	}
	fromMap := func(key string, optional bool) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: key, Optional: &optional,
		}}
	}
	pod := local.Pod("env", `env`)
	pod.Labels, pod.Annotations = map[string]string{"team": "blue"}, map[string]string{"note": "two words"}
	main := &pod.Spec.Containers[0]
	main.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: quantity("250m")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: quantity("1500m"), corev1.ResourceMemory: quantity("64Mi")},
	}
	main.EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		{Prefix: "KEY_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}}},
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Optional: ptr.To(true)}},
	}
	main.Env = []corev1.EnvVar{
		{Name: "PLAIN", Value: "a value with spaces, \"quotes\" and = signs"},
		{Name: "NAME", ValueFrom: field("metadata.name")},
		{Name: "NAMESPACE", ValueFrom: field("metadata.namespace")},
		{Name: "UID", ValueFrom: field("metadata.uid")},
		{Name: "TEAM", ValueFrom: field("metadata.labels['team']")},
		{Name: "NOTE", ValueFrom: field("metadata.annotations['note']")},
		{Name: "NODE", ValueFrom: field("spec.nodeName")},
		{Name: "ACCOUNT", ValueFrom: field("spec.serviceAccountName")},
		{Name: "POD_IP", ValueFrom: field("status.podIP")},
		{Name: "HOST_IP", ValueFrom: field("status.hostIP")},
		{Name: "CPUS", ValueFrom: amount("limits.cpu", "1")},
		{Name: "MILLIS", ValueFrom: amount("requests.cpu", "1m")},
		{Name: "MEMORY", ValueFrom: amount("limits.memory", "1Mi")},
		{Name: "RATE", ValueFrom: fromMap("rate", false)},
		{Name: "MAYBE", ValueFrom: fromMap("absent", true)},
		{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "password",
		}}},
		{Name: "COMPOSED", Value: "$(NAME) at $(RATE), $$(NAME) and $(UNKNOWN)"},
	}
	missing := local.Pod("missing", `true`)
	missing.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MISSING", ValueFrom: fromMap("absent", false)}}
	w.Create(pod, missing)

	pod = w.UntilPhase("env", corev1.PodSucceeded)
	got := map[string]string{}
	for line := range strings.Lines(w.Logs("env")) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		got[name] = value
	}
	for name, want := range map[string]string{
		"PLAIN": main.Env[0].Value, "NAME": "env", "NAMESPACE": w.Namespace, "UID": string(pod.UID), "TEAM": "blue", "NOTE": "two words",
		"NODE": pod.Spec.NodeName, "ACCOUNT": "default", "POD_IP": pod.Status.PodIP, "HOST_IP": pod.Status.HostIP,
		"CPUS": "2", "MILLIS": "250", "MEMORY": "64",
		"RATE": "0.1", "PASSWORD": "hunter2", "COMPOSED": "env at 0.1, $(NAME) and $(UNKNOWN)",
		"rate": "0.1", "name": "first", "KEY_password": "hunter2",
		"HOSTNAME": "env", "KUBERNETES_SERVICE_PORT": "443",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if value, set := got["MAYBE"]; set {
		t.Errorf("MAYBE is set, to %q, although its key is absent", value)
	}
	w.Await("CreateContainerConfigError", "get", "pod", "missing")
	w.Await(`couldn't find key absent in ConfigMap `+w.Namespace+`/settings`, "describe", "pod", "missing")
}
