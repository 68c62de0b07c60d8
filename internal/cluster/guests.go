package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A cluster belongs to the process that started it. Others use it as guests: each shares a lock while it does, and who wants to leave
// the cluster takes it alone. Locks go with their processes, so that no crash leaves one.

// Guest uses a cluster that another process started.
type Guest struct {
	file    *os.File
	dataDir string
	leaving chan struct{}
}

// openGuests opens the file of the lock. It is open for writing, because NFS grants a lock that excludes others only then (flock(2)).
func openGuests(dataDir string, flag int) (*os.File, error) {
	return os.OpenFile(filepath.Join(dataDir, "guests"), os.O_RDWR|flag, 0o600)
}

// Visit makes this process a guest of the cluster of a data directory, until it leaves. While that cluster is being left it waits,
// and there may be none afterwards.
func Visit(ctx context.Context, dataDir string) (*Guest, error) {
	file, err := openGuests(dataDir, os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("visiting the local cluster: %w", err)
	}
	if err := take(ctx, file, unix.LOCK_SH, func() {}); err != nil {
		_ = file.Close()
		return nil, err
	}
	return &Guest{file, dataDir, make(chan struct{})}, nil
}

// Leave lets who started the cluster leave it, too.
func (g *Guest) Leave() {
	close(g.leaving)
	_ = g.file.Close()
}

// Done is closed when the cluster has ended.
func (g *Guest) Done() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		for tick := time.NewTicker(time.Second); ; {
			select {
			case <-g.leaving:
				tick.Stop()
				return
			case <-tick.C:
			}
			if _, held := HolderOf(g.dataDir); !held {
				tick.Stop()
				close(done)
				return
			}
		}
	}()
	return done
}

// AwaitGuests returns when nobody else uses the cluster, and lets nobody in from then on. Where it must wait it says so once.
func (c *Cluster) AwaitGuests(ctx context.Context, waiting func()) error {
	return take(ctx, c.guests, unix.LOCK_EX, waiting)
}

// take takes a file's lock.
func take(ctx context.Context, file *os.File, how int, waiting func()) error {
	called := false
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			if !called {
				called = true
				waiting()
			}
			return false, nil
		}
		return err == nil, err
	})
}
