package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/ui"
	"github.com/trainyard/trainyard/internal/yard"
)

// dashboard is `trainyard ui`: the dashboard of the local cluster, in the foreground.
type dashboard struct {
	dataDir string
	port    int
	noOpen  bool
}

func uiCommand() *cobra.Command {
	var d dashboard
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show all jobs, also past ones, in a browser",
		Long: `Show the jobs of the local cluster in a browser, also past ones: how they ended, their attempts, logs and events. The cluster
need not run. It prints a link that works once, and opens it if there is a display. It runs until Ctrl-C.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	addDataDir(cmd, &d.dataDir)
	cmd.Flags().IntVar(&d.port, "port", 0, "the port on 127.0.0.1 (default: any free one)")
	cmd.Flags().BoolVar(&d.noOpen, "no-open", false, "only print the link")
	return cmd
}

func (d *dashboard) run(cmd *cobra.Command) error {
	dir, err := d.dataDir, error(nil)
	if dir == "" {
		if dir, err = defaultDataDir(); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", d.port))
	if err != nil {
		return usageError{fmt.Errorf("opening a port for the dashboard: %w; name another with --port", err)}
	}
	address := listener.Addr().(*net.TCPAddr)
	open := func(string) (*yard.Yard, error) { return (&target{dataDir: dir}).open() }
	known := ui.Cluster{Running: func() bool { return clusterRuns(dir) }, Open: open}
	if d.dataDir != "" || os.Getenv("KUBECONFIG") != "" { // commands would use another cluster
		known.Flags = []string{"--data-dir", dir}
	}
	server := ui.New(record.Of(dir), known, address.Port)
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	serving := &http.Server{Handler: server.Handler(), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	link := fmt.Sprintf("http://%s%s", address, server.Link())
	fmt.Fprintf(cmd.OutOrStdout(), "The dashboard is at %s\nThe link works once. Ctrl-C stops the dashboard.\n", link)
	if !d.noOpen {
		openBrowser(link)
	}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends it at once
		ended <- d.shutDown(cmd, serving)
	}()
	if err := serving.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the dashboard: %w", err)
	}
	return <-ended
}

// shutDown ends the server when the changes that people have asked for are made: half of one could lose a job. Those who only read can read again later.
func (d *dashboard) shutDown(cmd *cobra.Command, serving *http.Server) error {
	wait := time.AfterFunc(time.Second, func() {
		fmt.Fprintln(cmd.ErrOrStderr(), "A job is still being changed. The dashboard ends when that is done; Ctrl-C ends it at once.")
	})
	defer wait.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), ui.ActionTimeout)
	defer cancel()
	if err := serving.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("ending the dashboard: %w", err), serving.Close())
	}
	return nil
}

// openBrowser opens a link if there is a display. If that fails, the link is printed anyway.
func openBrowser(link string) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	if open := exec.Command("xdg-open", link); open.Start() == nil {
		go func() { _ = open.Wait() }()
	}
}
