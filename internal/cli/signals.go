package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// stopSignals are the signals by which a person or the machine stops a command.
var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// untilInterrupted is a context that ends with a stop signal.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, stopSignals...)
}

// untilSignal is a context that ends with a signal. The signal goes back to the channel, because the follower handles it if the job
// has been submitted by then.
func untilSignal(ctx context.Context, signals chan os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case s := <-signals:
			cancel()
			signals <- s
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
