package tensorflow

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/manifest"
)

// config is the value of TF_CONFIG.
type config struct {
	Cluster     map[string]any `json:"cluster"`
	Task        task           `json:"task"`
	Environment string         `json:"environment,omitempty"`
}

type task struct {
	Type  string `json:"type"`
	Index int32  `json:"index"`
}

// environment is TF_CONFIG for the training container: where all replicas are and which one this is. A single replica gets none:
// TensorFlow would start a server that nobody uses.
func environment(m *manifest.Manifest, tf *kubeflowv1.TFJob, r job.Replica) manifest.Env {
	if m.Total() == 1 {
		return manifest.Env{}
	}
	c := config{Cluster: map[string]any{}, Task: task{key(r.Role), r.Index}}
	if tf.Spec.EnableDynamicWorker {
		dynamic(c.Cluster, m, r)
	} else {
		c.Environment = "cloud"
		for _, role := range m.Job.Roles {
			if m.Job.Size(role) > 0 {
				c.Cluster[key(role.Name)] = addresses(m, role)
			}
		}
	}
	// A map of strings and lists of strings always marshals.
	value, _ := json.Marshal(c)
	return manifest.Env{Training: []corev1.EnvVar{{Name: "TF_CONFIG", Value: string(value)}}}
}

// dynamic is the cluster in TF_CONFIG where Workers come and go. A parameter server has only itself in it. All others have the
// parameter servers and the Chief, and a Worker also itself.
func dynamic(cluster map[string]any, m *manifest.Manifest, r job.Replica) {
	if r.Role == string(kubeflowv1.TFPS) {
		cluster[key(r.Role)] = []string{address(m, r)}
		return
	}
	if r.Role == worker {
		cluster[key(r.Role)] = map[string]string{strconv.Itoa(int(r.Index)): address(m, r)}
	}
	for _, role := range m.Job.Roles {
		if role.Name != worker && m.Job.Size(role) > 0 && (role.Name != string(kubeflowv1.TFEvaluator) || role.Name == r.Role) {
			cluster[key(role.Name)] = addresses(m, role)
		}
	}
}

func addresses(m *manifest.Manifest, role job.Role) []string {
	var list []string
	for i := range m.Job.Size(role) {
		list = append(list, address(m, job.Replica{Role: role.Name, Index: i}))
	}
	return list
}

// address is where a replica is reached. The variable CUSTOM_CLUSTER_DOMAIN of the operator adds the cluster's domain, as in Training
// Operator, for clusters whose pods do not search it.
func address(m *manifest.Manifest, r job.Replica) string {
	port := kubeflow.Port(m, kubeflowv1.TFLayout, r.Role)
	host := fmt.Sprintf("%s.%s.%s.svc", m.Job.PodName(r), m.Job.Name, m.Job.Namespace)
	if domain := os.Getenv("CUSTOM_CLUSTER_DOMAIN"); domain != "" {
		host += "." + domain
	}
	return fmt.Sprintf("%s:%d", host, port)
}

func key(role string) string { return strings.ToLower(role) }
