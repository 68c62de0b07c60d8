package layout

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/trainyard/trainyard/"

// TestImportsGoOneWay checks the rules on imports in docs/design.md.
func TestImportsGoOneWay(t *testing.T) {
	for _, c := range []struct {
		sentence string
		packages string
		never    []string // prefixes of import paths
		except   []string
	}{
		{
			sentence: "the operator links neither Kubernetes' components nor the store, and no client of S3",
			packages: "./cmd/trainyard-operator",
			never:    []string{"k8s.io/kubernetes/", "go.etcd.io/etcd/server", "github.com/minio/", module + "internal/cluster", module + "internal/procrun"},
		},
		{
			sentence: "the recorder of a cluster links neither Kubernetes' components nor the store",
			packages: "./cmd/trainyard-recorder",
			never:    []string{"k8s.io/kubernetes/", "go.etcd.io/etcd/server", module + "internal/cluster", module + "internal/procrun", module + "internal/cli"},
		},
		{
			sentence: "the enclave imports no other package of ours",
			packages: "./internal/enclave/...",
			never:    []string{module},
			except:   []string{module + "internal/enclave"},
		},
		{
			sentence: "the runtime imports no other package of ours, and none of Kubernetes' components",
			packages: "./internal/procrun/...",
			never:    []string{module, "k8s.io/kubernetes/"},
			except:   []string{module + "internal/procrun"},
		},
		{
			sentence: "the local cluster imports its enclave and its runtime, and nothing about training",
			packages: "./internal/cluster/...",
			never:    []string{module},
			except:   []string{module + "internal/cluster", module + "internal/enclave", module + "internal/procrun", module + "internal/kubeconfig"},
		},
		{
			sentence: "the rules import Kubernetes' types, and nothing that has effects",
			packages: "./internal/job",
			never:    []string{module, "k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/kubernetes/"},
			except:   []string{module + "internal/job", module + "internal/text", module + "api/naming"},
		},
		{
			sentence: "kinds import nothing that has effects",
			packages: "./internal/kinds/...",
			never:    []string{module + "internal", "k8s.io/client-go", "sigs.k8s.io/controller-runtime/pkg/client"},
			except:   []string{module + "internal/job", module + "internal/kinds", module + "internal/manifest", module + "internal/text"},
		},
		{
			sentence: "records can be read without the packages about training, and without a client",
			packages: "./internal/record",
			never:    []string{module, "github.com/minio/", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
			except:   []string{module + "internal/record"},
		},
		{
			sentence: "the recorder knows neither the local cluster nor the command line",
			packages: "./internal/recorder",
			never:    []string{module + "internal/cluster", module + "internal/cli", module + "internal/procrun", "k8s.io/kubernetes/"},
		},
		{
			sentence: "text imports neither our packages nor Kubernetes",
			packages: "./internal/text",
			never:    []string{module, "k8s.io/"},
			except:   []string{module + "internal/text"},
		},
		{
			sentence: "the API imports neither a client nor an internal package",
			packages: "./api/...",
			never:    []string{module + "internal", "k8s.io/client-go/kubernetes", "sigs.k8s.io/controller-runtime/pkg/client"},
		},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			t.Parallel()
			for _, dependency := range dependencies(t, c.packages) {
				if hasPrefix(dependency, c.never) && !hasPrefix(dependency, c.except) {
					t.Errorf("%s depends on %s", c.packages, dependency)
				}
			}
		})
	}
}

func dependencies(t *testing.T, packages string, env ...string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", packages)
	cmd.Dir, cmd.Env = "../../..", append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", packages, err)
	}
	return strings.Fields(string(out))
}

func hasPrefix(path string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
