package cli

import (
	"context"
	"os"
)

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
