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

// Visit makes this process a guest of the cluster of a data directory, until leave is called. While that cluster is being left
// it waits, and there may be none afterwards.
func Visit(ctx context.Context, dataDir string) (leave func(), err error) {
	file, err := os.OpenFile(filepath.Join(dataDir, "guests"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("visiting the local cluster: %w", err)
	}
	if err := take(ctx, file, unix.LOCK_SH, func() {}); err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// AwaitGuests returns when nobody else uses the cluster, and lets nobody in from then on. Where it must wait it says so once.
func (c *Cluster) AwaitGuests(ctx context.Context, waiting func()) error {
	return take(ctx, c.guests, unix.LOCK_EX, waiting)
}

// take takes a file's lock.
func take(ctx context.Context, file *os.File, how int, waiting func()) error {
	told := false
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			if !told {
				told = true
				waiting()
			}
			return false, nil
		}
		return err == nil, err
	})
}
