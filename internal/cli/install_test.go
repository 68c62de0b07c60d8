package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trainyard/trainyard/api/crds"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// TestInstall uses a cluster without our kinds. It has no node: only the objects count.
func TestInstall(t *testing.T) {
	t.Parallel()
	api, err := cluster.StartAPI(t.Context(), cluster.APIOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Stop)
	d := desk{&local.World{TB: t}}
	admin, somebody := kubeconfig(t, api, ""), kubeconfig(t, api, "somebody")
	trainyard := func(kubeconfig string, args ...string) local.Outcome {
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: append([]string{trainyardName}, args...), Env: append(os.Environ(), "KUBECONFIG="+kubeconfig)}
		return finish(d, cmd)
	}
	d.refuses(trainyard(admin, "get"), 1, "the cluster has no training jobs: `trainyard install` installs the operator$")
	d.refuses(trainyard(admin, "install"), 2, "the operator's image is missing")
	d.refuses(trainyard(somebody, "install", "--image=here/operator:1"), 1,
		`looking for other operators of the same kinds: .*User "somebody" cannot list .*; installing needs the rights of a cluster administrator$`)

	// Another operator of the same kinds must be stopped first.
	for _, other := range []struct{ operator, name, image string }{
		{"Training Operator", "training-operator", "example.com/copy:1"},
		{"Training Operator", "jobs", "docker.io/kubeflow/training-operator:v1-855e096"},
		{"Kubeflow Trainer", "kubeflow-trainer-controller-manager", "example.com/copy:1"},
	} {
		d.expect(trainyard(admin, "kubectl", "create", "deployment", other.name, "--image="+other.image), 0)
		d.refuses(trainyard(admin, "install", "--image=here/operator:1"), 1,
			other.operator+` runs the same kinds of jobs on this cluster \(deployment `+other.name+` in namespace default\): stop it with `+
				"`kubectl -n default scale deployment "+other.name+" --replicas=0`, or install anyway with --beside-others$")
		d.expect(trainyard(admin, "install", "--crds-only", "--beside-others"), 0, "^The kinds of jobs are installed.$")
		d.expect(trainyard(admin, "kubectl", "scale", "deployment", other.name, "--replicas=0"), 0)
	}

	d.expect(trainyard(admin, "install", "--image=here/operator:1"), 0, "^namespace trainyard-system$",
		"^customresourcedefinition pytorchjobs.kubeflow.org$", "^clusterrole ", "^deployment trainyard-operator$",
		`^The kinds of jobs are installed, and the operator is starting in namespace trainyard-system\.$`)
	d.expect(trainyard(admin, "kubectl", "get", "deployment", "--namespace=trainyard-system", "-o", "yaml"), 0, "image: here/operator:1$")
	d.expect(trainyard(admin, "get"), 0, "^There are no jobs in namespace default.$")

	// The API server itself goes on writing the status of definitions for a while: of those their generation counts.
	versions := func() string {
		list := func(kinds, version string) string {
			return trainyard(admin, "kubectl", "get", kinds, "--namespace=trainyard-system", "-o",
				`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.`+version+`}{"\n"}{end}`).Stdout
		}
		return list("crds", "generation") + list("clusterroles,clusterrolebindings,deployments,serviceaccounts,roles,rolebindings,services", "resourceVersion")
	}
	before := versions()
	d.expect(trainyard(admin, "install", "--image=here/operator:1"), 0)
	if after := versions(); after != before || !strings.Contains(before, "Deployment trainyard-operator") {
		t.Errorf("a second installation changes objects:\n%s\n%s", before, after)
	}
	d.expect(trainyard(admin, "install", "--image=here/operator:2"), 0)
	d.expect(trainyard(admin, "kubectl", "get", "deployment", "--namespace=trainyard-system", "-o", "yaml"), 0, "image: here/operator:2$")
}

// Kueue needs the definition of JobSets wherever there are TrainJobs. It is created if it is missing, belongs to JobSet afterwards, and an
// installation of JobSet takes it over.
func TestInstallOffersTheDefinitionOfJobSets(t *testing.T) {
	t.Parallel()
	api, err := cluster.StartAPI(t.Context(), cluster.APIOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Stop)
	d, config := desk{&local.World{TB: t}}, kubeconfig(t, api, "")
	trainyard := func(args ...string) local.Outcome {
		return finish(d, &exec.Cmd{Path: "/proc/self/exe", Args: append([]string{trainyardName}, args...), Env: append(os.Environ(), "KUBECONFIG="+config)})
	}
	d.expect(trainyard("install", "--crds-only"), 0, "^customresourcedefinition jobsets.jobset.x-k8s.io, for Kueue$")

	theirs := filepath.Join(t.TempDir(), "jobset.yaml")
	text := strings.Replace(string(crds.JobSet), "name: TerminalState", "name: Final", 1)
	if err := os.WriteFile(theirs, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	d.expect(trainyard("kubectl", "apply", "--server-side", "-f", theirs), 0)
	if o := trainyard("install", "--crds-only"); o.Code != 0 || strings.Contains(o.Stdout, "jobsets") {
		t.Errorf("with a definition of JobSets:\n%s%s", o.Stdout, o.Stderr)
	}
	d.expect(trainyard("kubectl", "get", "crd", "jobsets.jobset.x-k8s.io", "-o", "yaml"), 0, "name: Final$")
}

// kubeconfig is for an API server, as its administrator or as a user whom the administrator impersonates.
func kubeconfig(t *testing.T, api *cluster.API, as string) string {
	t.Helper()
	config := api.RESTConfig()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Impersonate: as},
		},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
