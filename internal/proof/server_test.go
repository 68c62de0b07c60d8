package proof

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/definition"
)

// home is the namespace of the operator's ServiceAccount, operatorUser the user that it is for the API server.
const (
	home         = "trainyard-system"
	operatorUser = "system:serviceaccount:" + home + ":trainyard-operator"
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(_ context.Context, r any) {
		panics.Lock()
		defer panics.Unlock()
		panics.all = append(panics.all, fmt.Sprintf("%v\n%s", r, debug.Stack()))
	})
	code := m.Run()
	if started.server != nil {
		started.server.stop()
	}
	os.Exit(code)
}

// server is an API server without nodes and without controllers, with our kinds and with the rights of an installation.
type server struct {
	api       *cluster.API
	dir       string
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
	transport http.RoundTripper // an administrator's
	admin     client.WithWatch
	chronicles
}

var started struct {
	sync.Mutex
	*server
}

// start returns the API server of this test binary.
func start(t testing.TB) *server {
	t.Helper()
	started.Lock()
	defer started.Unlock()
	if started.server == nil {
		s := &server{}
		if err := s.start(context.Background()); err != nil {
			t.Fatalf("starting the API server: %v", err)
		}
		started.server = s
	}
	return started.server
}

func (s *server) start(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "trainyard-proof-"); err != nil {
		return err
	}
	if s.api, err = cluster.StartAPI(ctx, cluster.APIOptions{Dir: s.dir}); err != nil {
		return err
	}
	if s.scheme, err = controller.Scheme(); err != nil {
		return err
	}
	config := s.api.RESTConfig()
	if err := definition.Install(ctx, config, s.scheme); err != nil {
		return err
	}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return err
	}
	s.transport = utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: tls, MaxIdleConnsPerHost: 64})
	httpClient := &http.Client{Transport: s.transport}
	if s.mapper, err = apiutil.NewDynamicRESTMapper(s.config(nil), httpClient); err != nil {
		return err
	}
	if s.admin, err = client.NewWithWatch(s.config(nil), client.Options{Scheme: s.scheme, Mapper: s.mapper, HTTPClient: httpClient}); err != nil {
		return err
	}
	if err := s.installRights(ctx); err != nil {
		return err
	}
	return s.follow(ctx)
}

// config leads to the server by way of a transport around the shared one.
func (s *server) config(wrap func(http.RoundTripper) http.RoundTripper) *rest.Config {
	return &rest.Config{Host: s.api.RESTConfig().Host, Transport: s.transport, WrapTransport: wrap, QPS: -1}
}

// installRights creates what config/rbac has, in the namespace of an installation.
func (s *server) installRights(ctx context.Context) error {
	if err := s.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}); err != nil {
		return err
	}
	for _, name := range []string{"service_account.yaml", "operator.yaml", "leader_election.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../config/rbac", name))
		if err != nil {
			return err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			var raw runtime.RawExtension
			if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
			if err := s.installRight(ctx, raw.Raw); err != nil {
				return fmt.Errorf("creating the objects of %s: %w", name, err)
			}
		}
	}
	return nil
}

// installRight creates one object, in our namespace if it belongs into one.
func (s *server) installRight(ctx context.Context, text []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return err
	}
	obj, err := s.scheme.New(kind.GroupVersionKind())
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, obj); err != nil {
		return err
	}
	switch obj := obj.(type) {
	case *rbacv1.ClusterRole:
	case *rbacv1.ClusterRoleBinding:
		obj.Subjects[0].Namespace = home
	case *rbacv1.RoleBinding:
		obj.Namespace, obj.Subjects[0].Namespace = home, home
	default:
		obj.(client.Object).SetNamespace(home)
	}
	return s.admin.Create(ctx, obj.(client.Object))
}

func (s *server) stop() {
	s.chronicles.end()
	s.api.Stop()
	_ = os.RemoveAll(s.dir)
}
