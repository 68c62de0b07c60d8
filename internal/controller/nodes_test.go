package controller_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// device is a resource of which each node has one, and each replica asks for one: no node has two replicas.
const device = "example.com/device"

// leased is a job of two replicas that train by testdata/leased.py. The master is never on the first node, which cannot fail.
type leased struct {
	*training
	folder string
}

// fault is something that a node does to the job.
type fault struct {
	what    string
	fail    func(node string) // the node of the master
	mend    func(node string) // once the job is about to restart
	charged bool
}

// Nodes fail in every way, one after the other, while a job of real torch trains on them. Each time the job goes on from its
// checkpoint, and the failure is counted as what it is. At no moment do two processes of one rank live.
func TestATrainingSurvivesWhatNodesDo(t *testing.T) {
	t.Parallel()
	w := worldOn(t, local.Start(t, cluster.Options{Nodes: 3}))
	w.operate()
	for _, node := range []string{"trainyard", "trainyard-2", "trainyard-3"} {
		w.setDevices(node, 1)
	}
	j := w.submitLeased()
	faults := j.quickFaults()
	if os.Getenv("TRAINYARD_PROVE") != "" {
		faults = append(faults, j.slowFaults()...)
	}
	var retries, disruptions int32
	for attempt, fault := range faults {
		j.trains(attempt, retries, disruptions)
		node := w.Get("demo-master-0").Spec.NodeName
		t.Logf("%s: %s", node, fault.what)
		fault.fail(node)
		if fault.charged {
			retries++
		} else {
			disruptions++
		}
		j.until("restarts after "+fault.what, func(s kubeflowv1.JobStatus) bool { return int(s.Attempt) == attempt+1 })
		if fault.mend != nil {
			fault.mend(node)
		}
	}
	j.trains(len(faults), retries, disruptions)
	open(t, filepath.Join(j.folder, "finish"))
	if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries != retries || s.Disruptions != disruptions || int(s.Attempt) != len(faults) {
		t.Errorf("the status is\n%s", describe(s))
	}
	for rank := range 2 {
		j.checkLeases(rank, len(faults)+1)
	}
}

// quickFaults are those that show at once.
func (j *leased) quickFaults() []fault {
	return []fault{
		{what: "drained", fail: func(node string) { j.Kubectl("drain", node, "--force", "--delete-emptydir-data") }, mend: func(node string) { j.Kubectl("uncordon", node) }},
		{what: "rebooted", fail: func(node string) { j.askNode(node, cluster.NodeReboot) }},
		{what: "rebooted, and a device is lost", fail: func(node string) {
			j.setDevices(node, 0)
			j.askNode(node, cluster.NodeReboot)
		}, mend: func(node string) { j.setDevices(node, 1) }},
		// The gang has left when the node is drained: that disrupts nobody.
		{what: "cordoned, and the job is to leave", fail: func(node string) {
			j.Kubectl("cordon", node)
			j.Kubectl("annotate", "pytorchjob", "demo", kubeflowv1.AnnotationOnNodeMaintenance+"=Move")
		}, mend: func(node string) {
			j.Kubectl("drain", node, "--force", "--delete-emptydir-data")
			j.Kubectl("annotate", "pytorchjob", "demo", kubeflowv1.AnnotationOnNodeMaintenance+"-")
			j.Kubectl("uncordon", node)
		}},
	}
}

// slowFaults are those that Kubernetes needs a minute for. `make prove` sets the variable that adds them.
func (j *leased) slowFaults() []fault {
	// Kubernetes lets pods back onto the node before it has stopped to evict there, which would be one more disruption.
	restore := func(node string) {
		j.Kubectl("cordon", node)
		j.askNode(node, cluster.NodeRestore)
		j.Eventually("nobody is evicted from "+node, func() error {
			obj, err := j.Client.CoreV1().Nodes().Get(context.Background(), node, metav1.GetOptions{})
			if err == nil && slices.ContainsFunc(obj.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }) {
				err = fmt.Errorf("its taints are %v", obj.Spec.Taints)
			}
			return err
		})
		j.Kubectl("uncordon", node)
	}
	return []fault{
		{what: "disk limit exceeded", fail: func(string) {
			j.Kubectl("exec", "demo-master-0", "--", "dd", "if=/dev/zero", "of=/scratch/fill", "bs=1M", "count=4")
		}, charged: true},
		{what: "not ready", fail: func(node string) { j.askNode(node, cluster.NodeBreak) }, mend: func(node string) {
			j.outlastsForce("demo-master-0")
			restore(node)
		}},
		{what: "frozen", fail: func(node string) { j.askNode(node, cluster.NodeFreeze) }, mend: restore},
		{what: "killed", fail: func(node string) { j.askNode(node, cluster.NodeKill) }},
	}
}

// outlastsForce sees that a pod whose kubelet reports stays for as long as a silent node's pod would, and longer: its processes may
// live.
func (j *leased) outlastsForce(pod string) {
	j.Helper()
	uid := j.Get(pod).UID
	j.Eventually(pod+" is terminating on its node for longer than its grace period", func() error {
		obj, err := j.get()
		if err != nil {
			return err
		}
		if s := obj.(*kubeflowv1.PyTorchJob).Status; !strings.Contains(s.Message, "for longer than its grace period") {
			return fmt.Errorf("the message is %q", s.Message)
		}
		return nil
	})
	if now := j.Get(pod); now.UID != uid || now.DeletionTimestamp == nil {
		j.Errorf("%s was removed, or replaced, while its kubelet reported", pod)
	}
	for _, event := range j.events() {
		if strings.Contains(event, "ForceDeleted") {
			j.Errorf("its kubelet reported, and yet: %s", event)
		}
	}
}

func (w *world) askNode(node, request string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), local.Timeout)
	defer cancel()
	if err := cluster.AskNode(ctx, w.Client, node, request); err != nil {
		w.Fatalf("%s %s: %v", request, node, err)
	}
}

// setDevices tells the cluster how many devices a node has. The scheduler and the node's kubelet go by it.
func (w *world) setDevices(node string, n int) {
	w.Helper()
	patch := fmt.Appendf(nil, `{"status": {"capacity": {%q: "%d"}, "allocatable": {%q: "%d"}}}`, device, n, device, n)
	if _, err := w.Client.CoreV1().Nodes().Patch(context.Background(), node, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		w.Fatal(err)
	}
}

func (w *world) submitLeased() *leased {
	w.Helper()
	program, err := filepath.Abs("testdata/leased.py")
	if err != nil {
		w.Fatal(err)
	}
	folder := w.TempDir()
	job := gang(1, "exec /usr/bin/python3 "+program)
	first := func(operator corev1.NodeSelectorOperator) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: operator, Values: []string{"trainyard"}}}}
	}
	affinity := map[kubeflowv1.ReplicaType]*corev1.NodeAffinity{
		"Master": {RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{first(corev1.NodeSelectorOpNotIn)}}},
		"Worker": {PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: first(corev1.NodeSelectorOpIn)}}},
	}
	for role, spec := range specsOf(job) {
		pod := &spec.Template.Spec
		pod.Affinity = &corev1.Affinity{NodeAffinity: affinity[role]}
		for _, taint := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
			pod.Tolerations = append(pod.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(1)),
			})
		}
		pod.Containers[0].Resources.Limits = corev1.ResourceList{device: resource.MustParse("1")}
		pod.Containers[0].Env = []corev1.EnvVar{{Name: "FOLDER", Value: folder}, {Name: "OMP_NUM_THREADS", Value: "1"}}
		pod.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(1<<20, resource.BinarySI)},
		}}}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}
	}
	return &leased{w.submit(job), folder}
}

// trains waits until an attempt trains, with these counts, and lets it be one that has trained for ten minutes: the next restart
// has no delay then.
func (j *leased) trains(attempt int, retries, disruptions int32) {
	j.Helper()
	j.Eventually(fmt.Sprintf("attempt %d trains", attempt), func() error {
		_, err := os.Stat(filepath.Join(j.folder, fmt.Sprintf("trains-%d", attempt)))
		return err
	})
	s := j.until("runs", func(s kubeflowv1.JobStatus) bool {
		return int(s.Attempt) == attempt && newest(s).Type == kubeflowv1.JobRunning
	})
	if s.Retries != retries || s.Disruptions != disruptions {
		j.Errorf("want %d retries and %d disruptions, the status is\n%s", retries, disruptions, describe(s))
	}
	j.Eventually("the training is ten minutes old", func() error {
		obj, err := j.get()
		if err != nil {
			return err
		}
		conditions := obj.(*kubeflowv1.PyTorchJob).Status.Conditions
		running := &conditions[len(conditions)-1]
		running.LastTransitionTime = metav1.NewTime(time.Now().Add(-11 * time.Minute))
		return j.client.Status().Update(context.Background(), obj)
	})
}

// checkLeases sees that a rank lived so many lives, one after the other.
func (j *leased) checkLeases(rank, lives int) {
	j.Helper()
	files, err := filepath.Glob(filepath.Join(j.folder, fmt.Sprintf("lease-%d-*", rank)))
	if err != nil || len(files) != lives {
		j.Errorf("rank %d has left the leases %v, want %d", rank, files, lives)
	}
	type life struct{ from, to float64 }
	var all []life
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			j.Fatal(err)
		}
		times := strings.Fields(string(content))
		from, err := strconv.ParseFloat(times[0], 64)
		if err != nil {
			j.Fatal(err)
		}
		to, err := strconv.ParseFloat(times[len(times)-1], 64)
		if err != nil {
			j.Fatal(err)
		}
		all = append(all, life{from, to})
	}
	slices.SortFunc(all, func(a, b life) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(all); i++ {
		if all[i].from <= all[i-1].to {
			j.Errorf("two processes of rank %d lived at once: %.2f to %.2f and %.2f to %.2f", rank, all[i-1].from, all[i-1].to, all[i].from, all[i].to)
		}
	}
}
