package cli

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metrics "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/yard"
)

// top is `trainyard top`: what the replicas of jobs use.
type top struct {
	target
	all bool
}

func topCommand() *cobra.Command {
	var t top
	cmd := &cobra.Command{
		Use:   "top [JOB]",
		Short: "Show what the replicas of jobs use: CPU, memory, GPUs",
		Args:  optionalArgument("job"),
		RunE:  func(cmd *cobra.Command, args []string) error { return t.run(cmd, args) },
	}
	addTarget(cmd, &t.target)
	cmd.Flags().BoolVarP(&t.all, "all-namespaces", "A", false, "the jobs of all namespaces")
	return cmd
}

func (t *top) run(cmd *cobra.Command, args []string) error {
	jobs, err := (&get{target: t.target, all: t.all}).jobs(cmd, args)
	if err != nil {
		return err
	}
	y, err := t.open()
	if err != nil {
		return err
	}
	uses, err := t.usage(cmd.Context())
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
	if t.all {
		fmt.Fprint(table, "NAMESPACE\t")
	}
	fmt.Fprintln(table, "JOB\tREPLICA\tNODE\tCPU\tMEMORY\tGPUS")
	rows := 0
	for _, j := range jobs {
		pods, err := y.Pods(cmd.Context(), j)
		if err != nil {
			return t.explain(err)
		}
		rows += t.printUsage(table, j, pods, uses)
	}
	if rows == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "Nothing runs.")
		return nil
	}
	return table.Flush()
}

// usage is what each pod uses, by namespace and name. It is empty if the cluster does not measure.
func (t *top) usage(ctx context.Context) (map[types.NamespacedName]metricsv1.PodMetrics, error) {
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	client, err := metrics.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	namespace := t.namespace
	if t.all {
		namespace = ""
	}
	list, err := client.MetricsV1beta1().PodMetricses(namespace).List(ctx, metav1.ListOptions{LabelSelector: naming.LabelJobName})
	if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, t.explain(err)
	}
	by := map[types.NamespacedName]metricsv1.PodMetrics{}
	for _, m := range list.Items {
		by[types.NamespacedName{Namespace: m.Namespace, Name: m.Name}] = m
	}
	return by, nil
}

func (t *top) printUsage(table *tabwriter.Writer, j *yard.Job, pods []corev1.Pod, uses map[types.NamespacedName]metricsv1.PodMetrics) int {
	rows := 0
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodPending {
			continue
		}
		rows++
		cpu, memory, gpus := "-", "-", int64(0)
		if m, ok := uses[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]; ok {
			var milli, bytes int64
			for _, c := range m.Containers {
				milli += c.Usage.Cpu().MilliValue()
				bytes += c.Usage.Memory().Value()
			}
			cpu, memory = fmt.Sprintf("%dm", milli), fmt.Sprintf("%dMi", bytes>>20)
		}
		for _, c := range pod.Spec.Containers {
			n := c.Resources.Limits["nvidia.com/gpu"]
			gpus += n.Value()
		}
		if t.all {
			fmt.Fprintf(table, "%s\t", pod.Namespace)
		}
		fmt.Fprintf(table, "%s\t%s-%s\t%s\t%s\t%s\t%d\n", j.Job.Name, pod.Labels[naming.LabelReplicaType], pod.Labels[naming.LabelReplicaIndex],
			orDash(pod.Spec.NodeName), cpu, memory, gpus)
	}
	return rows
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
