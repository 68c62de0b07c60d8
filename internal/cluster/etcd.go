package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// startEtcd runs the store in this process. It is reached by a socket in its folder, so that it needs no port and the
// folder's permissions guard it.
func startEtcd(ctx context.Context, dir string, log *zap.Logger) (endpoint string, stop func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("creating the store's folder: %w", err)
	}
	config := embed.NewConfig()
	config.Name = "trainyard"
	config.Dir = dir
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	config.WarningUnaryRequestDuration = time.Second
	config.AutoCompactionMode = embed.CompactorModePeriodic
	config.AutoCompactionRetention = "15m"
	config.QuotaBackendBytes = 4 << 30
	// No other member has to catch up, so there is no use for thousands of past writes in memory, and hundreds of megabytes on disk.
	config.SnapshotCatchUpEntries = 10
	config.SnapshotCount = 2000
	config.MaxWalFiles = 2
	folder, err := os.Open(dir)
	if err != nil {
		return "", nil, fmt.Errorf("opening the store's folder: %w", err)
	}
	client := socketURL(folder)
	config.ListenClientUrls = []url.URL{client}
	config.ListenPeerUrls = nil // there is one member; the addresses that it advertises by default are never used
	config.InitialCluster = config.InitialClusterFromName(config.Name)

	server, err := embed.StartEtcd(config)
	if err != nil {
		_ = folder.Close()
		return "", nil, fmt.Errorf("starting etcd in %s: %w", dir, err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return client.String(), func() { stopEtcd(server); _ = folder.Close() }, nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(time.Minute):
		err = errors.New("not ready within a minute")
	}
	stopEtcd(server)
	_ = folder.Close()
	return "", nil, fmt.Errorf("starting etcd in %s: %w", dir, err)
}

// stopEtcd closes the store without waiting for its clients to leave, as they never do: they are the API server's.
func stopEtcd(server *embed.Etcd) {
	server.Server.HardStop()
	for _, l := range server.Clients {
		_ = l.Close()
	}
}

// socketURL names a fresh socket in a folder by the folder's descriptor: the path of a socket may have 107 bytes only, and data
// directories can be deep. The name is new each time, as the listener of an earlier run may still be about to remove its own.
func socketURL(folder *os.File) url.URL {
	files, _ := os.ReadDir(folder.Name())
	for _, file := range files {
		if strings.HasSuffix(file.Name(), ".sock") { // left by a process that was killed; the data directory's lock says nobody listens there
			_ = os.Remove(filepath.Join(folder.Name(), file.Name()))
		}
	}
	return url.URL{Scheme: "unix", Path: fmt.Sprintf("/proc/self/fd/%d/%x.sock", folder.Fd(), time.Now().UnixNano())}
}

// etcdLog writes etcd's warnings to the cluster's log.
func etcdLog() *zap.Logger {
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(zapcore.WarnLevel)
	log, err := config.Build()
	if err != nil {
		return zap.NewNop()
	}
	return log
}
