package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/trainyard/trainyard/api/crds"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
)

const chartFolder = "../charts/trainyard"

// installed is what an installation creates, by "Kind/name".
type installed map[string]runtime.Object

func kustomized(t *testing.T, folder string) installed {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatalf("building %s: %v", folder, err)
	}
	stream, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(stream))
}

// helmed renders the chart as helm install would, into the namespace that kustomize uses.
func helmed(t *testing.T, values map[string]any) installed {
	t.Helper()
	files, err := rendered(values)
	if err != nil {
		t.Fatal(err)
	}
	var stream []string
	for name, text := range files {
		if filepath.Ext(name) == ".yaml" {
			stream = append(stream, text)
		}
	}
	return decode(t, strings.Join(stream, "\n---\n"))
}

// rendered are the chart's files with these values, by path.
func rendered(values map[string]any) (map[string]string, error) {
	chart, err := loader.Load(chartFolder)
	if err != nil {
		return nil, err
	}
	render, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "jobs", Namespace: "trainyard-system"}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, render)
}

// decode reads a YAML stream strictly: a field that does not exist is an error.
func decode(t *testing.T, stream string) installed {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, trainer.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	all := installed{}
	for _, document := range strings.Split(stream, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		object, kind, err := decoder.Decode([]byte(document), nil, nil)
		if runtime.IsNotRegisteredError(err) && strings.Contains(document, "apiVersion: monitoring.coreos.com/v1") {
			object, kind, err = prometheusObject(document)
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		all[kind.Kind+"/"+object.(metav1.Object).GetName()] = object
	}
	return all
}

func (all installed) names() []string {
	var names []string
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func TestTheChartInstallsWhatKustomizeDoes(t *testing.T) {
	helm, kustomize := helmed(t, nil), kustomized(t, "default")
	maps.Copy(kustomize, kustomized(t, "runtimes"))
	delete(kustomize, "Namespace/trainyard-system") // Helm is told its namespace.
	for _, all := range []installed{helm, kustomize} {
		if all["Namespace/kubeflow-system"] == nil {
			t.Error("nobody creates the namespace kubeflow-system")
		}
		delete(all, "Namespace/kubeflow-system") // Helm keeps it.
	}
	for _, name := range kustomize.names() {
		if strings.HasPrefix(name, "CustomResourceDefinition/") {
			delete(kustomize, name) // Helm installs them by itself, from the files tested below.
		}
	}
	if diff := cmp.Diff(kustomize.names(), helm.names()); diff != "" {
		t.Fatalf("objects (-kustomize +helm):\n%s", diff)
	}
	for name := range kustomize {
		if diff := cmp.Diff(kustomize[name], helm[name]); diff != "" {
			t.Errorf("%s (-kustomize +helm):\n%s", name, diff)
		}
	}
}

func TestEveryInstallerHasTheEmbeddedDefinitions(t *testing.T) {
	embedded, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	built := kustomized(t, "crd")
	if len(built) != len(embedded) {
		t.Errorf("config/crd has %d objects, want the %d definitions", len(built), len(embedded))
	}
	for _, crd := range embedded {
		if diff := cmp.Diff(runtime.Object(crd), built["CustomResourceDefinition/"+crd.Name]); diff != "" {
			t.Errorf("%s in config/crd (-embedded +built):\n%s", crd.Name, diff)
		}
	}
	for _, folder := range []string{"", "jobset/"} {
		want, got := files(t, "../api/crds/"+folder+"*_*.yaml"), files(t, chartFolder+"/crds/"+folder+"*_*.yaml")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the chart's definitions (-api/crds +chart):\n%s", diff)
		}
	}
}

// Helm creates what is in the folder crds if it is not there, and neither replaces nor removes it.
func TestHelmOffersTheDefinitionOfJobSets(t *testing.T) {
	chart, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, crd := range chart.CRDObjects() {
		if string(crd.File.Data) == string(crds.JobSet) {
			found = append(found, crd.Filename)
		}
	}
	if len(found) != 1 {
		t.Errorf("the chart's definitions of JobSets are %q, want one", found)
	}
	for name := range kustomized(t, "default") {
		if strings.HasSuffix(name, "jobset.x-k8s.io") {
			t.Errorf("kustomize has %s, and would replace or remove that of a cluster", name)
		}
	}
}

func files(t *testing.T, pattern string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = string(data)
	}
	return all
}

func TestTheOperatorRunsWithoutPrivileges(t *testing.T) {
	pod := kustomized(t, "default")["Deployment/trainyard-operator"].(*appsv1.Deployment).Spec.Template.Spec
	if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile == nil {
		t.Error("the pod may run as root or without seccomp")
	}
	for _, container := range pod.Containers {
		security := container.SecurityContext
		if *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || !slices.Contains(security.Capabilities.Drop, "ALL") {
			t.Errorf("the container %s has privileges", container.Name)
		}
	}
}

// rights lists what a role allows, one "group/resource verb" each.
func rights(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, fmt.Sprintf("%s/%s %s", group, resource, verb))
				}
			}
		}
	}
	return all
}

func TestTheOperatorHasOnlyTheRightsItNeeds(t *testing.T) {
	for name, object := range kustomized(t, "default") {
		role, cluster := object.(*rbacv1.ClusterRole)
		if !cluster || !strings.HasPrefix(name, "ClusterRole/trainyard-operator") {
			continue
		}
		for _, right := range rights(role.Rules) {
			for _, forbidden := range []string{"*", "/secrets ", "/configmaps ", "/leases ", "pods/exec", "rbac.authorization.k8s.io", "jobs update", "jobs patch", "nodes list", "nodes watch"} {
				if strings.Contains(right, forbidden) {
					t.Errorf("%s allows %q everywhere", name, right)
				}
			}
		}
	}
}

func TestAnOperatorOfOneNamespaceHasNoRightsElsewhere(t *testing.T) {
	all := helmed(t, map[string]any{"watchNamespace": "team-a"})
	for name, object := range all {
		if role, cluster := object.(*rbacv1.ClusterRole); cluster && strings.HasPrefix(name, "ClusterRole/trainyard-operator") {
			if diff := cmp.Diff([]string{
				"/nodes get", "trainer.kubeflow.org/clustertrainingruntimes get", "trainer.kubeflow.org/clustertrainingruntimes list",
				"trainer.kubeflow.org/clustertrainingruntimes watch",
			}, rights(role.Rules)); diff != "" {
				t.Errorf("%s: rights in the whole cluster (-want +got):\n%s", name, diff)
			}
		}
	}
	role, binding := all["Role/trainyard-operator-jobs"].(*rbacv1.Role), all["RoleBinding/trainyard-operator-jobs"].(*rbacv1.RoleBinding)
	if role.Namespace != "team-a" || binding.Namespace != "team-a" || binding.RoleRef.Kind != "Role" {
		t.Errorf("the rights are in %s, bound in %s to a %s", role.Namespace, binding.Namespace, binding.RoleRef.Kind)
	}
	args := all["Deployment/trainyard-operator"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--namespace=team-a") {
		t.Errorf("the operator watches everything: %q", args)
	}
}

func TestValuesOfTheChart(t *testing.T) {
	all := helmed(t, map[string]any{
		"replicas": 2, "metricsPort": 0, "healthPort": 0, "userRoles": false,
		"controllerThreads": 4, "kubeAPIQPS": 50, "kubeAPIBurst": 100,
		"image": map[string]any{"repository": "example.com/operator", "tag": "v1"},
	})
	deployment := all["Deployment/trainyard-operator"].(*appsv1.Deployment)
	container := deployment.Spec.Template.Spec.Containers[0]
	want := []string{"--leader-elect=true", "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--controller-threads=4", "--kube-api-qps=50", "--kube-api-burst=100"}
	if diff := cmp.Diff(want, container.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if *deployment.Spec.Replicas != 2 || container.Image != "example.com/operator:v1" {
		t.Errorf("%d replicas of %s", *deployment.Spec.Replicas, container.Image)
	}
	if container.LivenessProbe != nil || container.ReadinessProbe != nil || len(container.Ports) > 0 {
		t.Error("a port that is switched off is still used")
	}
	for _, name := range []string{"Service/trainyard-operator", "ClusterRole/trainyard-jobs-edit"} {
		if all[name] != nil {
			t.Errorf("%s is there although it is switched off", name)
		}
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	for _, row := range []struct {
		sentence string
		values   map[string]any
		want     string
	}{
		{"a misspelled value", map[string]any{"replica": 2}, "replica"},
		{"two replicas without leader election", map[string]any{"replicas": 2, "leaderElect": false}, "several operators would run the same jobs"},
		{"a dashboard without a recorder", map[string]any{"ui": map[string]any{"enabled": true}}, "the dashboard shows what the recorder has"},
		{"records that would be lost", map[string]any{"recorder": map[string]any{"enabled": true, "volume": map[string]any{"size": ""}}}, "would be lost with the pod"},
		{"another kind of store", map[string]any{"recorder": map[string]any{"enabled": true, "store": "gs://bucket"}}, "/recorder/store"},
		{"scraping without metrics", map[string]any{"metricsPort": 0, "serviceMonitor": map[string]any{"enabled": true}}, "no metrics to scrape"},
	} {
		if _, err := rendered(row.values); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: the answer is %v, want %q", row.sentence, err, row.want)
		}
	}
}
