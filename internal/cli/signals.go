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

// notifyStop sends stop signals to a channel, until the function that it returns is called. SIGPIPE is one of them if the output is
// lost: what must end in order must not die of a write. It also comes from a write to a cluster that has just ended.
func notifyStop(signals chan<- os.Signal) (stop func()) {
	received := make(chan os.Signal, cap(signals))
	signal.Notify(received, append(slices.Clone(stopSignals), syscall.SIGPIPE, endCluster)...)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-received:
				if s == syscall.SIGPIPE && !outputLost() {
					continue
				}
				select {
				case signals <- s:
				default: // as signal.Notify does when nobody reads
				}
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(received); close(done) }
}

// isHangup reports whether a signal says that nobody sees the output any more.
func isHangup(s os.Signal) bool { return s == syscall.SIGHUP || s == syscall.SIGPIPE }

// endsNow reports whether a signal ends a local cluster also for other runs that use it: the machine stops, a time limit is over, or
// a person has typed `trainyard down --force`.
func endsNow(s os.Signal) bool { return s == syscall.SIGTERM || s == endCluster }

// kills reports whether a signal kills the pods of a cluster that is already stopping.
func kills(s os.Signal) bool { return s == os.Interrupt || s == syscall.SIGTERM }

// exitCode is the exit code of a command that ends with a signal and leaves the job as it is.
func exitCode(s os.Signal) outcome {
	switch s {
	case os.Interrupt:
		return exitInterrupted
	case syscall.SIGTERM:
		return exitTerminated
	}
	return exitHangup
}

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
