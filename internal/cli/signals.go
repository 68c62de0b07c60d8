package cli

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// stopSignals are the signals by which a person or the machine stops a command. A terminal that is closed, or an SSH connection that is
// lost, sends SIGHUP; without a terminal the next write fails with SIGPIPE. Under nohup SIGHUP is ignored, and stays so.
var stopSignals = func() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}()

// notifyStop sends stop signals to a channel, and SIGPIPE too: what must end in order must not die of a write.
func notifyStop(signals chan<- os.Signal) {
	signal.Notify(signals, append(slices.Clone(stopSignals), syscall.SIGPIPE)...)
}

// isHangup reports whether a signal says that nobody sees the output any more.
func isHangup(s os.Signal) bool { return s == syscall.SIGHUP || s == syscall.SIGPIPE }

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
