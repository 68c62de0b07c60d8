package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recording are values that let the recorder run.
func recording(more ...any) map[string]any {
	return map[string]any{"recorder": enabled(more...), "ui": enabled()}
}

func TestTheRecorderChangesNothing(t *testing.T) {
	for namespace, want := range map[string][]string{
		"": {
			"/events get", "/events list", "/events watch", "/namespaces get", "/pods get", "/pods list", "/pods watch", "/pods/log get",
			"authentication.k8s.io/tokenreviews create", "authorization.k8s.io/subjectaccessreviews create", "kubeflow.org/jaxjobs get", "kubeflow.org/jaxjobs list",
		},
		"team-a": {"/namespaces get", "authentication.k8s.io/tokenreviews create", "authorization.k8s.io/subjectaccessreviews create"},
	} {
		values := recording()
		values["watchNamespace"] = namespace
		all, without := helmed(t, values), helmed(t, map[string]any{"watchNamespace": namespace})
		var everywhere []string
		for name, object := range all {
			role, ok := object.(*rbacv1.ClusterRole)
			if ok && strings.HasPrefix(name, "ClusterRole/trainyard-recorder") {
				everywhere = append(everywhere, rights(role.Rules)...)
				continue
			}
			if diff := cmp.Diff(without[name], object); without[name] != nil && diff != "" {
				t.Errorf("%s differs with a recorder (-without +with):\n%s", name, diff)
			}
		}
		for _, right := range everywhere {
			if verb := right[strings.LastIndex(right, " ")+1:]; !slices.Contains([]string{"get", "list", "watch"}, verb) && !strings.Contains(right, "reviews create") {
				t.Errorf("the recorder has the right %q", right)
			}
		}
		slices.Sort(everywhere)
		if namespace == "" {
			everywhere = everywhere[:len(want)]
		}
		if diff := cmp.Diff(want, everywhere); diff != "" {
			t.Errorf("rights in the whole cluster, for namespace %q (-want +got):\n%s", namespace, diff)
		}
		if role, ok := all["Role/trainyard-recorder-jobs"].(*rbacv1.Role); namespace != "" && (!ok || role.Namespace != namespace || len(role.Rules) < 4) {
			t.Errorf("the recorder of one namespace has the role %+v", role)
		}
	}
}

func TestTheRecorderAndTheDashboardShareAVolume(t *testing.T) {
	values := recording("store", "s3://bucket/jobs", "envFrom", []any{map[string]any{"secretRef": map[string]any{"name": "bucket"}}})
	values["ui"] = enabled("hosts", []any{"jobs.example"}, "tlsSecretName", "tls")
	pod := helmed(t, values)["Deployment/trainyard-recorder"].(*appsv1.Deployment).Spec.Template.Spec
	if pod.ServiceAccountName != "trainyard-recorder" || !*pod.SecurityContext.RunAsNonRoot || len(pod.Containers) != 2 {
		t.Fatalf("the pod is %+v", pod)
	}
	recorder, ui := pod.Containers[0], pod.Containers[1]
	for _, c := range pod.Containers {
		if security := c.SecurityContext; *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || !slices.Contains(security.Capabilities.Drop, "ALL") {
			t.Errorf("the container %s has privileges", c.Name)
		}
		if !slices.Contains(c.Args, "--store=s3://bucket/jobs") || !slices.Contains(c.Args, "--dir=/records") || c.EnvFrom[0].SecretRef.Name != "bucket" {
			t.Errorf("the container %s finds no bucket: %q", c.Name, c.Args)
		}
	}
	if recorder.VolumeMounts[0].ReadOnly || !ui.VolumeMounts[0].ReadOnly {
		t.Error("only the recorder writes")
	}
	if !slices.Contains(ui.Args, "--host=jobs.example,trainyard-ui.trainyard-system.svc") || !slices.Contains(ui.Args, "--tls-cert-file=/tls/tls.crt") {
		t.Errorf("the dashboard has the arguments %q", ui.Args)
	}
	if claim := pod.Volumes[0].PersistentVolumeClaim; claim == nil || claim.ClaimName != "trainyard-recorder" {
		t.Errorf("the volume is %+v", pod.Volumes[0])
	}
}

func TestObjectsOfTheRecorder(t *testing.T) {
	bucket := recording("store", "s3://bucket", "volume", map[string]any{"size": ""})
	bucket["networkPolicy"] = enabled()
	bucket["ui"] = enabled("from", []any{map[string]any{"podSelector": map[string]any{}}})
	all := helmed(t, bucket)
	if all["PersistentVolumeClaim/trainyard-recorder"] != nil || all["Deployment/trainyard-recorder"].(*appsv1.Deployment).Spec.Template.Spec.Volumes[0].EmptyDir == nil {
		t.Error("with a bucket, a directory on the node is enough")
	}
	if port := all["Service/trainyard-ui"].(*corev1.Service).Spec.Ports[0]; port.Port != 80 || port.TargetPort.String() != "ui" {
		t.Errorf("the dashboard's port is %+v", port)
	}
	rules := all["NetworkPolicy/trainyard-recorder"].(*networkingv1.NetworkPolicy).Spec.Ingress
	if len(rules) != 3 || rules[0].Ports[0].Port.IntValue() != 8082 || len(rules[0].From) != 1 || rules[1].Ports[0].Port.IntValue() != 8080 || len(rules[2].Ports) != 2 {
		t.Errorf("the network policy has %+v", rules)
	}
	if all := helmed(t, nil); all["Deployment/trainyard-recorder"] != nil || all["ServiceAccount/trainyard-recorder"] != nil {
		t.Error("the recorder is installed although nobody asked for it")
	}
	if all := helmed(t, map[string]any{"recorder": enabled()}); all["Service/trainyard-ui"] != nil || len(all["Deployment/trainyard-recorder"].(*appsv1.Deployment).Spec.Template.Spec.Containers) != 1 {
		t.Error("the dashboard is installed although nobody asked for it")
	}
}

func TestPrometheusScrapesTheRecorder(t *testing.T) {
	for _, row := range []struct {
		sentence string
		values   map[string]any
		want     int // endpoints
	}{
		{"no recorder", map[string]any{"serviceMonitor": enabled()}, 0},
		{"a recorder", map[string]any{"serviceMonitor": enabled(), "recorder": enabled()}, 1},
		{"a recorder and the dashboard", map[string]any{"serviceMonitor": enabled(), "recorder": enabled(), "ui": enabled()}, 2},
		{"not wanted", map[string]any{"recorder": enabled()}, 0},
	} {
		all := helmed(t, row.values)
		ports := map[string]bool{}
		if deployment, ok := all["Deployment/trainyard-recorder"].(*appsv1.Deployment); ok {
			for _, c := range deployment.Spec.Template.Spec.Containers {
				for _, p := range c.Ports {
					ports[p.Name] = true
				}
			}
		}
		var endpoints []any
		if monitor, ok := all["PodMonitor/trainyard-recorder"].(*unstructured.Unstructured); ok {
			endpoints, _, _ = unstructured.NestedSlice(monitor.Object, "spec", "podMetricsEndpoints")
		}
		for _, e := range endpoints {
			if port, _ := e.(map[string]any)["port"].(string); !ports[port] {
				t.Errorf("%s: no container has the port %s", row.sentence, port)
			}
		}
		if len(endpoints) != row.want {
			t.Errorf("%s: %d endpoints, want %d", row.sentence, len(endpoints), row.want)
		}
	}
}
