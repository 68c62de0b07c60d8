package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/definition"
	"github.com/trainyard/trainyard/internal/manifest/traceid"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// asOperator is what the test binary is called when it is to be the operator.
const asOperator = "trainyard-operator"

func TestMain(m *testing.M) {
	if os.Args[0] == asOperator {
		main()
		return
	}
	local.Main(m)
}

// TestSeveralOperators starts operators as processes on one API server, and ends them.
func TestSeveralOperators(t *testing.T) {
	api, err := cluster.StartAPI(t.Context(), cluster.APIOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Stop)
	scheme, err := controller.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	f := fleet{T: t, config: api.RESTConfig(), namespace: "default"}
	if f.client, err = client.New(f.config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}

	first := f.start()
	f.eventually("an operator is not ready before the kinds are served", time.Minute, func() error {
		if answer := first.ready(); !strings.Contains(answer, "check failed") {
			return fmt.Errorf("/readyz: %s", answer)
		}
		return nil
	})
	if err := definition.Install(t.Context(), api.RESTConfig(), scheme); err != nil {
		t.Fatal(err)
	}
	f.awaitReady(first)
	before := f.leader()
	second := f.start()
	f.awaitReady(second)
	if after := f.leader(); after != before {
		t.Errorf("the standby %s took the lease from %s", after, before)
	}

	first.signal(syscall.SIGKILL)
	f.within(5*time.Second, "a killed leader is replaced", before)
	f.runs("after-kill")

	third := f.start()
	f.awaitReady(third)
	before = f.leader()
	second.signal(syscall.SIGTERM)
	f.within(2*time.Second, "a leader that stops in order is replaced", before)
	f.runs("after-stop")
	if err := second.cmd.Wait(); err != nil {
		t.Errorf("an operator that is stopped ends with %v", err)
	}
}

// fleet are the operators of one cluster.
type fleet struct {
	*testing.T
	config    *rest.Config
	client    client.Client
	namespace string // of the lease
}

type operator struct {
	cmd    *exec.Cmd
	health string
}

// start runs the operator in a process of its own.
func (f fleet) start() operator {
	f.Helper()
	kubeconfig := filepath.Join(f.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: f.config.Host, CertificateAuthorityData: f.config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: f.config.CertData, ClientKeyData: f.config.KeyData}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	}, kubeconfig); err != nil {
		f.Fatal(err)
	}
	o := operator{health: freeAddress(f.T)}
	o.cmd = &exec.Cmd{Path: "/proc/self/exe", Stderr: f.Output(), Args: []string{
		asOperator, "--kubeconfig=" + kubeconfig, "--leader-elect", "--trace-context", "--metrics-bind-address=0", "--health-probe-bind-address=" + o.health,
	}}
	if err := o.cmd.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _, _ = o.cmd.Process.Kill(), o.cmd.Wait() })
	return o
}

func (o operator) signal(s syscall.Signal) { _ = o.cmd.Process.Signal(s) }

// ready is the answer of /readyz.
func (o operator) ready() string {
	response, err := http.Get("http://" + o.health + "/readyz?verbose")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	return string(body)
}

func (f fleet) awaitReady(o operator) {
	f.Helper()
	f.eventually("the operator is ready", time.Minute, func() error {
		if answer := o.ready(); !strings.Contains(answer, "check passed") {
			return fmt.Errorf("/readyz: %s", answer)
		}
		return nil
	})
}

// leader is who holds the lease.
func (f fleet) leader() string {
	f.Helper()
	var lease coordinationv1.Lease
	if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: "trainyard-operator"}, &lease); err != nil {
		f.Fatal(err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// within checks that another operator than before holds the lease in time.
func (f fleet) within(limit time.Duration, what, before string) {
	f.Helper()
	start := time.Now()
	f.eventually(what, limit, func() error {
		if leader := f.leader(); leader == before || leader == "" {
			return fmt.Errorf("the lease is held by %q", leader)
		}
		return nil
	})
	f.Logf("%s after %v", what, time.Since(start))
}

// runs checks that an operator handles a new job. Its container is told its span, as the flag says.
func (f fleet) runs(name string) {
	f.Helper()
	job := &kubeflowv1.PyTorchJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: kubeflowv1.PyTorchJobSpec{PyTorchReplicaSpecs: map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{
			kubeflowv1.PyTorchMaster: {Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "pytorch", Image: "local"}},
			}}},
		}},
	}
	if err := f.client.Create(f.Context(), job); err != nil {
		f.Fatal(err)
	}
	f.eventually("the new leader handles a job", 5*time.Second, func() error {
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		if len(job.Status.Conditions) == 0 {
			return errors.New("the job has no condition")
		}
		var pod corev1.Pod
		if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: "default", Name: name + "-master-0"}, &pod); err != nil {
			return err
		}
		trace := traceid.Of(job.UID, nil)
		if told := (corev1.EnvVar{Name: traceid.Variable, Value: trace.Context(trace.Replica(0, "master-0"))}); !slices.Contains(pod.Spec.Containers[0].Env, told) {
			return fmt.Errorf("the environment is %v, without %v", pod.Spec.Containers[0].Env, told)
		}
		return nil
	})
}

func (f fleet) eventually(what string, limit time.Duration, check func() error) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), limit)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			f.Fatalf("%s: not within %v: %v", what, limit, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
