package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"
)

// API is an etcd and an API server in this process, without a node.
type API struct {
	config *rest.Config
	stop   func()
}

// APIOptions say where and how an API runs.
type APIOptions struct {
	Dir      string    // where it keeps its data; required
	AuditLog string    // file that gets one line for each request; default none
	Log      io.Writer // gets what the parts log; default nothing
}

// StartAPI runs etcd and the API server in this process and returns when they answer. Pods can be created and have no node to
// run on: what tests of controllers want, which play the node themselves.
func StartAPI(ctx context.Context, options APIOptions) (*API, error) {
	if options.Log == nil {
		options.Log = io.Discard
	}
	logTo(options.Log)
	if err := prepareProcess(); err != nil {
		return nil, err
	}
	pki, err := openPKI(filepath.Join(options.Dir, "pki"), time.Now())
	if err != nil {
		return nil, err
	}
	etcd, stopEtcd, err := startEtcd(ctx, filepath.Join(options.Dir, "etcd"), zap.NewNop())
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		stopEtcd()
		return nil, fmt.Errorf("opening a port for the API server: %w", err)
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	server := &apiServer{
		etcd: etcd, pki: pki, listener: listener,
		advertise: nodeAddress.AsSlice(), services: serviceRange.String(), auditLog: options.AuditLog, bare: true,
	}
	api, err := server.start(serving)
	stop := func() {
		end()
		if api != nil {
			<-api.stopped
		}
		stopEtcd()
	}
	if err == nil {
		err = api.awaitReady(serving)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return &API{config: api.admin, stop: stop}, nil
}

// RESTConfig is an administrator's access.
func (a *API) RESTConfig() *rest.Config { return rest.CopyConfig(a.config) }

// Stop ends both.
func (a *API) Stop() { a.stop() }
