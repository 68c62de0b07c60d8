package cluster_test

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(healthServer); file != "" {
		serveHealth(file)
	}
	local.Main(m)
}

// healthServer is the variable that makes the test binary a server of gRPC health checks: it is well while the file exists
// that the variable names.
const healthServer = "TRAINYARD_TEST_HEALTH"

// executable is the test binary, for pods to run.
var executable, _ = os.Executable()

func serveHealth(file string) {
	listener, err := net.Listen("tcp", ":8080")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server, checks := grpc.NewServer(), health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, checks)
	update := func() {
		status := grpc_health_v1.HealthCheckResponse_SERVING
		if _, err := os.Stat(file); err != nil {
			status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
		}
		checks.SetServingStatus("", status)
	}
	update()
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			update()
		}
	}()
	fmt.Fprintln(os.Stderr, server.Serve(listener))
	os.Exit(1)
}
