package archive

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/ui"
)

// dashboard are the flags of the dashboard.
type dashboard struct {
	place
	address, probeAddress string
	hosts                 string
	certFile, keyFile     string
}

func (d *dashboard) register(flags *flag.FlagSet) {
	config.RegisterFlags(flags)
	d.place.register(flags)
	flags.StringVar(&d.address, "bind-address", ":8082", "The address of the dashboard.")
	flags.StringVar(&d.probeAddress, "health-probe-bind-address", ":8083", "The address of the health probes and of /metrics; 0 disables them.")
	flags.StringVar(&d.hosts, "host", "", "The names by which people reach the dashboard, separated by commas. It answers only requests for these, and for localhost.")
	flags.StringVar(&d.certFile, "tls-cert-file", "", "The certificate for TLS. Without one, TLS must end at an ingress or a proxy.")
	flags.StringVar(&d.keyFile, "tls-private-key-file", "", "The key of that certificate.")
}

// serveDashboard serves the dashboard until it is told to stop.
func serveDashboard(args []string) error {
	var d dashboard
	flags := flag.NewFlagSet("trainyard-recorder ui", flag.ExitOnError)
	d.register(flags)
	_ = flags.Parse(args) // it exits
	if flags.NArg() > 0 {
		return fmt.Errorf("%s is not a flag: use --help", strings.Join(flags.Args(), " "))
	}
	if (d.certFile == "") != (d.keyFile == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file belong together: name both")
	}
	store, err := d.open()
	if err != nil {
		return err
	}
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	cluster.QPS, cluster.UserAgent = -1, "trainyard-ui"
	controller.Quiet(cluster)
	server, err := ui.NewInCluster(store, cluster, strings.FieldsFunc(d.hosts, func(r rune) bool { return r == ',' || r == ' ' }))
	if err != nil {
		return err
	}
	return d.serve(ctrl.SetupSignalHandler(), server)
}

// serve answers until ctx ends.
func (d *dashboard) serve(ctx context.Context, server *ui.Server) error {
	listener, err := net.Listen("tcp", d.address)
	if err != nil {
		return fmt.Errorf("opening a port for the dashboard: %w", err)
	}
	if d.certFile != "" {
		certificate, err := certwatcher.New(d.certFile, d.keyFile) // it is replaced before it expires
		if err != nil {
			return fmt.Errorf("reading the certificate of the dashboard: %w", err)
		}
		go func() { _ = certificate.Start(ctx) }()
		listener = tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.GetCertificate})
	}
	base := func(net.Listener) context.Context { return ctx } // so that streams end with the server
	serving := &http.Server{Handler: server.Handler(), ReadHeaderTimeout: 10 * time.Second, BaseContext: base}
	probes := &http.Server{Addr: d.probeAddress, ReadHeaderTimeout: 10 * time.Second, Handler: d.probes(server)}
	if d.probeAddress != "0" {
		go func() { _ = probes.ListenAndServe() }()
	}
	go func() {
		<-ctx.Done()
		_, _ = serving.Close(), probes.Close() // whoever still reads can read again later
	}()
	if err := serving.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the dashboard: %w", err)
	}
	return nil
}

// probes answers those who watch the dashboard.
func (d *dashboard) probes(server *ui.Server) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(server.Requests())
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return mux
}
