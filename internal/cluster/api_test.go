package cluster_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/trainyard/trainyard/internal/cluster"
)

// The API server alone, in this process: what tests of controllers use.
func TestAPIAlone(t *testing.T) {
	dir := t.TempDir()
	audit := filepath.Join(dir, "audit.log")
	ctx := context.Background()
	api, err := cluster.StartAPI(ctx, cluster.APIOptions{Dir: dir, AuditLog: audit})
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(api.RESTConfig())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "waits"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "any"}}},
	}
	if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Errorf("creating a pod: %v", err)
	}
	api.Stop()

	again, err := cluster.StartAPI(ctx, cluster.APIOptions{Dir: dir})
	if err != nil {
		t.Fatalf("starting again on the same directory: %v", err)
	}
	defer again.Stop()
	client = kubernetes.NewForConfigOrDie(again.RESTConfig())
	if _, err := client.CoreV1().Pods("default").Get(ctx, "waits", metav1.GetOptions{}); err != nil {
		t.Errorf("the pod of the first run: %v", err)
	}
	lines, err := os.ReadFile(audit)
	if err != nil || !bytes.Contains(lines, []byte(`"verb":"create"`)) {
		t.Errorf("the audit log does not have the creation: %v", err)
	}
}
