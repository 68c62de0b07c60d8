package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// restartWait is the time between two starts while the API server does not answer.
const restartWait = 2 * time.Second

// temporary reports whether the operator ended because of the API server, which may be back in a moment: it could not renew its
// lease, or could not reach the server.
func temporary(err error) bool {
	var network net.Error
	lost := strings.Contains(err.Error(), "leader election lost") // controller-runtime has no value to compare with
	return lost || errors.As(err, &network) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsTooManyRequests(err)
}

// startAgain replaces this process by a new one. An exit would do, too, but a kubelet restarts a container that exits again and
// again only after minutes, and the operator must act soon after an outage.
func startAgain(ctx context.Context) error {
	select {
	case <-ctx.Done(): // it is to stop
		return nil
	case <-time.After(restartWait):
	}
	executable, err := os.Executable()
	if err == nil {
		err = syscall.Exec(executable, os.Args, os.Environ())
	}
	return fmt.Errorf("starting again: %w", err)
}
