package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// stopSignals are those by which a person or the machine stops a command.
var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// untilInterrupted is a context that ends with Ctrl-C, or when the process is told to end.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, stopSignals...)
}

// untilSignal is a context that ends with a signal, which stays: it is the job's too, if there is one by then.
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
