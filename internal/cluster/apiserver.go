package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/filters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	controlplane "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// apiServer says how to run kube-apiserver in this process.
type apiServer struct {
	etcd      string       // the store's endpoint
	pki       *pki         //
	listener  net.Listener // where it serves; its address must be reachable from this process
	advertise net.IP       // where pods reach it, as the endpoint of Service kubernetes
	services  string       // the range of Services' addresses
	auditLog  string       // a file that gets one line per request, or ""
	bare      bool         // without a controller manager: pods need no service account
	install   []installAPI // API groups served beside Kubernetes' own
}

// frontProxy is the name under which the API server passes requests on to other servers.
const frontProxy = "front-proxy-client"

// installAPI adds an API group to the server before it starts.
type installAPI func(*genericapiserver.GenericAPIServer) error

// runningAPI is a kube-apiserver that runs in this process.
type runningAPI struct {
	admin   *rest.Config    // an administrator's access
	stopped <-chan struct{} // closed when it has ended
	failed  <-chan error    // why it has ended
}

// start runs the server until ctx ends.
func (a *apiServer) start(ctx context.Context) (*runningAPI, error) {
	server, err := a.build(ctx)
	if err != nil {
		return nil, fmt.Errorf("building the API server: %w", err)
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("preparing the API server: %w", err)
	}
	admin, err := a.adminConfig()
	if err != nil {
		return nil, err
	}
	failed, stopped := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(stopped)
		failed <- prepared.Run(ctx)
	}()
	return &runningAPI{admin: admin, stopped: stopped, failed: failed}, nil
}

// build does what kube-apiserver's command does between its flags and its start, with our API groups added.
func (a *apiServer) build(ctx context.Context) (*aggregator.APIAggregator, error) {
	completed, err := a.options(ctx)
	if err != nil {
		return nil, err
	}
	unfinished, err := app.NewConfig(completed)
	if err != nil {
		return nil, err
	}
	config, err := unfinished.Complete()
	if err != nil {
		return nil, err
	}
	notFound := notfoundhandler.New(config.KubeAPIs.ControlPlane.Generic.Serializer, filters.NoMuxAndDiscoveryIncompleteKey)
	extensions, err := config.ApiExtensions.New(genericapiserver.NewEmptyDelegateWithCustomHandler(notFound))
	if err != nil {
		return nil, err
	}
	kube, err := config.KubeAPIs.New(extensions.GenericAPIServer)
	if err != nil {
		return nil, err
	}
	for _, install := range a.install {
		if err := install(kube.ControlPlane.GenericAPIServer); err != nil {
			return nil, err
		}
	}
	crds := extensions.Informers.Apiextensions().V1().CustomResourceDefinitions()
	crdsEnabled := config.ApiExtensions.GenericConfig.MergedResourceConfig.ResourceEnabled(
		apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	return controlplane.CreateAggregatorServer(config.Aggregator, kube.ControlPlane.GenericAPIServer, crds, crdsEnabled, priorities())
}

func (a *apiServer) options(ctx context.Context) (options.CompletedOptions, error) {
	var none options.CompletedOptions
	port := a.listener.Addr().(*net.TCPAddr).Port
	serving, err := a.pki.server("apiserver",
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		[]net.IP{net.IPv4(127, 0, 0, 1), a.advertise, firstAddress(a.services)})
	if err != nil {
		return none, err
	}
	kubelet, err := a.pki.client("apiserver-kubelet", "kube-apiserver", "system:masters")
	if err != nil {
		return none, err
	}
	proxy, err := a.pki.client("front-proxy", frontProxy)
	if err != nil {
		return none, err
	}
	s := options.NewServerRunOptions()
	args := []string{
		"--etcd-servers=" + a.etcd,
		fmt.Sprintf("--secure-port=%d", port),
		"--advertise-address=" + a.advertise.String(),
		"--service-cluster-ip-range=" + a.services,
		"--tls-cert-file=" + serving.certFile,
		"--tls-private-key-file=" + serving.keyFile,
		"--client-ca-file=" + a.pki.path("ca.crt"),
		"--authorization-mode=RBAC",
		"--anonymous-auth=false",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + a.pki.path("service-accounts.key"),
		"--service-account-signing-key-file=" + a.pki.path("service-accounts.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + kubelet.certFile,
		"--kubelet-client-key=" + kubelet.keyFile,
		"--kubelet-certificate-authority=" + a.pki.path("ca.crt"),
		// By these a server that an APIService names knows that a request comes from here, and from whom.
		"--proxy-client-cert-file=" + proxy.certFile,
		"--proxy-client-key-file=" + proxy.keyFile,
		"--requestheader-client-ca-file=" + a.pki.path("ca.crt"),
		"--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--endpoint-reconciler-type=master-count",
		"--runtime-config=scheduling.k8s.io/v1beta1=true",
		"--allow-privileged=true",
		"--enable-admission-plugins=ResourceQuota,LimitRanger",
		"--max-requests-inflight=2000",
		"--max-mutating-requests-inflight=1000",
		"--shutdown-delay-duration=0s",
		// Definitions are large, change when they are installed, and never again: a history of them wastes memory.
		"--watch-cache-sizes=customresourcedefinitions.apiextensions.k8s.io#0",
	}
	if a.bare {
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if a.auditLog != "" {
		policy, err := auditPolicy(a.auditLog)
		if err != nil {
			return none, err
		}
		args = append(args, "--audit-log-path="+a.auditLog, "--audit-policy-file="+policy, "--audit-log-mode=blocking")
	}
	if err := parse(s.Flags(), args); err != nil {
		return none, err
	}
	s.SecureServing.Listener = a.listener
	completed, err := s.Complete(ctx)
	if err != nil {
		return none, err
	}
	return completed, utilerrors.NewAggregate(completed.Validate())
}

// priorities orders API groups for clients that name a resource without its group: Kubernetes' own come before ours.
func priorities() map[schema.GroupVersion]controlplane.APIServicePriority {
	all := controlplane.DefaultGenericAPIServicePriorities()
	for i, gv := range legacyscheme.Scheme.PrioritizedVersionsAllGroups() {
		if _, known := all[gv]; !known {
			all[gv] = controlplane.APIServicePriority{Group: int32(17000 - i), Version: int32(1000 - i)}
		}
	}
	all[metricsVersion] = controlplane.APIServicePriority{Group: 100, Version: 100}
	return all
}

func (a *apiServer) adminConfig() (*rest.Config, error) {
	pair, err := a.pki.client("admin", "trainyard-admin", "system:masters")
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", a.listener.Addr().(*net.TCPAddr).Port),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: a.pki.caPEM, CertData: pair.certPEM, KeyData: pair.keyPEM,
		},
		QPS: -1,
	}, nil
}

// awaitReady returns when /readyz succeeds: the server has created what it creates by itself, and all its parts are healthy.
func (s *runningAPI) awaitReady(ctx context.Context) error { return s.await(ctx, "/readyz") }

// awaitAnswers returns when the server has the namespace where objects go by default. It serves all kinds by then, but has yet to
// create the RBAC roles of users other than administrators, which takes more than a second.
func (s *runningAPI) awaitAnswers(ctx context.Context) error {
	return s.await(ctx, "/api/v1/namespaces/"+metav1.NamespaceDefault)
}

// await returns when the server answers the path.
func (s *runningAPI) await(ctx context.Context, path string) error {
	client, err := rest.HTTPClientFor(s.admin)
	if err != nil {
		return err
	}
	last := errors.New("no answer yet")
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-s.failed:
			return false, fmt.Errorf("the API server ended: %w", err)
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.admin.Host+path, nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			last = err
			return false, nil
		}
		_ = response.Body.Close()
		last = fmt.Errorf("%s answers %s", path, response.Status)
		return response.StatusCode == http.StatusOK, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("waiting for the API server: %w: %w", err, last)
	}
	return err
}

// parse sets a component's options by its own flags, the interface Kubernetes documents and keeps stable.
func parse(named cliflag.NamedFlagSets, args []string) error {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, set := range named.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("setting %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// firstAddress is the first usable address of a range: that of Service kubernetes.
func firstAddress(cidr string) net.IP {
	_, network, err := net.ParseCIDR(cidr)
	if err != nil {
		return nil
	}
	ip := network.IP.To4()
	return net.IPv4(ip[0], ip[1], ip[2], ip[3]+1)
}
